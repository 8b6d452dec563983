"""How adapters come in: by entry point, ours and a third party's through the same door."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Protocol, cast

from orchestrator.domain.contract import EraseOrder, Role, StorageAdapter
from orchestrator.domain.errors import DeadlinePassed, ErasureError, InvalidRequest
from orchestrator.domain.hold import Holds
from orchestrator.domain.ports import Clock
from orchestrator.domain.scope import Scope
from orchestrator.gate.decide import Gate
from orchestrator.scan.fingerprints import Fingerprinter

GROUP = "expunge.adapters"


class Log(Protocol):
    """A structlog logger: an event name in the past tense, and ids and counts."""

    def info(self, event: str, **facts: object) -> Any:  # noqa: ANN401 - structlog's own type
        """Note something that went as it should."""

    def warning(self, event: str, **facts: object) -> Any:  # noqa: ANN401 - structlog's own type
        """Note something that a person may want to look at."""


@dataclass(frozen=True, kw_only=True)
class AdapterContext:
    """What an adapter is handed when it is built.

    `call_timeout` is how long its client waits for one answer, unless the adapter's own options say otherwise.
    `fingerprinter` makes what a scan of files looks for; None where no store is looked at by its bytes. `epoch` reads
    the epoch of a source, by its adapter's name, and `holds` the holds that stand on a subject, as the control database
    has them; None where there is no such database.
    """

    clock: Clock
    gate: Gate
    log: Log
    state_dir: Path
    call_timeout: timedelta = timedelta(seconds=30)
    fingerprinter: Fingerprinter | None = None
    epoch: Callable[[str], int] | None = None
    holds: Callable[[Scope], Holds] | None = None

    def in_time(self, orders: Collection[EraseOrder]) -> None:
        """Raise `DeadlinePassed` where the deadline of one of these orders is over: nothing may be changed any more."""
        now = self.clock.now()
        if any(now > order.deadline for order in orders):
            raise DeadlinePassed

    def left(self, orders: Collection[EraseOrder]) -> timedelta:
        """Give how long it is until the first deadline of these orders; `call_timeout` where there are none.

        Raises `DeadlinePassed` as `in_time` does.
        """
        self.in_time(orders)
        now = self.clock.now()
        return min((max(order.deadline - now, timedelta()) for order in orders), default=self.call_timeout)


class AdapterFactory(Protocol):
    """An adapter class: what is known of it before it opens anything."""

    role: Role
    max_batch: int

    def __call__(self, context: AdapterContext, **options: object) -> StorageAdapter:
        """Build the adapter; a wrong option raises `InvalidRequest` naming key and allowed values."""


@dataclass(frozen=True, kw_only=True)
class Registered:
    """An adapter that is installed: its name, where it comes from, and its class."""

    name: str
    distribution: str
    version: str
    factory: AdapterFactory


def installed() -> dict[str, EntryPoint]:
    """Name every adapter that is installed, without loading any."""
    return {point.name: point for point in entry_points(group=GROUP)}


def resolve(names: list[str]) -> dict[str, Registered]:
    """Load the classes of the named adapters; an unknown name raises `InvalidRequest`."""
    found = installed()
    for name in names:
        if name not in found:
            near = difflib.get_close_matches(name, found, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            message = f"no adapter named {name!r} is installed (installed: {', '.join(sorted(found))}){hint}"
            raise InvalidRequest(message, field=f"adapters.{name}")
    return {name: _load(found[name]) for name in names}


def load_adapters(context: AdapterContext, enabled: Mapping[str, Mapping[str, object]]) -> dict[str, StorageAdapter]:
    """Build every enabled adapter with its own options; an error names the adapter."""
    classes = resolve(list(enabled))
    built = {}
    for name, options in enabled.items():
        with naming(name):
            built[name] = classes[name].factory(context, **options)
    return built


@contextmanager
def naming(adapter: str) -> Iterator[None]:
    """Put an adapter's name before what its store says is wrong, where it does not say so itself."""
    try:
        yield
    except (ErasureError, InvalidRequest) as error:
        if adapter not in str(error):
            error.args = (f"{adapter}: {error}",)
        raise


def _load(point: EntryPoint) -> Registered:
    distribution = point.dist
    return Registered(
        name=point.name,
        distribution=distribution.name if distribution else "unknown",
        version=distribution.version if distribution else "unknown",
        factory=cast("AdapterFactory", point.load()),
    )
