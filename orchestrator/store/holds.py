"""Legal holds in the control database: a predicate in the claim, read again before each call.

A hold is `placing` until nothing that it covers can act any more: no covered claim runs, and
the deadline of every call whose answer was lost has passed. From then on it is in force.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import sqlalchemy as sa

from orchestrator.domain.codes import ErrorCode, Refusal
from orchestrator.domain.errors import HoldNotFound, RuleRefused
from orchestrator.domain.hold import Holds, HoldView, NewHold
from orchestrator.domain.job import Purpose
from orchestrator.domain.unit import Phase
from orchestrator.store import bulk
from orchestrator.store import tables as t
from orchestrator.store.among import among
from orchestrator.store.clock import micros, moment

_h, _j, _u = t.holds.c, t.jobs.c, t.units.c
_OF_SUBJECT = (_h.tenant == _j.tenant) & (_h.subject_ref == _j.subject_ref)
_ACTIVE = _OF_SUBJECT & _h.released_at_us.is_(None)
_OF_JOBS: Final = sa.select(_j.id, _h.item_ref).where(_ACTIVE, among(_j.id), _j.purpose == Purpose.ERASE.value)


def waits_for_hold() -> sa.ColumnElement[bool]:
    """Give the condition, beside units and jobs, for a unit that a hold keeps waiting.

    What was made from a freed item waits until the source has revoked the item itself.
    """
    covers = _ACTIVE & (_h.item_ref.is_(None) | (_h.item_ref == _u.item_ref))
    revoking = t.units.alias("revoking")
    unrevoked = sa.exists().where(
        revoking.c.job_id == _u.job_id,
        revoking.c.phase == Phase.REVOKE.value,
        revoking.c.item_ref == _u.item_ref,
        revoking.c.status != t.DONE,
    )
    behind = _u.item_ref.is_not(None) & (_u.phase != Phase.REVOKE.value) & unrevoked
    return (_j.purpose == Purpose.ERASE.value) & (sa.exists().where(covers) | behind)


def place(connection: sa.Connection, holds: Sequence[NewHold]) -> None:
    """Write holds; they keep every later claim away from this commit on."""
    rows = [
        {
            "id": str(hold.id),
            "tenant": hold.tenant,
            "subject_ref": hold.subject_ref,
            "item_ref": hold.item,
            "reason_code": hold.reason.value,
            "reference": hold.reference,
            "placed_by_ref": hold.placed_by_ref,
            "placed_at_us": micros(hold.placed_at),
        }
        for hold in holds
    ]
    bulk.insert(connection, t.holds, rows)


def release(connection: sa.Connection, hold: str, *, tenant: str | None, by_ref: str, at: datetime) -> None:
    """Lift a hold: what it kept waiting is due again by itself.

    Raises `HoldNotFound`, and `RuleRefused` for one that was lifted already.
    """
    at_us = max(micros(at), micros(one(connection, hold, tenant).placed_at))
    # Of two who lift it at the same moment one has done so, and the ledger names that one.
    lifted = t.holds.update().where(_h.id == hold, _h.released_at_us.is_(None))
    if not connection.execute(lifted.values(released_at_us=at_us, released_by_ref=by_ref)).rowcount:
        raise RuleRefused(Refusal.HOLD_RELEASED)


def enforce(connection: sa.Connection, now_us: int) -> list[str]:
    """Set in force every hold under which nothing can act any more; give their ids."""
    acting = sa.exists().where(
        _OF_SUBJECT,
        _u.job_id == _j.id,
        _u.phase.in_([Phase.REVOKE.value, Phase.ERASE.value]),
        (_u.status == t.RUNNING) | (_u.deadline_us > now_us),
    )
    calm = (_h.in_force_at_us.is_(None)) & _h.released_at_us.is_(None) & ~acting
    return list(
        connection.execute(t.holds.update().where(calm).values(in_force_at_us=now_us).returning(_h.id)).scalars()
    )


def active(connection: sa.Connection, jobs: Sequence[str]) -> list[tuple[str, str | None]]:
    """Give for each of these jobs the items under a hold, or None where its whole subject is."""
    return [(row.id, row.item_ref) for row in connection.execute(_OF_JOBS, {"ids": jobs})]


def of_subject(connection: sa.Connection, tenant: str, subject_ref: str) -> Holds:
    """Give the holds that stand on a subject, those that are not in force yet among them."""
    stand = (_h.tenant == tenant) & (_h.subject_ref == subject_ref) & _h.released_at_us.is_(None)
    items = set(connection.execute(sa.select(_h.item_ref).where(stand)).scalars())
    return Holds(everything=None in items, items=frozenset(item for item in items if item is not None))


def listed(
    connection: sa.Connection, *, tenant: str | None, released: bool, after: str | None, limit: int
) -> list[HoldView]:
    """Give holds, oldest first, after the hold `after`; released ones only if asked for."""
    where: list[sa.ColumnElement[bool]] = [] if released else [_h.released_at_us.is_(None)]
    if after is not None:
        where.append(_h.id > after)
    return _views(connection, *where, tenant=tenant, limit=limit)


def one(connection: sa.Connection, hold: str, tenant: str | None) -> HoldView:
    """Give one hold; a missing one and another tenant's raise the same `HoldNotFound`."""
    found = _views(connection, _h.id == hold, tenant=tenant, limit=1)
    if not found:
        raise HoldNotFound
    return found[0]


def _views(connection: sa.Connection, *where: sa.ColumnElement[bool], tenant: str | None, limit: int) -> list[HoldView]:
    r, a = t.receipts.c, t.attempts.c
    erased = (
        sa.select(sa.func.coalesce(sa.func.sum(r.erased), 0))
        .where(_OF_SUBJECT, r.job_id == _j.id, r.phase == Phase.ERASE.value, r.finished_at_us <= _h.placed_at_us)
        .scalar_subquery()
    )
    lost = (
        sa.select(sa.func.count(_u.id.distinct()))
        .where(_OF_SUBJECT, _u.job_id == _j.id, a.unit_id == _u.id, _u.status != t.DONE)
        .where(_u.phase.in_([Phase.REVOKE.value, Phase.ERASE.value]), a.error_code == ErrorCode.LEASE_ENDED.value)
        .scalar_subquery()
    )
    query = sa.select(t.holds, erased.label("erased_before"), lost.label("unknown")).where(*where)
    if tenant is not None:
        query = query.where(_h.tenant == tenant)
    return [
        HoldView(
            id=row.id,
            tenant=row.tenant,
            item=row.item_ref,
            reason=row.reason_code,
            reference=row.reference,
            placed_at=moment(row.placed_at_us),
            in_force_at=None if row.in_force_at_us is None else moment(row.in_force_at_us),
            released_at=None if row.released_at_us is None else moment(row.released_at_us),
            erased_before=int(row.erased_before),
            unknown=row.unknown,
        )
        for row in connection.execute(query.order_by(_h.id).limit(limit))
    ]
