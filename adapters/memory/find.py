"""Finding: what selectors name, read only; before a revoke that is a preview."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from adapters.memory.selection import Place, look_up_named
from adapters.memory.tables import KIND, accepted_sources, facts, source_revocations
from orchestrator import MAX_PAGE, EraseOrder, Holding, InvalidRequest, Target


def find(connection: sa.Connection, orders: Sequence[EraseOrder]) -> list[Holding]:
    """List a page of what each order names; after its revoke, without what was stated afresh since."""
    found: list[list[Target]] = [[] for _ in orders]
    for number, fact_id, version in look_up_named(connection, orders, _first_of_each, after=_place):
        found[number].append(Target(kind=KIND, id=fact_id, version=version))
    return [_page(targets) for targets in found]


def _page(targets: Sequence[Target]) -> Holding:
    page = tuple(targets[:MAX_PAGE])
    return Holding(targets=page, cursor=f"{page[-1].id}@{page[-1].version}" if len(targets) > MAX_PAGE else None)


def _first_of_each(asked: sa.FromClause, condition: sa.ColumnElement[bool]) -> sa.Select[Any]:
    """Read the first records of each order after its cursor: a page, and one that tells whether there are more."""
    f, o, r = facts.c, asked.c, source_revocations.c
    place = sa.func.row_number().over(partition_by=o.number, order_by=(f.fact_id, f.version)).label("place")
    after = sa.tuple_(f.fact_id, f.version) > sa.tuple_(o.after_id, o.after_version)
    named = (
        sa.select(o.number, f.fact_id, f.version, place)
        .select_from(asked.join(facts, condition).outerjoin(source_revocations, r.job == o.job))
        .where(o.after_id.is_(None) | after)
        .where(r.cut_off.is_(None) | (_accepted_at() <= r.cut_off))
        .subquery("named")
    )
    n = named.c
    return (
        sa.select(n.number, n.fact_id, n.version)
        .where(n.place <= MAX_PAGE + 1)
        .order_by(n.number, n.fact_id, n.version)
    )


def _accepted_at() -> sa.ScalarSelect[int]:
    s = accepted_sources.c
    return sa.select(s.position).where(s.tenant == facts.c.tenant, s.source_id == facts.c.source).scalar_subquery()


def _place(order: EraseOrder) -> Place:
    if order.cursor is None:
        return None, None
    fact_id, _, version = order.cursor.rpartition("@")
    if not fact_id or not (version.isascii() and version.isdigit()):
        message = "the cursor is not one of this store's"
        raise InvalidRequest(message, field="cursor")
    return fact_id, int(version)
