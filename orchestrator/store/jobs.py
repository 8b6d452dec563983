"""Jobs in the control database: writing an accepted one, and what may be read of any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from uuid import UUID

import sqlalchemy as sa

from orchestrator.domain.contract import Role
from orchestrator.domain.errors import IdempotencyConflict, JobNotFound
from orchestrator.domain.job import JobView, NewJob, Purpose, ReceiptView, Result, Store
from orchestrator.domain.states import JobState
from orchestrator.domain.unit import Phase, unit_id
from orchestrator.store import tables as t
from orchestrator.store.engine import now_us


def micros(at: datetime) -> int:
    """Give an aware datetime as microseconds since 1970 UTC."""
    delta = at - datetime(1970, 1, 1, tzinfo=UTC)
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds


def moment(us: int) -> datetime:
    """Give microseconds since 1970 UTC as an aware datetime."""
    return datetime.fromtimestamp(us // 1_000_000, UTC).replace(microsecond=us % 1_000_000)


def accept(connection: sa.Connection, job: NewJob, stores: Sequence[Store], worker: str) -> tuple[UUID, bool]:
    """Write a job, its first transition and its first units; a repeated idempotency key gives the first job."""
    if job.idempotency_ref is not None:
        known = connection.execute(
            sa.select(t.jobs.c.id, t.jobs.c.payload_sha256).where(
                t.jobs.c.tenant == job.scope.tenant, t.jobs.c.idempotency_ref == job.idempotency_ref
            )
        ).one_or_none()
        if known is not None:
            if known.payload_sha256 != job.payload_sha256:
                raise IdempotencyConflict
            return UUID(known.id), False
    at = micros(job.requested_at)
    connection.execute(
        t.jobs.insert().values(
            id=str(job.id),
            purpose=job.purpose.value,
            tenant=job.scope.tenant,
            user_id=job.scope.user,
            project=job.scope.project,
            selector_kind=job.selector.kind.value,
            selector_value=job.selector.value,
            subject_ref=job.subject_ref,
            selector_ref=job.selector_ref,
            trigger_kind="request",
            reason_code=job.reason.value,
            reference=job.reference,
            requested_by_ref=job.requested_by_ref,
            idempotency_ref=job.idempotency_ref,
            payload_sha256=job.payload_sha256,
            state=JobState.REQUESTED.value,
            round=1,
            requested_at_us=at,
            due_at_us=micros(job.due_at),
        )
    )
    connection.execute(
        t.transitions.insert().values(job_id=str(job.id), to_state=JobState.REQUESTED.value, at_us=at, worker=worker)
    )
    phase = Phase.REVOKE if job.purpose is Purpose.ERASE else Phase.FIND
    open_units(connection, [(str(job.id), s.name, phase, 0, 1, 0) for s in stores if s.role is Role.SOURCE], stores)
    return job.id, True


def open_units(
    connection: sa.Connection,
    wanted: Sequence[tuple[str, str, Phase, int, int, int]],
    stores: Sequence[Store],
    *,
    pause_us: int = 0,
) -> None:
    """Open units given as (job, adapter, phase, page, round, find pass), due after a pause; one that is there stays."""
    if not wanted:
        return
    required = {store.name: int(store.required) for store in stores}
    due = connection.execute(sa.select(now_us(connection))).scalar_one() + pause_us
    rows = [
        {
            "id": str(unit_id(UUID(job), adapter, phase, page, round_)),
            "job_id": job,
            "adapter": adapter,
            "phase": phase.value,
            "page": page,
            "round": round_,
            "find_pass": find_pass,
            "required": required[adapter],
            "next_attempt_at_us": due,
        }
        for job, adapter, phase, page, round_, find_pass in wanted
    ]
    insert_new(connection, t.units, rows)


def insert_new(connection: sa.Connection, table: sa.Table, rows: Sequence[Mapping[str, object]]) -> None:
    """Insert rows, leaving those that are there already as they are."""
    if not rows:
        return
    names = list(rows[0])
    marks = ", ".join(f":{name}" for name in names)
    # The names are columns of our own tables; every value is bound.
    text = f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({marks}) ON CONFLICT DO NOTHING"  # noqa: S608
    connection.execute(sa.text(text), list(rows))


def view(connection: sa.Connection, job: str, tenant: str | None) -> JobView:
    """Give one job; a missing one and another tenant's are told apart by nobody."""
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


def views(connection: sa.Connection, *where: sa.ColumnElement[bool], limit: int, tenant: str | None) -> list[JobView]:
    """Give what may be shown of the jobs that match, in the order of their ids (which is that of their filing)."""
    query = sa.select(t.jobs).where(*where).order_by(t.jobs.c.id).limit(limit)
    if tenant is not None:
        query = query.where(t.jobs.c.tenant == tenant)
    rows = connection.execute(query).all()
    ids = [row.id for row in rows]
    units = connection.execute(
        sa.select(t.units.c.job_id, t.units.c.adapter, t.units.c.phase, t.units.c.parked, t.units.c.attempts).where(
            t.units.c.job_id.in_(ids)
        )
    ).all()
    counted = connection.execute(
        sa.select(t.receipts.c.job_id, sa.func.max(t.receipts.c.expected + t.receipts.c.extra).label("named"))
        .where(t.receipts.c.job_id.in_(ids), t.receipts.c.phase.in_(["revoke", "erase"]))
        .group_by(t.receipts.c.job_id)
    ).all()
    named = {row.job_id: row.named for row in counted}
    return [
        JobView(
            id=row.id,
            tenant=row.tenant,
            state=JobState(row.state),
            purpose=Purpose(row.purpose),
            selector=row.selector_kind,
            reason=row.reason_code,
            reference=row.reference,
            round=row.round,
            requested_at=moment(row.requested_at_us),
            due_at=moment(row.due_at_us),
            verified_at=None if row.verified_at_us is None else moment(row.verified_at_us),
            completed_at=None if row.completed_at_us is None else moment(row.completed_at_us),
            parked=tuple((u.adapter, u.phase, u.parked) for u in units if u.job_id == row.id and u.parked is not None),
            attempts=max((u.attempts for u in units if u.job_id == row.id), default=0),
            result=_result(JobState(row.state), named.get(row.id, 0)),
        )
        for row in rows
    ]


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
            residuals=tuple(code for code in row.residuals.strip("[]").replace('"', "").split(", ") if code),
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


def _result(state: JobState, named: int) -> Result | None:
    if state not in {JobState.VERIFIED, JobState.COMPLETED}:
        return None
    return Result.ERASED if named else Result.NOTHING_FOUND
