"""Finding: what a selector names, read only; before a revoke that is a preview."""

from __future__ import annotations

import sqlalchemy as sa

from adapters.memory.revoke import KIND, cut_off_of
from adapters.memory.selection import accepted_until, named
from adapters.memory.tables import facts
from orchestrator import MAX_PAGE, EraseOrder, Holding, InvalidRequest, Target


def find(connection: sa.Connection, order: EraseOrder) -> Holding:
    """List a page of what an order names; after its revoke, without what was stated afresh since."""
    f = facts.c
    query = sa.select(f.fact_id, f.version).where(named(order.scope, order.selector))
    cut_off = cut_off_of(connection, str(order.job))
    if cut_off is not None:
        query = query.where(accepted_until(cut_off))
    if order.cursor is not None:
        query = query.where(sa.tuple_(f.fact_id, f.version) > sa.tuple_(*_place(order.cursor)))
    rows = connection.execute(query.order_by(f.fact_id, f.version).limit(MAX_PAGE + 1)).all()
    page = tuple(Target(kind=KIND, id=fact_id, version=version) for fact_id, version in rows[:MAX_PAGE])
    return Holding(targets=page, cursor=f"{page[-1].id}@{page[-1].version}" if len(rows) > MAX_PAGE else None)


def _place(cursor: str) -> tuple[sa.Label[str] | sa.BindParameter[str], sa.BindParameter[int]]:
    fact_id, _, version = cursor.rpartition("@")
    if not fact_id or not (version.isascii() and version.isdigit()):
        message = "the cursor is not one of this store's"
        raise InvalidRequest(message, field="cursor")
    return sa.literal(fact_id), sa.literal(int(version))
