"""What selectors name: one condition that find, revoke and forget share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeAlias, assert_never

import sqlalchemy as sa

from adapters.memory.batch import Found, Row, as_table, columns, run
from adapters.memory.tables import accepted_sources, facts, source_ancestry
from orchestrator import EraseOrder, Scope, Selector, SelectorKind

Handle: TypeAlias = tuple[str, str, int]
"""Tenant, id and version: one record."""
HANDLE: Final = columns(tenant=str, fact_id=str, version=int)

Place: TypeAlias = tuple[str | None, int | None]
Query: TypeAlias = Callable[[sa.FromClause, sa.ColumnElement[bool]], sa.Select[Any]]
"""Builds a statement from orders as a table and their condition on `facts`."""
Parameters: TypeAlias = dict[str, str | int | None]
EVER: Final = 2**62
"""A position after every source."""
_ORDER: Final = columns(
    number=int, job=str, tenant=str, user_id=str, project=str, value=str, at_us=int, after_id=str, after_version=int
)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Who asks for what, as parts of a statement. No project is every project of the user."""

    tenant: sa.ColumnElement[str]
    user: sa.ColumnElement[str]
    project: sa.ColumnElement[str] | None
    value: sa.ColumnElement[str | None]
    at_us: sa.ColumnElement[int]  # what has expired by then, in microseconds since 1970


def handle_of(row: Found) -> Handle:
    """Give what names a record."""
    return row.tenant, row.fact_id, row.version


def accepted_at() -> sa.ScalarSelect[int]:
    """Give the position of a record's source, beside `facts`."""
    s = accepted_sources.c
    return sa.select(s.position).where(s.tenant == facts.c.tenant, s.source_id == facts.c.source).scalar_subquery()


def exactly(handles: sa.FromClause) -> sa.ColumnElement[bool]:
    """Give the condition on `facts` for the records of a table of handles."""
    f, h = facts.c, handles.c
    return (f.tenant == h.tenant) & (f.fact_id == h.fact_id) & (f.version == h.version)


def named(kind: SelectorKind, asked: Asked) -> sa.ColumnElement[bool]:
    """Give the condition on `facts` for every version that a selector names, revoked ones included.

    A source reaches into all of the user's projects, whatever project the scope has.
    """
    f = facts.c
    owner = (f.tenant == asked.tenant) & (f.user_id == asked.user)
    here = owner if asked.project is None else owner & (f.project == asked.project)
    match kind:
        case SelectorKind.KEY:
            return here & (f.key == asked.value)
        case SelectorKind.MEMORY:
            return here & (f.fact_id == asked.value)
        case SelectorKind.SOURCE:
            a = source_ancestry.c
            of_source = (a.tenant == f.tenant) & (a.source_id == f.source)
            derived = sa.exists().where(of_source, a.ancestor_id == asked.value).correlate_except(source_ancestry)
            return owner & ((f.source == asked.value) | derived)
        case SelectorKind.SUBJECT:
            return here
        case SelectorKind.EXPIRED:
            return here & _newest_expired(asked.at_us)
        case _:
            assert_never(kind)


def _newest_expired(at_us: sa.ColumnElement[int]) -> sa.ColumnElement[bool]:
    """Give the condition on `facts` for every version of a fact whose newest has expired: that one decides."""
    newest, newer, f = facts.alias("newest"), facts.alias("newer"), facts.c
    same = (newest.c.tenant == f.tenant) & (newest.c.fact_id == f.fact_id)
    after = (newer.c.tenant == f.tenant) & (newer.c.fact_id == f.fact_id) & (newer.c.version > newest.c.version)
    expired = newest.c.expires <= sa.cast(at_us, sa.Double()) / 1e6
    corrected = sa.exists().where(after).correlate_except(newer)
    return sa.exists().where(same, expired, ~corrected).correlate_except(newest)


def named_by(scope: Scope, selector: Selector, at_us: int = 0) -> sa.ColumnElement[bool]:
    """Give the condition on `facts` for one selector; `at_us` is the time by which what has expired is told."""
    asked = Asked(
        tenant=sa.literal(scope.tenant),
        user=sa.literal(scope.user),
        project=None if scope.project is None else sa.literal(scope.project),
        value=sa.literal(selector.value),
        at_us=sa.literal(at_us, sa.BigInteger()),
    )
    return named(selector.kind, asked)


def in_project(order: EraseOrder) -> bool:
    """Tell whether an order reaches into one project alone; a source reaches into all, among the facts as well."""
    return order.scope.project is not None and order.selector.kind is not SelectorKind.SOURCE


def _from_the_start(_order: EraseOrder) -> Place:
    """Give the place before every record."""
    return None, None


def look_up_named(
    connection: sa.Connection,
    orders: Sequence[EraseOrder],
    query: Query,
    *,
    after: Callable[[EraseOrder], Place] = _from_the_start,
    at_us: int = 0,
) -> Iterator[Found]:
    """Run a query over the orders of a batch, once for each way of asking among them.

    In it, `number` is an order's position in the batch; `after_id` and `after_version` are
    the place that it wants to go on from.
    """
    ways: dict[tuple[SelectorKind, bool], list[Row]] = {}
    for number, order in enumerate(orders):
        scope, way = order.scope, (order.selector.kind, order.scope.project is not None)
        row = (
            number,
            str(order.job),
            scope.tenant,
            scope.user,
            scope.project,
            order.selector.value,
            at_us,
            *after(order),
        )
        ways.setdefault(way, []).append(row)
    for (kind, in_project), rows in ways.items():
        yield from run(connection, _statement(connection.dialect.name, kind, in_project, query), _ORDER, rows)


@cache
def _statement(dialect: str, kind: SelectorKind, in_project: bool, query: Query) -> sa.Select[Any]:  # noqa: FBT001 - its key
    table = as_table(dialect, _ORDER)
    o = table.c
    asked = Asked(
        tenant=o.tenant, user=o.user_id, project=o.project if in_project else None, value=o.value, at_us=o.at_us
    )
    return query(table, named(kind, asked))
