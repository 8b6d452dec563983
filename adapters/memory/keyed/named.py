"""Which events and candidates a selector names.

Principles: an event and a candidate are items of their own, each with a handle. A fact that is
named takes what stands under its key: the key is forgotten with it, and a restore would take it.
What is left because of a hold is told by its handle alone: by the time it is free, what named it
may be gone. What has expired names neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final, assert_never

import sqlalchemy as sa

from adapters.memory.selection import Parameters, in_project
from adapters.memory.tables import accepted_sources, fact_candidates, facts, preference_events, source_ancestry
from orchestrator import EraseOrder, SelectorKind

EVENT: Final = "event"
CANDIDATE: Final = "candidate"
KINDS: Final = frozenset({EVENT, CANDIDATE})
"""What the targets are: an event's version is its sequence, a candidate's is 0."""
TABLES: Final[Mapping[str, sa.Table]] = {EVENT: preference_events, CANDIDATE: fact_candidates}
_ANY: Final = sa.select(sa.or_(*(sa.exists().select_from(table) for table in TABLES.values())))


def any_here(connection: sa.Connection) -> bool:
    """Tell whether the database holds any event or candidate."""
    return bool(connection.scalar(_ANY))


def version_of(kind: str) -> sa.ColumnElement[int]:
    """Give the column, or number, that is the version of a kind's targets."""
    return preference_events.c.sequence if kind == EVENT else sa.literal_column("0", sa.BigInteger())


def asked_by(order: EraseOrder, cut_off: int) -> Parameters | None:
    """Give the parameters of `named` for an order; None where it names neither kind."""
    scope, selector = order.scope, order.selector
    if selector.kind is SelectorKind.EXPIRED:
        return None
    asked: Parameters = {"of_tenant": scope.tenant, "of_user": scope.user, "until": cut_off}
    if in_project(order):
        asked["of_project"] = scope.project
    if selector.kind is not SelectorKind.SUBJECT:
        asked["of_value"] = selector.value
    return asked


@cache
def named(kind: str, selector: SelectorKind, within_project: bool) -> sa.ColumnElement[bool]:  # noqa: FBT001 - its key
    """Give the condition on the table of a kind for what `asked_by` names, revoked records included."""
    c, table = TABLES[kind].c, TABLES[kind]
    conditions = [c.tenant == _given("of_tenant"), c.user_id == _given("of_user")]
    if within_project:
        conditions.append(c.project == _given("of_project"))
    value = _given("of_value")
    match selector:
        case SelectorKind.KEY:
            conditions.append(c.key == value)
        case SelectorKind.MEMORY:
            conditions.append((c.handle == value) | _of_fact(table, value))
        case SelectorKind.SOURCE:
            told_in = [c.source] if kind == EVENT else [c.source, fact_candidates.c.decided_in]
            conditions.append(sa.or_(*(_of_source(table, source, value) for source in told_in)))
        case SelectorKind.SUBJECT:
            pass
        case SelectorKind.EXPIRED:
            conditions.append(sa.false())
        case _:
            assert_never(selector)
    return sa.and_(*conditions, _accepted_at(table) <= sa.bindparam("until", type_=sa.BigInteger()))


def left_alone(kind: str, items: sa.FromClause) -> sa.ColumnElement[bool]:
    """Give the condition for items that a job has left: each is told by its handle, and was named then."""
    c = TABLES[kind].c
    mine = (c.tenant == _given("of_tenant")) & (c.user_id == _given("of_user"))
    return mine & c.handle.in_(sa.select(items.c.fact_id))


def _given(name: str) -> sa.BindParameter[Any]:
    return sa.bindparam(name, type_=sa.Text())


def _of_fact(table: sa.Table, fact: sa.BindParameter[Any]) -> sa.ColumnElement[bool]:
    """Give the condition for what stands under the key of a fact, in that fact's scope."""
    f, c = facts.c, table.c
    same = (f.tenant == c.tenant) & (f.user_id == c.user_id) & (f.project == c.project) & (f.key == c.key)
    return sa.exists().where(same, f.fact_id == fact).correlate_except(facts)


def _of_source(table: sa.Table, source: sa.ColumnElement[str | None], value: sa.BindParameter[Any]) -> Any:  # noqa: ANN401 - a condition
    a = source_ancestry.c
    derived = sa.exists().where(a.tenant == table.c.tenant, a.source_id == source, a.ancestor_id == value)
    return (source == value) | derived.correlate_except(source_ancestry)


def _accepted_at(table: sa.Table) -> sa.ColumnElement[int]:
    s = accepted_sources.c
    position = sa.select(s.position).where(s.tenant == table.c.tenant, s.source_id == table.c.source)
    return sa.func.coalesce(position.correlate(table).scalar_subquery(), 0)
