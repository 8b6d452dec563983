"""The control database as the services see it: each method is one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import sqlalchemy as sa

from orchestrator.domain.codes import CrashPoint
from orchestrator.domain.job import JobView, NewJob, ReceiptView
from orchestrator.domain.ports import Budgets, Clock, Committed, Crash, Swept
from orchestrator.domain.states import JobState
from orchestrator.domain.unit import Answered, Claimed, Phase
from orchestrator.store import commit, jobs, units
from orchestrator.store.advance import Rules, advance
from orchestrator.store.jobs import micros


@dataclass(frozen=True, kw_only=True)
class SqlLedger:
    """`domain.ports.Ledger` over SQLAlchemy; one object may serve many threads."""

    engine: sa.Engine
    clock: Clock
    rules: Rules
    budgets: Budgets
    cap: int
    max_attempts: int
    crash: Crash

    def accept(self, job: NewJob) -> tuple[UUID, bool]:
        """Write a job and its first units; give its id and whether it is new."""
        with self.engine.begin() as connection:
            return jobs.accept(connection, job, self.rules.stores, self.rules.worker)

    def claim(self, adapter: str, phase: Phase, *, owner: str, limit: int) -> Sequence[Claimed]:
        """Lease due units of one adapter and phase to `owner`."""
        lease = self.budgets.lease // timedelta(microseconds=1)
        with self.engine.begin() as connection:
            ids = units.claim(connection, adapter, phase, owner=owner, limit=limit, lease_us=lease, cap=self.cap)
            if not ids:
                return []
            return units.load(connection, ids, page=self.rules.page, deadline=self.clock.now() + self.budgets.unit)

    def renew(self, owner: str) -> int:
        """Extend the leases that `owner` still holds; give how many."""
        with self.engine.begin() as connection:
            return units.renew(connection, owner, self.budgets.lease // timedelta(microseconds=1))

    def commit(self, owner: str, answers: Sequence[Answered], *, started_at: datetime) -> Committed:
        """Write what units that `owner` still holds came to, and move their jobs; drop the rest."""
        where = f"{answers[0].claimed.adapter}.{answers[0].claimed.phase}"
        with self.engine.begin() as connection:
            ours = commit.still_ours(connection, owner, answers)
            now = self.clock.now()
            commit.write(connection, ours, started=started_at, finished=now)
            touched = sorted({str(a.claimed.order.job) for a in ours})
            moved = advance(connection, self.rules, micros(now), touched)
            self.crash(CrashPoint.BEFORE_COMMIT, where)
        kept = {a.claimed.order.unit for a in ours}
        dropped = frozenset(a.claimed.order.unit for a in answers) - kept
        return Committed(dropped=dropped, moved=tuple(moved))

    def sweep(self) -> Swept:
        """Take back units whose lease has ended, and move every job that can move."""
        with self.engine.begin() as connection:
            rescued, parked = units.take_back(connection, self.max_attempts)
            moved = advance(connection, self.rules, micros(self.clock.now()))
            self.crash(CrashPoint.BEFORE_SWEEP_COMMIT, "dispatcher")
        return Swept(rescued=rescued, parked=parked, moved=tuple(moved))

    def due(self, adapters: Sequence[str]) -> Sequence[tuple[str, Phase]]:
        """Name the adapters and phases that have work that may be claimed now."""
        with self.engine.begin() as connection:
            return units.due(connection, adapters)

    def announce(self) -> Sequence[tuple[str, Phase]]:
        """Note and give the announcements to send now."""
        lease = self.budgets.lease // timedelta(microseconds=1)
        with self.engine.begin() as connection:
            return units.announce(connection, lease_us=lease, cap=self.cap)

    def heard(self, adapter: str) -> None:
        """Note that a worker has taken an adapter's announcement."""
        with self.engine.begin() as connection:
            units.heard(connection, adapter)

    def job(self, job: str, *, tenant: str | None = None) -> JobView:
        """Give one job; a missing and another tenant's raise the same `JobNotFound`."""
        with self.engine.begin() as connection:
            return jobs.view(connection, job, tenant)

    def jobs(self, *, tenant: str | None, state: JobState | None, after: str | None, limit: int) -> Sequence[JobView]:
        """Give at most `limit` jobs after the job `after`, in the order of their filing."""
        with self.engine.begin() as connection:
            return jobs.listed(connection, tenant=tenant, state=state, after=after, limit=limit)

    def receipts(self, job: str, *, tenant: str | None = None) -> Sequence[ReceiptView]:
        """Give a job's receipts in the order in which they were written."""
        with self.engine.begin() as connection:
            jobs.view(connection, job, tenant)
            return jobs.receipts(connection, job)

    def counts(self, job: str) -> dict[str, int]:
        """Give how many targets were written down for each adapter."""
        with self.engine.begin() as connection:
            return jobs.counts(connection, job)

    def no_lineage(self, job: str) -> dict[str, int]:
        """Give how many derived things without an origin each adapter has counted for a job."""
        with self.engine.begin() as connection:
            return jobs.no_lineage(connection, job)
