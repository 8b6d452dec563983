"""Units in the control database: claimed by conditional update, renewed, given back, taken back."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

import sqlalchemy as sa

from orchestrator.domain.codes import ErrorCode, Parked
from orchestrator.domain.states import OVER, JobState
from orchestrator.domain.unit import Phase
from orchestrator.store import bulk, health
from orchestrator.store import tables as t
from orchestrator.store.among import among
from orchestrator.store.clock import now_us, read_now
from orchestrator.store.holds import waits_for_hold

_ORDER: Final = list(Phase)
_ENDED: Final = [t.written(state) for state in JobState if state in OVER]
_u, _j, _a = t.units.c, t.jobs.c, t.attempts.c
# The one definition of what may be claimed: `due` and `claim` cannot disagree about it.
_CLOSING: Final = (_u.phase == t.written(Phase.CLOSE)) & (_j.state == t.written(JobState.VERIFIED))
_CLAIMABLE: Final = (
    (_u.status == t.PENDING)
    & (_u.next_attempt_at_us <= now_us())
    & ((_j.state.not_in(_ENDED) & ~waits_for_hold()) | _CLOSING)
)
_WITH_JOBS: Final = sa.join(t.units, t.jobs, _j.id == _u.job_id)
_OF_PHASE: Final = (_u.adapter == sa.bindparam("adapter")) & (_u.phase == sa.bindparam("phase"))
_NEVER_TRIED, _TRIED = _u.attempts == sa.literal_column("0"), _u.attempts > sa.literal_column("0")


def _tenants() -> sa.CTE:
    """Give the tenants with pending units of a phase, each found from the one before it along an index."""
    least = sa.select(sa.func.min(_u.tenant).label("tenant")).where(_OF_PHASE, _u.status == t.PENDING)
    tenants = least.cte("tenants", recursive=True)
    after = least.where(_u.tenant > tenants.c.tenant).correlate(tenants).scalar_subquery()
    return tenants.union_all(sa.select(after).where(tenants.c.tenant.is_not(None)))


def _in_turn() -> sa.Select[tuple[str, int, int]]:
    """Give units that were never tried: tenants in turn, and of each the unit that has waited longest.

    Each tenant is asked for no more than a batch, so a long queue costs no more than a short one.
    """
    tenants, mine, most = _tenants(), t.units.alias("mine"), sa.bindparam("most", type_=sa.Integer)
    longest = (
        sa.select(_u.id)
        .select_from(_WITH_JOBS)
        .where(_OF_PHASE, _NEVER_TRIED, _CLAIMABLE, _u.tenant == tenants.c.tenant)
        .order_by(_u.next_attempt_at_us, _u.id)
        .limit(most)
        .correlate(tenants)
    )
    due = mine.c.next_attempt_at_us
    turn = sa.func.row_number().over(partition_by=mine.c.tenant, order_by=(due, mine.c.id)).label("turn")
    query = sa.select(mine.c.id, due.label("due"), turn).select_from(tenants.join(mine, mine.c.id.in_(longest)))
    return query.order_by("turn", "due", mine.c.id).limit(most)


_FIRST: Final = _in_turn()
_AGAIN: Final = (
    sa.select(_u.id, _u.next_attempt_at_us.label("due"))
    .select_from(_WITH_JOBS)
    .where(_OF_PHASE, _TRIED, _CLAIMABLE)
    .order_by("due", _u.id)
    .limit(1)
)
_DUE: Final[sa.Select[Any]] = (
    sa.select(sa.literal_column("1")).select_from(_WITH_JOBS).where(_OF_PHASE, _CLAIMABLE).limit(1)
)
_TAKE: Final = (
    t.units.update()
    .where(among(_u.id), _u.status == t.PENDING)
    .values(
        status="running",
        lease_owner=sa.bindparam("owner"),
        lease_until_us=sa.bindparam("until"),
        deadline_us=sa.bindparam("deadline"),
        fence=_u.fence + 1,
        attempts=_u.attempts + 1,
    )
    .returning(_u.id)
)

# The call of an earlier claim that was lost may still act: a hold waits for it.
_LOST = sa.exists().where(_a.unit_id == _u.id, _a.error_code == ErrorCode.LEASE_ENDED.value)
_KEPT: Final = sa.case((_LOST, _u.deadline_us), else_=None)


def claim(
    connection: sa.Connection,
    adapter: str,
    phase: Phase,
    *,
    owner: str,
    limit: int,
    lease_us: int,
    cap: int,
    deadline_us: int,
) -> list[str]:
    """Lease due units to `owner` and give their ids; first attempts in batches, later ones singly."""
    now = read_now(connection)
    most = health.room(connection, adapter, cap=cap, limit=limit, now=now)
    if not most:
        return []
    asked = {"adapter": adapter, "phase": phase.value, "most": most}
    first, again = connection.execute(_FIRST, asked).all(), connection.execute(_AGAIN, asked).all()
    # A unit that failed is tried alone, so that one bad order cannot hold the others of its batch. It comes before
    # whatever became due after it: new work must not keep it waiting for ever.
    chosen = again if again and (not first or again[0].due <= min(row.due for row in first)) else first
    if not chosen:
        return []
    leased = {"owner": owner, "until": now + lease_us, "deadline": deadline_us}
    taken = connection.execute(_TAKE, {"ids": [row.id for row in chosen], **leased})
    return sorted(taken.scalars().all())


def give_back(connection: sa.Connection, ids: Collection[str]) -> None:
    """Make units claimable again whose adapter was not called: that is no attempt."""
    connection.execute(
        t.units.update()
        .where(_u.id.in_(list(ids)), _u.status == t.RUNNING)
        .values(status="pending", lease_owner=None, lease_until_us=None, deadline_us=_KEPT, attempts=0)
    )


def renew(connection: sa.Connection, owner: str, lease_us: int) -> int:
    """Extend the leases that `owner` still holds."""
    held = (_u.lease_owner == owner) & (_u.status == t.RUNNING)
    return connection.execute(t.units.update().where(held).values(lease_until_us=now_us() + lease_us)).rowcount


def take_back(connection: sa.Connection, max_attempts: int, *, deadline_us: int) -> tuple[int, int]:
    """Make units whose lease has ended claimable again, or park them after their last attempt; give both counts.

    Their call may still act until its deadline, which therefore stays written down; `deadline_us`
    is the latest that a claim may have whose worker (of release 0001) has written none.
    """
    now = read_now(connection)
    rows = connection.execute(
        sa.select(_u.id, _u.phase, _u.attempts, _u.fence, _u.deadline_us)
        .where(_u.status == t.RUNNING, _u.lease_until_us <= now)
        .order_by(_u.id)
        .with_for_update(skip_locked=True)
    ).all()
    code = ErrorCode.LEASE_ENDED.value
    bulk.insert(
        connection,
        t.attempts,
        [{"unit_id": r.id, "attempt": r.attempts, "fence": r.fence, "at_us": now, "error_code": code} for r in rows],
    )
    free = {"lease_owner": None, "lease_until_us": None, "last_error_code": code, "next_attempt_at_us": now}
    taken = [
        (
            r.attempts >= max_attempts and r.phase != Phase.CLOSE.value,
            {"id": r.id, "deadline_us": r.deadline_us or deadline_us, **free},
        )
        for r in rows
    ]
    spent, again = ([row for is_spent, row in taken if is_spent is which] for which in (True, False))
    bulk.update(connection, t.units, "id", [{**row, "status": "pending"} for row in again])
    parked = {"status": "parked", "parked": Parked.ATTEMPTS_EXHAUSTED.value}
    bulk.update(connection, t.units, "id", [{**row, **parked} for row in spent])
    return len(again), len(spent)


def due(connection: sa.Connection, adapters: Sequence[str]) -> list[tuple[str, Phase]]:
    """Name the adapters and phases with due units, in the order in which a job goes through its phases."""
    return [
        (adapter, phase)
        for phase in _ORDER
        for adapter in sorted(adapters)
        if connection.execute(_DUE, {"adapter": adapter, "phase": phase.value}).scalar() is not None
    ]
