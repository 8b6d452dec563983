"""Which chains a selector names: from each version that it names back to the first of its chain, and on to them all.

Principles: a chain is one item, and goes as a whole. Its id is that of its first version, in
digits; ids of facts are UUIDs, so an id says by itself which of the two it means.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, assert_never

import sqlalchemy as sa

from adapters.memory.chains.tables import memories, memory_tenants
from adapters.memory.chains.visible import CORRECTED_BY
from adapters.memory.instant import InstantUs
from adapters.memory.selection import Parameters, in_project
from adapters.memory.tables import accepted_sources, source_ancestry
from orchestrator import EraseOrder, SelectorKind

KIND: Final = "memory"
"""What the targets of the chains are: the id is that of the chain, the version that of the memory."""
_ID: Final = re.compile(r"[1-9][0-9]{0,18}", re.ASCII)
_IDS_END: Final = 2**63
_HERE: Final[Mapping[str, sa.TextClause]] = {
    "sqlite": sa.text("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'memory_tenants'"),
    "postgresql": sa.text("SELECT 1 WHERE to_regclass('memory_tenants') IS NOT NULL"),
}
_ANY: Final[sa.Select[Any]] = sa.select(sa.literal_column("1")).select_from(memory_tenants).limit(1)


def any_here(connection: sa.Connection) -> bool:
    """Tell whether the database holds any chain; one without their tables holds none."""
    return connection.scalar(_HERE[connection.dialect.name]) is not None and connection.scalar(_ANY) is not None


def number_of(item: str | None) -> int | None:
    """Read the id of a chain or memory; None for what is none."""
    number = int(item) if item is not None and _ID.fullmatch(item) else None
    return number if number is not None and number < _IDS_END else None


def asked_by(order: EraseOrder, cut_off: int, at_us: int = 0) -> Parameters | None:
    """Give the parameters of `whole_chains` for an order; None where it names no chain: a key never does.

    What has expired is told by `at_us`.
    """
    scope, value = order.scope, order.selector.value
    asked: Parameters = {"of_tenant": scope.tenant, "of_user": scope.user, "until": cut_off}
    if in_project(order):
        asked["of_project"] = scope.project
    match order.selector.kind:
        case SelectorKind.KEY:
            return None
        case SelectorKind.MEMORY:
            number = number_of(value)
            return None if number is None else {**asked, "of_memory": number}
        case SelectorKind.SOURCE:
            return {**asked, "of_source": value}
        case SelectorKind.SUBJECT:
            return asked
        case SelectorKind.EXPIRED:
            return {**asked, "expired_by": at_us}
        case _:
            assert_never(order.selector.kind)


@cache
def whole_chains(kind: SelectorKind, within_project: bool) -> sa.CTE:  # noqa: FBT001 - its key
    """Give chain and id of every version of the chains that `asked_by` names, revoked ones included.

    A chain is named where one of its versions is, and that version was accepted by `until`.
    """
    return onwards(_named(kind, within_project))


def onwards(some: sa.Select[Any]) -> sa.CTE:
    """Give chain and id of every version of the chains that some memories (id, supersedes) belong to."""
    back = memories.alias("back")
    older = some.cte("older", recursive=True)
    # UNION, not UNION ALL: each version is visited once, however many are named.
    older = older.union(sa.select(back.c.id, back.c.supersedes).where(back.c.id == older.c.supersedes))
    return of_roots(sa.select(older.c.id).where(older.c.supersedes.is_(None)))


def of_roots(roots: sa.Select[Any]) -> sa.CTE:
    """Give chain and id of every version of the chains that begin with these memories (id)."""
    first, on = roots.subquery("first_versions"), memories.alias("onward")
    whole = sa.select(first.c.id.label("chain"), first.c.id.label("id")).cte("whole", recursive=True)
    return whole.union(sa.select(whole.c.chain, on.c.id).where(on.c.supersedes == whole.c.id))


def _named(kind: SelectorKind, within_project: bool) -> sa.Select[Any]:  # noqa: FBT001 - as above
    m, t = memories.c, memory_tenants.c
    conditions = [t.tenant == sa.bindparam("of_tenant"), m.user_id == sa.bindparam("of_user")]
    if within_project:
        conditions.append(m.task_id == sa.bindparam("of_project"))
    if kind is SelectorKind.MEMORY:
        conditions.append(m.id == sa.bindparam("of_memory", type_=sa.BigInteger()))
    if kind is SelectorKind.SOURCE:
        a, source = source_ancestry.c, sa.bindparam("of_source", type_=sa.Text())
        derived = sa.exists().where(a.tenant == t.tenant, a.source_id == m.source, a.ancestor_id == source)
        conditions.append((m.source == source) | derived.correlate(memories, memory_tenants))
    if kind is SelectorKind.EXPIRED:  # the newest version decides
        conditions += [
            InstantUs(m.expires_at) <= sa.bindparam("expired_by", type_=sa.BigInteger()),
            CORRECTED_BY.is_(None),
        ]
    accepted = _accepted_at() <= sa.bindparam("until", type_=sa.BigInteger())
    return sa.select(m.id, m.supersedes).join(memory_tenants, t.memory_id == m.id).where(*conditions, accepted)


def _accepted_at() -> sa.ColumnElement[int]:
    """Give the position of a memory's source; one that was never accepted is older than all."""
    s, m, t = accepted_sources.c, memories.c, memory_tenants.c
    position = sa.select(s.position).where(s.tenant == t.tenant, s.source_id == m.source)
    return sa.func.coalesce(position.correlate(memories, memory_tenants).scalar_subquery(), 0)
