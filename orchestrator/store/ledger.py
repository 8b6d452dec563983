"""The control database as the services see it: each method is one transaction."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import sqlalchemy as sa

from orchestrator.domain.codes import CrashPoint
from orchestrator.domain.contract import Role, Scrubbed, Target, Tombstone
from orchestrator.domain.hold import Holds, HoldView, NewHold
from orchestrator.domain.job import JobView, NewJob, ReceiptView, Waiver
from orchestrator.domain.ports import Budgets, Clock, Committed, Crash, Swept, Wanted
from orchestrator.domain.retry import is_outage
from orchestrator.domain.states import JobState
from orchestrator.domain.unit import Answered, Claimed, Failed, Phase
from orchestrator.store import commit, epochs, health, holds, intervene, orders, scrubs, units, views, windows
from orchestrator.store import jobs as accepting
from orchestrator.store.advance import Rules, advance, cancelled
from orchestrator.store.clock import micros
from orchestrator.store.standing import movable

_SLICE: Final = 500
_US: Final = timedelta(microseconds=1)


@dataclass(frozen=True, kw_only=True)
class SqlLedger:
    """`domain.ports.Ledger` over SQLAlchemy, and what commands read and steer; one object may serve many threads."""

    engine: sa.Engine
    clock: Clock
    rules: Rules
    budgets: Budgets
    cap: int
    max_attempts: int
    crash: Crash

    def accept(self, jobs: Sequence[NewJob]) -> Sequence[tuple[UUID, bool]]:
        """Write jobs and their first units, all or none; give each one's id and whether it is new."""
        with self.engine.begin() as connection:
            return accepting.accept(connection, jobs, self.rules.stores, self.rules.worker)

    def expire(self, jobs: Sequence[NewJob]) -> Sequence[UUID]:
        """Write jobs of what has expired; give the ids of those that are new."""
        with self.engine.begin() as connection:
            return accepting.expire(connection, jobs, self.rules.stores, self.rules.worker)

    def may_look(self, adapter: str) -> bool:
        """Tell whether it is time to ask a source what has expired; of several that ask, one is told so."""
        with self.engine.begin() as connection:
            return health.may_look(connection, adapter, pause_us=self.budgets.expiry // _US)

    def claim(self, adapter: str, phase: Phase, *, owner: str, limit: int) -> Sequence[str]:
        """Lease due units of one adapter and phase to `owner` and give their ids."""
        with self.engine.begin() as connection:
            return units.claim(
                connection,
                adapter,
                phase,
                owner=owner,
                limit=limit,
                lease_us=self.budgets.lease // _US,
                cap=self.cap,
                deadline_us=micros(self.clock.now() + self.budgets.unit),
            )

    def load(self, owner: str, units: Sequence[str]) -> Sequence[Claimed]:
        """Build the orders of units that `owner` still holds; those under a hold by now are given back."""
        with self.engine.begin() as connection:
            return orders.load(connection, owner, units)

    def renew(self, owner: str) -> int:
        """Extend the leases that `owner` still holds; give how many."""
        lease_us = self.budgets.lease // _US
        with self.engine.begin() as connection:
            scrubs.renew(connection, owner, lease_us)
            return units.renew(connection, owner, lease_us)

    def wanted(self, jobs: Sequence[UUID]) -> Mapping[UUID, Wanted]:
        """Give what is to be looked for in files on behalf of each job."""
        with self.engine.begin() as connection:
            return scrubs.wanted(connection, jobs)

    def open_scrub(self, store: str, owner: str) -> str | None:
        """Begin a scrub of a store's files under a lease and give its id; None while another one runs."""
        with self.engine.begin() as connection:
            return scrubs.begin(connection, store, owner, self.budgets.lease // _US)

    def close_scrub(self, run: str, outcome: Scrubbed, *, control_found: bool) -> bool:
        """Write down what a scrub came to; False where its lease has ended and somebody has failed it."""
        with self.engine.begin() as connection:
            return scrubs.finish(connection, run, outcome, control_found=control_found)

    def commit(self, owner: str, answers: Sequence[Answered], *, started_at: datetime) -> Committed:
        """Write what units that `owner` still holds came to, and move their jobs; drop the rest."""
        where = f"{answers[0].claimed.adapter}.{answers[0].claimed.phase}"
        with self.engine.begin() as connection:
            ours = commit.still_ours(connection, owner, answers)
            now = self.clock.now()
            commit.write(connection, ours, self.rules.stores, started=started_at, finished=now)
            touched = sorted({str(a.claimed.order.job) for a in ours})
            moved = advance(connection, self.rules, micros(now), touched)
            failed = all(isinstance(a, Failed) and is_outage(a.code) for a in answers)
            pause = self.budgets.breaker // _US
            health.answered(connection, answers[0].claimed.adapter, failed=failed, pause_us=pause)
            self.crash(CrashPoint.BEFORE_COMMIT, where)
        kept = {a.claimed.order.unit for a in ours}
        dropped = frozenset(a.claimed.order.unit for a in answers) - kept
        return Committed(dropped=dropped, moved=tuple(moved))

    def sweep(self) -> Swept:
        """Take back units whose lease has ended, set holds in force, and move every job that can move."""
        now = micros(self.clock.now())
        latest = now + self.budgets.unit // _US
        with self.engine.begin() as connection:
            rescued, parked = units.take_back(connection, self.max_attempts, deadline_us=latest)
            scrubs.fail_ended(connection)
            in_force = holds.enforce(connection, now)
            windows.end(connection, self.rules.stores, now)
            jobs = movable(connection)
            self.crash(CrashPoint.BEFORE_SWEEP_COMMIT, "dispatcher")
        moved: list[tuple[str, JobState]] = []
        # A transaction for each slice: a sweep must not keep the workers waiting for all of it.
        for start in range(0, len(jobs), _SLICE):
            with self.engine.begin() as connection:
                moved += advance(connection, self.rules, now, jobs[start : start + _SLICE])
        return Swept(rescued=rescued, parked=parked, moved=tuple(moved), in_force=tuple(in_force))

    def due(self, adapters: Sequence[str]) -> Sequence[tuple[str, Phase]]:
        """Name the adapters and phases that have work that may be claimed now."""
        with self.engine.begin() as connection:
            return units.due(connection, adapters)

    def announce(self) -> Sequence[tuple[str, Phase]]:
        """Note and give the announcements to send now."""
        with self.engine.begin() as connection:
            stores = self.rules.stores
            waiting = list(units.due(connection, [store.name for store in stores]))
            # A worker that is woken for a source asks it what has expired, too: it alone can open it.
            sources = [store.name for store in stores if store.role is Role.SOURCE]
            looks = health.unlooked(connection, sources, pause_us=self.budgets.expiry // _US)
            waiting += [(name, Phase.REVOKE) for name in looks]
            return health.announce(connection, waiting, lease_us=self.budgets.lease // _US, cap=self.cap)

    def heard(self, adapter: str) -> None:
        """Note that a worker has taken an adapter's announcement."""
        with self.engine.begin() as connection:
            health.heard(connection, adapter)

    def job(self, job: str, *, tenant: str | None = None) -> JobView:
        """Give one job; a missing and another tenant's raise the same `JobNotFound`."""
        with self.engine.begin() as connection:
            return views.view(connection, job, tenant)

    def jobs(self, *, tenant: str | None, state: JobState | None, after: str | None, limit: int) -> Sequence[JobView]:
        """Give at most `limit` jobs after the job `after`, in the order of their filing."""
        with self.engine.begin() as connection:
            return views.listed(connection, tenant=tenant, state=state, after=after, limit=limit)

    def receipts(self, job: str, *, tenant: str | None = None) -> Sequence[ReceiptView]:
        """Give a job's receipts in the order in which they were written."""
        with self.engine.begin() as connection:
            views.view(connection, job, tenant)
            return views.receipts(connection, job)

    def overdue(self, *, tenant: str | None, before: datetime, limit: int) -> Sequence[JobView]:
        """Give at most `limit` jobs that are late or have a copy that outlives its window, longest overdue first."""
        with self.engine.begin() as connection:
            now = micros(self.clock.now())
            return views.overdue(connection, tenant=tenant, before_us=micros(before), now_us=now, limit=limit)

    def retry(self, job: str, *, tenant: str | None = None) -> int:
        """Make every parked or waiting unit of a job due now; give how many."""
        with self.engine.begin() as connection:
            return intervene.retry(connection, job, tenant)

    def cancel(self, job: str, *, tenant: str | None = None) -> None:
        """Cancel a job of which nothing was begun."""
        with self.engine.begin() as connection:
            intervene.cancel(connection, job, tenant)
            cancelled(connection, job, micros(self.clock.now()), self.rules.worker)

    def waive(self, job: str, waiver: Waiver, *, tenant: str | None = None) -> bool:
        """Let a job pass one store by name; give whether that is new."""
        now = self.clock.now()
        with self.engine.begin() as connection:
            new = intervene.waive(connection, job, waiver, tenant=tenant, at=now, stores=self.rules.stores)
            advance(connection, self.rules, micros(now), [job])
            return new

    def epoch(self, adapter: str) -> int:
        """Give the epoch of a source."""
        with self.engine.begin() as connection:
            return epochs.of(connection, adapter)

    def raise_epoch(self, adapter: str) -> int:
        """Begin a new epoch of a source, and give it."""
        with self.engine.begin() as connection:
            return epochs.raise_(connection, adapter)

    def tombstone_keys(self) -> Collection[str]:
        """Name every key under which there are tombstones."""
        with self.engine.begin() as connection:
            return epochs.key_ids(connection)

    def tombstones(self) -> Iterator[tuple[str, UUID, Tombstone]]:
        """Give every tombstone with its tenant and job."""
        with self.engine.begin() as connection:
            yield from epochs.tombstones(connection)

    def targets_of(self, source: str) -> Iterator[tuple[UUID, Target]]:
        """Give what a source has named to jobs that are not verified yet."""
        with self.engine.begin() as connection:
            yield from epochs.targets(connection, source)

    def kept_by(self, source: str) -> Iterator[tuple[UUID, str]]:
        """Give what jobs have left in a source because of a hold and not revoked yet."""
        with self.engine.begin() as connection:
            yield from epochs.kept(connection, source)

    def unknown_jobs(self, ids: Collection[UUID]) -> frozenset[UUID]:
        """Name those of these ids that are of no job."""
        with self.engine.begin() as connection:
            return accepting.unknown(connection, ids)

    def note_restore(self, copy: str, *, tombstones: int, erased: int, began: datetime) -> None:
        """Write down that a copy was restored and brought up to date."""
        with self.engine.begin() as connection:
            ended = micros(self.clock.now())
            epochs.note(connection, copy, tombstones=tombstones, erased=erased, began=micros(began), ended=ended)

    def place(self, new: Sequence[NewHold]) -> None:
        """Write holds, all or none: no unit that they cover is claimed from then on."""
        with self.engine.begin() as connection:
            holds.place(connection, new)

    def holds_on(self, tenant: str, subject_ref: str) -> Holds:
        """Give the holds that stand on a subject now."""
        with self.engine.begin() as connection:
            return holds.of_subject(connection, tenant, subject_ref)

    def release(self, hold: str, *, by_ref: str, tenant: str | None = None) -> None:
        """Lift a hold."""
        with self.engine.begin() as connection:
            holds.release(connection, hold, tenant=tenant, by_ref=by_ref, at=self.clock.now())

    def hold(self, hold: str, *, tenant: str | None = None) -> HoldView:
        """Give one hold."""
        with self.engine.begin() as connection:
            return holds.one(connection, hold, tenant)

    def holds(self, *, tenant: str | None, released: bool, after: str | None, limit: int) -> Sequence[HoldView]:
        """Give at most `limit` holds after the hold `after`, in the order of their placing."""
        with self.engine.begin() as connection:
            return holds.listed(connection, tenant=tenant, released=released, after=after, limit=limit)

    def counts(self, job: str) -> dict[str, int]:
        """Give how many targets were written down for each adapter."""
        with self.engine.begin() as connection:
            return views.counts(connection, job)

    def no_lineage(self, job: str) -> dict[str, int]:
        """Give how many derived things without an origin each adapter has counted for a job."""
        with self.engine.begin() as connection:
            return views.no_lineage(connection, job)
