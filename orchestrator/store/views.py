"""What may be read of jobs: ids, codes, counts and times."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from orchestrator.domain.errors import JobNotFound
from orchestrator.domain.job import JobView, Purpose, ReceiptView, Result, Trigger
from orchestrator.domain.states import OVER, JobState
from orchestrator.store import tables as t
from orchestrator.store import windows
from orchestrator.store.among import among
from orchestrator.store.clock import moment
from orchestrator.store.holds import waits_for_hold
from orchestrator.store.jobs import read_kind


def view(connection: sa.Connection, job: str, tenant: str | None) -> JobView:
    """Give one job; a missing one and another tenant's raise the same `JobNotFound`."""
    found = views(connection, t.jobs.c.id == job, limit=1, tenant=tenant)
    if not found:
        raise JobNotFound
    return found[0]


def listed(
    connection: sa.Connection, *, tenant: str | None, state: JobState | None, after: str | None, limit: int
) -> list[JobView]:
    """Give jobs, oldest first, after the job `after`; previews are not listed."""
    where = [t.jobs.c.purpose == Purpose.ERASE.value]
    if state is not None:
        where.append(t.jobs.c.state == state.value)
    if after is not None:
        where.append(t.jobs.c.id > after)
    return views(connection, *where, limit=limit, tenant=tenant)


def states(connection: sa.Connection, jobs: Sequence[str]) -> dict[str, JobState]:
    """Give where each of these jobs is."""
    query = sa.select(t.jobs.c.id, t.jobs.c.state).where(among(t.jobs.c.id))
    return {row.id: JobState(row.state) for row in connection.execute(query, {"ids": jobs})}


def overdue(connection: sa.Connection, *, tenant: str | None, before_us: int, now_us: int, limit: int) -> list[JobView]:
    """Give jobs that are not verified and were due before a time, the longest overdue first.

    Among them are verified ones with a copy that lives on although its window has ended by now.
    """
    j, w = t.jobs.c, t.windows.c
    late = j.verified_at_us.is_(None) & j.cancelled_at_us.is_(None) & (j.due_at_us < before_us)
    outlived = sa.exists().where(w.job_id == j.id, w.closed_at_us.is_(None), w.until_us < now_us)
    where = late | ((j.state == JobState.VERIFIED.value) & outlived)
    found = views(connection, where, j.purpose == Purpose.ERASE.value, limit=limit, tenant=tenant, order=j.due_at_us)
    return sorted(found, key=lambda view: (view.due_at, view.id))


def views(
    connection: sa.Connection,
    *where: sa.ColumnElement[bool],
    limit: int,
    tenant: str | None,
    order: sa.ColumnElement[int] | None = None,
) -> list[JobView]:
    """Give what may be shown of the jobs that match, in the order of their ids (which is that of their filing)."""
    query = sa.select(t.jobs).where(*where).order_by(t.jobs.c.id if order is None else order, t.jobs.c.id).limit(limit)
    if tenant is not None:
        query = query.where(t.jobs.c.tenant == tenant)
    rows = connection.execute(query).all()
    facts = _Facts(connection, [row.id for row in rows])
    return [
        JobView(
            id=row.id,
            tenant=row.tenant,
            state=JobState(row.state),
            purpose=Purpose(row.purpose),
            trigger=Trigger(row.trigger_kind),
            selector=read_kind(row.selector_kind, row.trigger_kind).value,
            reason=row.reason_code,
            reference=row.reference,
            round=row.round,
            requested_at=moment(row.requested_at_us),
            due_at=moment(row.due_at_us),
            verified_at=None if row.verified_at_us is None else moment(row.verified_at_us),
            completed_at=None if row.completed_at_us is None else moment(row.completed_at_us),
            parked=tuple(facts.parked[row.id]),
            held=row.id in facts.held and row.state not in OVER,
            waived=tuple(sorted(facts.waived[row.id])),
            windows=tuple(facts.windows.get(row.id, ())),
            last_error=facts.last_error.get(row.id, (None, None))[0],
            failed_in=facts.last_error.get(row.id, (None, None))[1],
            attempts=facts.attempts.get(row.id, 0),
            result=_result(row, facts),
        )
        for row in rows
    ]


class _Facts:
    """What other tables say about jobs, read once for all of them."""

    def __init__(self, connection: sa.Connection, ids: Sequence[str]) -> None:
        u, j = t.units.c, t.jobs.c
        mine = u.job_id.in_(ids)
        most = sa.select(u.job_id, sa.func.max(u.attempts)).where(mine).group_by(u.job_id)
        self.attempts = {row[0]: row[1] for row in connection.execute(most)}
        self.parked: dict[str, list[tuple[str, str, str]]] = defaultdict(list)
        stuck = sa.select(u.job_id, u.adapter, u.phase, u.parked).where(mine, u.status == "parked")
        for row in connection.execute(stuck.distinct().order_by(u.job_id, u.adapter, u.phase, u.parked)):
            self.parked[row.job_id].append((row.adapter, row.phase, row.parked))
        errors = sa.select(u.job_id, u.last_error_code, u.adapter).where(mine, u.status != t.DONE)
        errors = errors.where(u.last_error_code.is_not(None)).order_by(u.next_attempt_at_us)
        self.last_error: dict[str, tuple[str, str]] = {row[0]: (row[1], row[2]) for row in connection.execute(errors)}
        held = sa.select(u.job_id).distinct().join(t.jobs, j.id == u.job_id)
        held = held.where(mine, u.status == t.PENDING, waits_for_hold())
        self.held = set(connection.execute(held).scalars())
        self.waived: dict[str, set[str]] = defaultdict(set)
        w = t.waivers.c
        for job, adapter in connection.execute(sa.select(w.job_id, w.adapter).where(w.job_id.in_(ids))):
            self.waived[job].add(adapter)
        self.windows = windows.of_jobs(connection, ids)
        r = t.receipts.c
        named = sa.select(r.job_id, sa.func.max(r.expected + r.extra))
        named = named.where(r.job_id.in_(ids), r.phase.in_(["revoke", "erase"])).group_by(r.job_id)
        self.named = {row[0]: row[1] for row in connection.execute(named)}
        looked = sa.select(r.job_id, r.adapter, r.round, r.outcome)
        self.looked = defaultdict(list)
        for look in connection.execute(looked.where(r.job_id.in_(list(self.waived)), r.phase == "verify")):
            self.looked[look.job_id, look.adapter, look.round].append(look.outcome)


def _result(row: sa.Row[Any], facts: _Facts) -> Result | None:
    if row.state not in {JobState.VERIFIED.value, JobState.COMPLETED.value}:
        return None
    for adapter in facts.waived[row.id]:
        seen = facts.looked[row.id, adapter, row.round]
        if not seen or "present" in seen:
            return Result.WAIVED
    return Result.ERASED if facts.named.get(row.id, 0) else Result.NOTHING_FOUND


def receipts(connection: sa.Connection, job: str) -> list[ReceiptView]:
    """Give a job's receipts in the order in which they were written."""
    rows = connection.execute(
        sa.select(t.receipts).where(t.receipts.c.job_id == job).order_by(t.receipts.c.finished_at_us, t.receipts.c.id)
    ).all()
    return [
        ReceiptView(
            adapter=row.adapter,
            phase=row.phase,
            outcome=row.outcome,
            page=row.page,
            round=row.round,
            attempt=row.attempt,
            expected=row.expected,
            erased=row.erased,
            already_absent=row.already_absent,
            scheduled=row.scheduled,
            extra=row.extra,
            remaining=row.remaining,
            reach=row.reach,
            residuals=tuple(json.loads(row.residuals)),
            finished_at=moment(row.finished_at_us),
        )
        for row in rows
    ]


def counts(connection: sa.Connection, job: str) -> dict[str, int]:
    """Give how many targets were written down for each adapter: what a preview answers with."""
    rows = connection.execute(
        sa.select(t.targets.c.adapter, sa.func.count())
        .where(t.targets.c.job_id == job, t.targets.c.round == 1)
        .group_by(t.targets.c.adapter)
    ).all()
    return {row[0]: row[1] for row in rows}


def no_lineage(connection: sa.Connection, job: str) -> dict[str, int]:
    """Give how many derived things without an origin each adapter has counted for a job."""
    rows = connection.execute(
        sa.select(t.units.c.adapter, sa.func.max(t.units.c.no_lineage))
        .where(t.units.c.job_id == job, t.units.c.phase == "find")
        .group_by(t.units.c.adapter)
    ).all()
    return {adapter: count for adapter, count in rows if count}
