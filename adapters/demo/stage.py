"""What the checks are given: the stores, a way to run commands, and what was seen while the story ran."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from adapters.demo import sight
from adapters.demo.processes import Processes
from adapters.demo.sight import Row
from adapters.demo.traces import Traces
from adapters.demo.world import Snapshot, World


@dataclass(kw_only=True)
class Told:
    """What was done and seen so far, in words and numbers: it outlives the processes."""

    before: Snapshot
    traces: dict[str, Traces]
    jobs: dict[str, str] = field(default_factory=dict)  # ids, by what each goes by: source, key, subject, expired
    listed: list[dict[str, Any]] = field(default_factory=list)  # as `list` shows them at the end
    killed: bool = False
    mistyped: tuple[str, int] = ("", 0)  # its job, and the exit code of `watch`
    rewritten: str = ""  # file of the copy that may be rewritten
    kept: str = ""  # file of the copy that may not
    until: datetime | None = None  # how long that one is kept
    status: dict[str, Any] = field(default_factory=dict)  # what `status` said while it was kept
    expires: float = 0.0  # when something expires, in seconds since 1970
    hold: str = ""
    held: tuple[Snapshot, ...] = ()  # as the hold came into force, and before it was lifted
    waiting: str = ""  # the state of its job before it was lifted
    current: dict[str, str] = field(default_factory=dict)  # what `memory current` gives at the end


@dataclass(frozen=True, kw_only=True)
class Stage:
    """The world after the story, and what was seen of it."""

    world: World
    processes: Processes
    told: Told

    def ledger(self, query: str, *given: object) -> list[Row]:
        """Ask the control database by SQL of our own."""
        return sight.read(self.world.ledger, query, *given)
