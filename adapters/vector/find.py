"""Finding: what was made from what is known, by id and version, by source, or all of a scope; reads only.

Principles: the tenant and the user stand in each statement, the place of a page is an id. A point
that was written after the source revoked is none of the job's: it says so by its revision.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

import sqlalchemy as sa

from adapters.memory.batch import Found, as_table, columns, run
from adapters.vector.tables import KIND, points
from orchestrator import (
    MAX_PAGE,
    AdapterContext,
    EraseOrder,
    Fingerprint,
    Holding,
    InvalidRequest,
    SelectorKind,
    Target,
)

STRIDE: Final = 128
"""Bytes between two fingerprints of a vector: 36 numbers of it that stay anywhere are seen."""
_PLACE: Final = "after:"
_KNOWN: Final = columns(tenant=str, user_id=str, kind=str, origin=str, version=int)


def find(
    connection: sa.Connection, context: AdapterContext, orders: Sequence[EraseOrder], in_time: Callable[[], None]
) -> list[Holding]:
    """List a page for each order, with the fingerprints of its vectors where their bytes can be looked at."""
    answers = []
    for order in orders:
        in_time()
        answers.append(_page_of(connection, context, order))
    return answers


def _page_of(connection: sa.Connection, context: AdapterContext, order: EraseOrder) -> Holding:
    dialect, by = connection.dialect.name, context.fingerprinter
    # PostgreSQL writes vectors in a form of its own, into files that nobody looks at from here.
    printing = by is not None and dialect == "sqlite"
    known = [(order.scope.tenant, order.scope.user, t.kind, t.id, t.version) for t in order.known]
    asked = _asked(order)
    statement = _page(dialect, order.selector.kind, printing)
    rows = run(connection, statement, _KNOWN, known, **asked, after=_place(order)).all()
    page = rows[:MAX_PAGE]
    whole = order.selector.kind is SelectorKind.SUBJECT
    # The first page tells how many points name no origin; a subject takes them with the rest.
    silent = 0 if whole or order.cursor is not None else connection.scalar(_SILENT, asked)
    return Holding(
        targets=tuple(map(_target, page)),
        fingerprints=_prints(context, page) if printing else (),
        no_lineage=silent or 0,
        cursor=_PLACE + page[-1].id if len(rows) > len(page) else None,
    )


def _asked(order: EraseOrder) -> dict[str, str | int | None]:
    scope = order.scope
    return {
        "of_tenant": scope.tenant,
        "of_user": scope.user,
        "of_project": scope.project,
        "of_source": order.selector.value if order.selector.kind is SelectorKind.SOURCE else None,
        "revoked_at": order.revision,
    }


def _place(order: EraseOrder) -> str:
    if order.cursor is None:
        return ""
    if not order.cursor.startswith(_PLACE):
        message = "the cursor is not one of this store's"
        raise InvalidRequest(message, field="cursor")
    return order.cursor.removeprefix(_PLACE)


def _target(row: Found) -> Target:
    derived_of = None if row.kind is None else f"{row.kind}:{row.origin}@{row.version}"
    return Target(kind=KIND, id=row.id, derived_of=derived_of)


def _prints(context: AdapterContext, page: Sequence[Found]) -> tuple[Fingerprint, ...]:
    by = context.fingerprinter
    assert by is not None, "asked for only where there is one"  # noqa: S101
    return tuple(dict.fromkeys(print_ for row in page for print_ in by.of_bytes(row.vector, STRIDE).rows))


_p: Final = points.c
_PROJECT: Final = sa.bindparam("of_project", type_=sa.Text())
_SOURCE: Final = sa.bindparam("of_source", type_=sa.Text())
_REVOKED: Final = sa.bindparam("revoked_at", type_=sa.BigInteger())
_MINE: Final = (_p.tenant == sa.bindparam("of_tenant", type_=sa.Text())) & (
    _p.user_id == sa.bindparam("of_user", type_=sa.Text())
)
_HERE: Final = _MINE & (_PROJECT.is_(None) | (_p.project == _PROJECT))
_SILENT: Final = sa.select(sa.func.count()).where(
    _HERE, _p.origin.is_(None), _SOURCE.is_(None) | (_p.source != _SOURCE)
)


@cache
def _page(dialect: str, kind: SelectorKind, printing: bool) -> sa.Select[Any]:  # noqa: FBT001 - its key
    given, after = as_table(dialect, _KNOWN), sa.bindparam("after", type_=sa.Text())
    further = _MINE & (_p.id > after)
    # As an expression: SQLite would read the user's points by their ids for each record, not those of the record.
    roads = [sa.select(_p.id).select_from(given.join(points, _made_from(given))).where(_p.id.concat("") > after)]
    if kind is SelectorKind.SUBJECT:
        roads.append(sa.select(_p.id).where(further, _HERE, _REVOKED.is_(None) | (_p.revision <= _REVOKED)))
    if kind is SelectorKind.SOURCE:
        # Into all projects of the user, as the source itself does.
        roads.append(sa.select(_p.id).where(further, _p.source == _SOURCE))
    # A page is cut from the first of each road, so that a late page costs what an early one does.
    firsts = [sa.select(_first(road).subquery()) for road in roads]
    ids = sa.union(*firsts).subquery("named")
    found = (_p.id, _p.kind, _p.origin, _p.version, *((_p.vector,) if printing else ()))
    return sa.select(*found).where(_MINE, _p.id.in_(_first(sa.select(ids.c.id)))).order_by(_p.id)


def _first(road: sa.Select[Any]) -> sa.Select[Any]:
    (id_,) = road.selected_columns
    return road.distinct().order_by(id_).limit(MAX_PAGE + 1)


def _made_from(given: sa.FromClause) -> sa.ColumnElement[bool]:
    """Give the condition on `points` for those made from the records of a table.

    A version of 0 stands for every version, on either side. The owner comes from the table as well:
    no point can be read before a record is, so SQLite does not read all points for each record.
    """
    g = given.c
    version = (_p.version == g.version) | (g.version == 0) | (_p.version == 0)
    return (_p.tenant == g.tenant) & (_p.user_id == g.user_id) & (_p.kind == g.kind) & (_p.origin == g.origin) & version
