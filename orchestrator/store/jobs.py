"""Writing accepted jobs: their rows, first transitions and first units, in one transaction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Final
from uuid import UUID

import sqlalchemy as sa

from orchestrator.domain.contract import Role
from orchestrator.domain.errors import IdempotencyConflict
from orchestrator.domain.job import NewJob, Purpose, Store, Trigger
from orchestrator.domain.selector import SelectorKind
from orchestrator.domain.states import JobState
from orchestrator.domain.unit import Phase
from orchestrator.store import bulk
from orchestrator.store import tables as t
from orchestrator.store.among import among
from orchestrator.store.clock import micros
from orchestrator.store.follow import NewUnit, open_units

_j = t.jobs.c
Key = tuple[str, str | None]
ANYTHING: Final = "*"
_FILED_BEFORE: Final = "(tenant, idempotency_ref) WHERE idempotency_ref IS NOT NULL DO NOTHING"
_TAKE_TURNS: Final = sa.text("SELECT pg_advisory_xact_lock(7309453, 1)")


def unknown(connection: sa.Connection, ids: Collection[UUID]) -> frozenset[UUID]:
    """Name those of these ids that are of no job."""
    known = connection.execute(sa.select(_j.id).where(among(_j.id)), {"ids": [str(i) for i in ids]}).scalars()
    return frozenset(ids) - {UUID(i) for i in known}


def accept(
    connection: sa.Connection, jobs: Sequence[NewJob], stores: Sequence[Store], worker: str
) -> list[tuple[UUID, bool]]:
    """Write jobs that are new; a repeated idempotency key gives the first job. Give each id and whether it is new.

    Raises `IdempotencyConflict` where a key was used for another request.
    """
    # In one order for everybody: two batches that share keys would otherwise wait for each other.
    rows = [_row(job) for job in sorted(jobs, key=lambda job: (job.scope.tenant, job.idempotency_ref or ""))]
    bulk.insert(connection, t.jobs, rows, conflict=_FILED_BEFORE)
    # Who was first is known only now: another transaction may have filed a key at this very moment.
    known = _known(connection, jobs)
    answers: list[tuple[UUID, bool]] = []
    for job in jobs:
        first, payload = known.get((job.scope.tenant, job.idempotency_ref), (job.id, job.payload_sha256))
        if payload != job.payload_sha256:
            raise IdempotencyConflict
        answers.append((first, first == job.id))
    new = [job for job, (_, is_new) in zip(jobs, answers, strict=True) if is_new]
    state = JobState.REQUESTED.value
    moves = [
        {"job_id": str(job.id), "to_state": state, "at_us": micros(job.requested_at), "worker": worker} for job in new
    ]
    bulk.insert(connection, t.transitions, moves)
    sources = [store.name for store in stores if store.role is Role.SOURCE]
    first_phase = {Purpose.ERASE: Phase.REVOKE, Purpose.PREVIEW: Phase.FIND}
    units = [NewUnit(str(job.id), 1, name, first_phase[job.purpose]) for job in new for name in sources]
    open_units(connection, units, stores)
    return answers


def expire(connection: sa.Connection, jobs: Sequence[NewJob], stores: Sequence[Store], worker: str) -> list[UUID]:
    """Write jobs of what has expired, where no open one is at it already; give the ids of those that are new."""
    if connection.dialect.name == "postgresql":  # of several dispatchers one writes, and the others see its jobs
        connection.execute(_TAKE_TURNS)
    of_subjects = (_j.tenant.in_({job.scope.tenant for job in jobs}), _j.subject_ref.in_({j.subject_ref for j in jobs}))
    query = sa.select(_j.tenant, _j.selector_ref, _j.state, _j.payload_sha256).where(
        *of_subjects,
        _j.trigger_kind == Trigger.EXPIRY.value,
        _j.completed_at_us.is_(None),
        _j.cancelled_at_us.is_(None),
    )
    at_it = defaultdict[Key, set[str]](set)
    for tenant, selector_ref, state, payload in connection.execute(query):
        # Whoever has not revoked yet will name all that has expired by then.
        at_it[tenant, selector_ref].add(ANYTHING if state == JobState.REQUESTED.value else payload)
    new = [j for j in jobs if at_it[j.scope.tenant, j.selector_ref].isdisjoint((ANYTHING, j.payload_sha256))]
    return [job for job, _ in accept(connection, new, stores, worker)]


def _known(connection: sa.Connection, jobs: Sequence[NewJob]) -> dict[Key, tuple[UUID, str]]:
    keys = {job.idempotency_ref for job in jobs if job.idempotency_ref is not None}
    if not keys:
        return {}
    rows = connection.execute(
        sa.select(_j.tenant, _j.idempotency_ref, _j.id, _j.payload_sha256).where(
            _j.tenant.in_({job.scope.tenant for job in jobs}), _j.idempotency_ref.in_(keys)
        )
    )
    return {(row.tenant, row.idempotency_ref): (UUID(row.id), row.payload_sha256) for row in rows}


def _row(job: NewJob) -> dict[str, object]:
    return {
        "id": str(job.id),
        "purpose": job.purpose.value,
        "tenant": job.scope.tenant,
        "user_id": job.scope.user,
        "project": job.scope.project,
        "selector_kind": written_kind(job.selector.kind),
        "selector_value": job.selector.value,
        "subject_ref": job.subject_ref,
        "selector_ref": job.selector_ref,
        "trigger_kind": job.trigger.value,
        "reason_code": job.reason.value,
        "reference": job.reference,
        "requested_by_ref": job.requested_by_ref,
        "idempotency_ref": job.idempotency_ref,
        "payload_sha256": job.payload_sha256,
        "state": JobState.REQUESTED.value,
        "round": 1,
        "requested_at_us": micros(job.requested_at),
        "due_at_us": micros(job.due_at),
    }


def written_kind(kind: SelectorKind) -> str:
    """Give what the table says: what has expired is of a subject, by the trigger `expiry`."""
    return SelectorKind.SUBJECT.value if kind is SelectorKind.EXPIRED else kind.value


def read_kind(selector_kind: str, trigger_kind: str) -> SelectorKind:
    """Give the kind of selector that a row tells."""
    return SelectorKind.EXPIRED if trigger_kind == Trigger.EXPIRY.value else SelectorKind(selector_kind)
