"""What the services need from outside: a clock, a ledger, a broker. Implemented in the outer rings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol
from uuid import UUID

from orchestrator.domain.codes import CrashPoint
from orchestrator.domain.contract import Fingerprint, Scrubbed
from orchestrator.domain.hold import NewHold
from orchestrator.domain.job import NewJob
from orchestrator.domain.states import JobState
from orchestrator.domain.unit import Answered, Claimed, Phase

Crash = Callable[[CrashPoint, str], None]
"""Called at each crash point with where it is ("cache.erase"); does nothing outside tests."""


class Clock(Protocol):
    """The one clock of expiry, windows and deadlines; leases use the database's own."""

    def now(self) -> datetime:
        """Give the time as an aware UTC datetime."""


@dataclass(frozen=True, kw_only=True)
class Committed:
    """What one commit came to: units whose claim had been taken over are dropped, jobs that moved are named."""

    dropped: frozenset[UUID] = frozenset()
    moved: tuple[tuple[str, JobState], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Swept:
    """What one sweep came to."""

    rescued: int = 0
    parked: int = 0
    moved: tuple[tuple[str, JobState], ...] = ()
    in_force: tuple[str, ...] = ()  # holds under which nothing can act any more


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What a scan of files has to look for on behalf of a job; `unprobed`: some of its values it cannot look for."""

    prints: frozenset[Fingerprint] = frozenset()
    unprobed: bool = False


class Ledger(Protocol):
    """The control database: the truth. Each method is one transaction."""

    def accept(self, jobs: Sequence[NewJob]) -> Sequence[tuple[UUID, bool]]:
        """Write jobs and their first units, all or none; give each one's id and whether it is new.

        The same idempotency key with the same payload gives the first job's id; with
        another payload it raises `IdempotencyConflict`.
        """

    def expire(self, jobs: Sequence[NewJob]) -> Sequence[UUID]:
        """Write jobs of what has expired; give the ids of those that are new.

        None is for a scope whose last such job has still to revoke, or was opened for the same.
        """

    def may_look(self, adapter: str) -> bool:
        """Tell whether it is time to ask a source what has expired; of several that ask, one is told so."""

    def claim(self, adapter: str, phase: Phase, *, owner: str, limit: int) -> Sequence[str]:
        """Lease due units of one adapter and phase to `owner` and give their ids: whoever gets none has lost."""

    def load(self, owner: str, units: Sequence[str]) -> Sequence[Claimed]:
        """Build the orders of units that `owner` still holds; a unit that is under a hold by now is given back."""

    def renew(self, owner: str) -> int:
        """Extend the leases that `owner` still holds; give how many."""

    def wanted(self, jobs: Sequence[UUID]) -> Mapping[UUID, Wanted]:
        """Give what is to be looked for in files on behalf of each job."""

    def open_scrub(self, store: str, owner: str) -> str | None:
        """Begin a scrub of a store's files under a lease and give its id; None while another one runs."""

    def close_scrub(self, run: str, outcome: Scrubbed, *, control_found: bool) -> bool:
        """Write down what a scrub came to; False where its lease has ended and somebody has failed it."""

    def commit(self, owner: str, answers: Sequence[Answered], *, started_at: datetime) -> Committed:
        """Write what units that `owner` still holds came to, and move their jobs; drop the rest."""

    def sweep(self) -> Swept:
        """Take back units whose lease has ended, and move every job that can move."""

    def due(self, adapters: Sequence[str]) -> Sequence[tuple[str, Phase]]:
        """Name the adapters and phases that have work that may be claimed now."""

    def announce(self) -> Sequence[tuple[str, Phase]]:
        """Note and give the announcements to send now: one outstanding for each adapter."""

    def heard(self, adapter: str) -> None:
        """Note that a worker has taken an adapter's announcement."""

    def place(self, new: Sequence[NewHold]) -> None:
        """Write holds, all or none: no unit that they cover is claimed from then on."""


class Broker(Protocol):
    """Carries hints to workers; it may lose or double any of them."""

    def announce(self, adapter: str, phase: Phase) -> None:
        """Wake a worker that serves the adapter."""


@dataclass(frozen=True, kw_only=True)
class Budgets:
    """How long things may take.

    `unit` is one call of an adapter, `lease` how long a claim lasts that nobody renews, `breaker` how long a store
    that is down is left alone, `drain` how long a woken worker goes on, `expiry` the pause between two looks at one
    source for what has expired.
    """

    unit: timedelta
    lease: timedelta
    breaker: timedelta = timedelta(seconds=30)
    drain: timedelta = timedelta(seconds=20)
    expiry: timedelta = timedelta(hours=1)
