"""Finding: what selectors name, read only; before a revoke that is a preview."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa

from adapters.memory.batch import columns, look_up
from adapters.memory.chains import find as chains
from adapters.memory.keyed import find as keyed
from adapters.memory.keyed.named import KINDS
from adapters.memory.selection import Place, Query, accepted_at, look_up_named
from adapters.memory.tables import KIND, facts, revocation_targets, source_revocations
from orchestrator import MAX_PAGE, EraseOrder, Holding, InvalidRequest, SelectorKind, Target

_JOB: Final = columns(job=str)


def find(connection: sa.Connection, orders: Sequence[EraseOrder]) -> list[Holding]:
    """List a page of what each order names; after its revoke, without what was stated afresh since.

    An engine asks once for each page of known targets. Nothing here is made from them, so what
    the selector names is listed for the page with the first of them, and for no other. What
    had expired was named by revoke for good: what expires later is none of the job's.
    """
    wanted = _wanted(connection, orders)
    pages: list[list[Target]] = [[] for _ in orders]
    beside = [chains.is_place(order.cursor) or keyed.is_place(order.cursor) for order in orders]
    places = [n for n, lists in enumerate(wanted) if lists and not beside[n]]
    asked = [orders[number] for number in places]
    for number, fact_id, version in look_up_named(connection, asked, _QUERIES[connection.dialect.name], after=_place):
        pages[places[number]].append(Target(kind=KIND, id=fact_id, version=version))
    filling = [(order, page) for order, page, lists in zip(orders, pages, wanted, strict=True) if lists]
    chains.add(connection, [(order, page) for order, page in filling if not keyed.is_place(order.cursor)])
    keyed.add(connection, filling)
    return [_page(targets) for targets in pages]


def _wanted(connection: sa.Connection, orders: Sequence[EraseOrder]) -> list[bool]:
    """Tell which orders list what they name: all but those that look from a later page of what their job revoked."""
    paged = {str(order.job) for order in orders if order.known and order.cursor is None}
    first = _first_targets(connection, paged)
    return [
        order.selector.kind is not SelectorKind.EXPIRED
        and (order.cursor is not None or not order.known or first.get(str(order.job)) in {None, *order.known})
        for order in orders
    ]


def _first_targets(connection: sa.Connection, jobs: set[str]) -> Mapping[str, Target]:
    rows = look_up(connection, _JOB, [(job,) for job in jobs], _firsts)
    return {row.job: Target(kind=row.kind, id=row.handle, version=row.version) for row in rows}


def _firsts(given: sa.FromClause) -> sa.Select[Any]:
    t = revocation_targets
    return sa.select(t).select_from(given.join(t, (t.c.job == given.c.job) & (t.c.ordinal == 1)))


def _page(targets: Sequence[Target]) -> Holding:
    page, more = tuple(targets[:MAX_PAGE]), targets[MAX_PAGE:]
    if not more:
        return Holding(targets=page)
    if more[0].kind == KIND:
        return Holding(targets=page, cursor=f"{page[-1].id}@{page[-1].version}")
    return Holding(targets=page, cursor=keyed.after(page) if more[0].kind in KINDS else chains.after(page))


def _of_order(asked: sa.FromClause, condition: sa.ColumnElement[bool], *found: sa.ColumnElement[Any]) -> sa.Select[Any]:
    """Read the first records of an order after its place, along the index: a page, and one that tells of more."""
    f, o, r = facts.c, asked.c, source_revocations.c
    return (
        sa.select(*found)
        .where(condition, sa.tuple_(f.fact_id, f.version) > sa.tuple_(o.after_id, o.after_version))
        .where(r.cut_off.is_(None) | (accepted_at() <= r.cut_off))
        .order_by(f.fact_id, f.version)
        .limit(MAX_PAGE + 1)
        .correlate(asked, source_revocations)
    )


def _on_sqlite(asked: sa.FromClause, condition: sa.ColumnElement[bool]) -> sa.Select[Any]:
    page = facts.alias("page")
    rows = _of_order(asked, condition, sa.literal_column("facts.rowid", sa.BigInteger()))
    joined = _with_cut_off(asked).join(page, sa.literal_column("page.rowid", sa.BigInteger()).in_(rows))
    return _in_order(asked, joined, page)


def _on_postgresql(asked: sa.FromClause, condition: sa.ColumnElement[bool]) -> sa.Select[Any]:
    page = _of_order(asked, condition, facts.c.fact_id, facts.c.version).lateral("page")
    return _in_order(asked, _with_cut_off(asked).join(page, sa.true()), page)


_QUERIES: Final[Mapping[str, Query]] = {"sqlite": _on_sqlite, "postgresql": _on_postgresql}


def _with_cut_off(asked: sa.FromClause) -> sa.FromClause:
    return asked.outerjoin(source_revocations, source_revocations.c.job == asked.c.job)


def _in_order(asked: sa.FromClause, joined: sa.FromClause, page: sa.FromClause) -> sa.Select[Any]:
    columns = (asked.c.number, page.c.fact_id, page.c.version)
    return sa.select(*columns).select_from(joined).order_by(*columns)


def _place(order: EraseOrder) -> Place:
    if order.cursor is None:
        return "", -1  # before every record
    fact_id, _, version = order.cursor.rpartition("@")
    if not fact_id or not (version.isascii() and version.isdigit()):
        message = "the cursor is not one of this store's"
        raise InvalidRequest(message, field="cursor")
    return fact_id, int(version)
