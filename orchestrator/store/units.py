"""Units in the control database: claimed by conditional update, renewed, taken back, announced."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from orchestrator.domain.codes import ErrorCode, Parked, Reason
from orchestrator.domain.contract import EraseOrder, Target
from orchestrator.domain.scope import Scope
from orchestrator.domain.selector import Selector, SelectorKind
from orchestrator.domain.unit import Claimed, Phase
from orchestrator.store import tables as t
from orchestrator.store.engine import now_us

MAX_ROUNDS = 5
_ORDER = [Phase.REVOKE, Phase.FIND, Phase.ERASE, Phase.VERIFY]


def claim(
    connection: sa.Connection, adapter: str, phase: Phase, *, owner: str, limit: int, lease_us: int, cap: int
) -> list[str]:
    """Lease due units to `owner` and give their ids; first attempts in batches, later ones singly."""
    u = t.units
    mine = (u.c.adapter == adapter) & (u.c.status == "running")
    running = connection.execute(sa.select(sa.func.count(u.c.lease_owner.distinct())).where(mine)).scalar_one()
    if running >= cap:
        return []
    due = (
        (u.c.adapter == adapter)
        & (u.c.phase == phase.value)
        & (u.c.status == "pending")
        & (u.c.next_attempt_at_us <= now_us(connection))
    )
    # A unit that failed is tried alone, so that one bad order cannot hold the others of its batch.
    turn = sa.func.row_number().over(partition_by=t.jobs.c.tenant, order_by=u.c.id)
    ranked = (
        sa.select(u.c.id, u.c.attempts, turn.label("turn"))
        .join(t.jobs, t.jobs.c.id == u.c.job_id)
        .where(due)
        .order_by(u.c.attempts > 0, sa.text("turn"), u.c.id)
        .limit(limit)
    )
    rows = connection.execute(ranked).all()
    first = [row.id for row in rows if row.attempts == 0]
    ids = first or [row.id for row in rows[:1]]
    now = connection.execute(sa.select(now_us(connection))).scalar_one()
    taken = connection.execute(
        u.update()
        .where(u.c.id.in_(ids), u.c.status == "pending")
        .values(
            status="running",
            lease_owner=owner,
            lease_until_us=now + lease_us,
            fence=u.c.fence + 1,
            attempts=u.c.attempts + 1,
        )
        .returning(u.c.id)
    )
    return sorted(taken.scalars())


def load(connection: sa.Connection, ids: Sequence[str], *, page: int, deadline: datetime) -> list[Claimed]:
    """Build the orders of claimed units: the job's scope and selector, a page of targets, a page of what is known."""
    u, j = t.units, t.jobs
    rows = connection.execute(
        sa.select(
            u,
            j.c.tenant,
            j.c.user_id,
            j.c.project,
            j.c.selector_kind,
            j.c.selector_value,
            j.c.revision,
            j.c.reason_code,
        )
        .join(j, j.c.id == u.c.job_id)
        .where(u.c.id.in_(list(ids)))
        .order_by(u.c.id)
    ).all()
    own = _own_targets(connection, ids)
    known = _known_targets(connection, rows, page)
    claimed = []
    for row in rows:
        seen = known[row.id]
        order = EraseOrder(
            job=UUID(row.job_id),
            unit=UUID(row.id),
            key=row.id,
            scope=Scope(tenant=row.tenant, user=row.user_id, project=row.project),
            selector=Selector(kind=SelectorKind(row.selector_kind), value=row.selector_value),
            known=tuple(seen[:page]),
            cursor=row.cursor,
            targets=tuple(own[row.id]),
            revision=row.revision,
            attempt=row.attempts,
            round=row.round,
            fence=row.fence,
            deadline=deadline,
        )
        claimed.append(
            Claimed(
                order=order,
                adapter=row.adapter,
                reason=Reason(row.reason_code),
                phase=Phase(row.phase),
                page=row.page,
                find_pass=row.find_pass,
                known_page=row.known_page,
                more_known=len(seen) > page,
                last_round=row.round >= MAX_ROUNDS,
            )
        )
    return claimed


def renew(connection: sa.Connection, owner: str, lease_us: int) -> int:
    """Extend the leases that `owner` still holds."""
    u = t.units
    held = (u.c.lease_owner == owner) & (u.c.status == "running")
    return connection.execute(u.update().where(held).values(lease_until_us=now_us(connection) + lease_us)).rowcount


def take_back(connection: sa.Connection, max_attempts: int) -> tuple[int, int]:
    """Make units whose lease has ended claimable again, or park them after their last attempt; give both counts."""
    u = t.units
    now = connection.execute(sa.select(now_us(connection))).scalar_one()
    rows = connection.execute(
        sa.select(u.c.id, u.c.attempts, u.c.fence)
        .where(u.c.status == "running", u.c.lease_until_us < now)
        .with_for_update()
    ).all()
    if not rows:
        return 0, 0
    code = ErrorCode.LEASE_ENDED.value
    connection.execute(
        t.attempts.insert(),
        [{"unit_id": r.id, "attempt": r.attempts, "fence": r.fence, "at_us": now, "error_code": code} for r in rows],
    )
    spent = [r.id for r in rows if r.attempts >= max_attempts]
    again = [r.id for r in rows if r.attempts < max_attempts]
    free: dict[str, object] = {"lease_owner": None, "lease_until_us": None, "last_error_code": code}
    connection.execute(u.update().where(u.c.id.in_(again)).values(status="pending", next_attempt_at_us=now, **free))
    connection.execute(
        u.update().where(u.c.id.in_(spent)).values(status="parked", parked=Parked.ATTEMPTS_EXHAUSTED.value, **free)
    )
    return len(again), len(spent)


def due(connection: sa.Connection, adapters: Sequence[str] | None = None) -> list[tuple[str, Phase]]:
    """Name the adapters and phases with due units, in the order in which a job goes through its phases."""
    u = t.units
    query = sa.select(u.c.adapter, u.c.phase).distinct()
    query = query.where(u.c.status == "pending", u.c.next_attempt_at_us <= now_us(connection))
    if adapters is not None:
        query = query.where(u.c.adapter.in_(list(adapters)))
    found = [(row.adapter, Phase(row.phase)) for row in connection.execute(query)]
    return sorted(found, key=lambda pair: (_ORDER.index(pair[1]), pair[0]))


def announce(connection: sa.Connection, *, lease_us: int, cap: int) -> list[tuple[str, Phase]]:
    """Note one announcement for each adapter that has due work, room for a batch and none outstanding."""
    now = connection.execute(sa.select(now_us(connection))).scalar_one()
    u, h = t.units, t.health
    batches = sa.select(u.c.adapter, sa.func.count(u.c.lease_owner.distinct()).label("batches"))
    batches = batches.where(u.c.status == "running").group_by(u.c.adapter)
    running = {row.adapter: row.batches for row in connection.execute(batches)}
    noted = {row.adapter: row.announced_at_us for row in connection.execute(sa.select(h))}
    chosen: dict[str, Phase] = {}
    for adapter, phase in due(connection):
        at = noted.get(adapter)
        # A note older than a lease belongs to a message that the broker lost.
        if running.get(adapter, 0) < cap and (at is None or now - at > lease_us or at > now):
            chosen.setdefault(adapter, phase)
    for adapter in chosen:
        note = sa.text(
            "INSERT INTO adapter_health (adapter, announced_at_us) VALUES (:adapter, :at) "
            "ON CONFLICT (adapter) DO UPDATE SET announced_at_us = :at"
        )
        connection.execute(note, {"adapter": adapter, "at": now})
    return list(chosen.items())


def heard(connection: sa.Connection, adapter: str) -> None:
    """Note that a worker has taken an adapter's announcement."""
    connection.execute(t.health.update().where(t.health.c.adapter == adapter).values(announced_at_us=None))


def _target(row: Any) -> Target:  # noqa: ANN401 - a row of whichever query names these columns
    return Target(kind=row.kind, id=row.handle, version=row.version, derived_of=row.derived_of)


def _own_targets(connection: sa.Connection, ids: Sequence[str]) -> dict[str, list[Target]]:
    """Give each erase and verify unit's page of its adapter's own targets."""
    u, g = t.units, t.targets
    same = (g.c.job_id == u.c.job_id) & (g.c.adapter == u.c.adapter) & (g.c.round == u.c.round) & (g.c.page == u.c.page)
    query = (
        sa.select(u.c.id, g.c.kind, g.c.handle, g.c.version, g.c.derived_of)
        .join(g, same)
        .where(u.c.id.in_(list(ids)), u.c.phase.in_([Phase.ERASE.value, Phase.VERIFY.value]))
        .order_by(g.c.kind, g.c.handle, g.c.version)
    )
    own: dict[str, list[Target]] = defaultdict(list)
    for row in connection.execute(query):
        own[row.id].append(_target(row))
    return own


def _known_targets(connection: sa.Connection, rows: Sequence[sa.Row[Any]], page: int) -> dict[str, list[Target]]:
    """Give each find and verify unit a page of known targets, and one more where there are more.

    A find of pass n looks from what pass n-1 found; a verify from what the sources named.
    """
    wanted: dict[tuple[int, int, int], dict[str, str]] = defaultdict(dict)
    for row in rows:
        match Phase(row.phase):
            case Phase.FIND if row.find_pass:
                wanted[row.find_pass - 1, row.round, row.known_page][row.job_id] = row.id
            case Phase.VERIFY:
                wanted[0, row.round, row.page][row.job_id] = row.id
            case _:
                pass
    g = t.targets
    known: dict[str, list[Target]] = defaultdict(list)
    for (found_in, round_, number), units in wanted.items():
        place = sa.func.row_number().over(
            partition_by=g.c.job_id, order_by=[g.c.adapter, g.c.kind, g.c.handle, g.c.version]
        )
        ranked = (
            sa.select(g, place.label("place"))
            .where(g.c.job_id.in_(list(units)), g.c.round == round_, g.c.find_pass == found_in)
            .subquery()
        )
        window = ranked.c.place.between(number * page + 1, (number + 1) * page + 1)
        for row in connection.execute(sa.select(ranked).where(window).order_by(ranked.c.place)):
            known[units[row.job_id]].append(_target(row))
    return known
