"""What the services need from outside: a clock, a ledger, a broker. Implemented in the outer rings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol
from uuid import UUID

from orchestrator.domain.codes import CrashPoint
from orchestrator.domain.job import JobView, NewJob
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


class Ledger(Protocol):
    """The control database: the truth. Each method is one transaction."""

    def accept(self, job: NewJob) -> tuple[UUID, bool]:
        """Write a job and its first units; give its id and whether it is new.

        The same idempotency key with the same payload gives the first job's id; with
        another payload it raises `IdempotencyConflict`.
        """

    def claim(self, adapter: str, phase: Phase, *, owner: str, limit: int) -> Sequence[Claimed]:
        """Lease due units of one adapter and phase to `owner`: whoever gets no row has lost."""

    def renew(self, owner: str) -> int:
        """Extend the leases that `owner` still holds; give how many."""

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

    def job(self, job: str, *, tenant: str | None = None) -> JobView:
        """Give one job; a missing and another tenant's raise the same `JobNotFound`."""


class Broker(Protocol):
    """Carries hints to workers; it may lose or double any of them."""

    def announce(self, adapter: str, phase: Phase) -> None:
        """Wake a worker that serves the adapter."""


@dataclass(frozen=True, kw_only=True)
class Budgets:
    """How long things may take."""

    unit: timedelta
    lease: timedelta
    drain: timedelta = timedelta(seconds=20)
