"""Reading memories: one query decides what anybody may see, and every read is built on it.

Principles: a memory without a row that names its tenant is nobody's; what is revoked is not
there; a memory of a task is seen from that task alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa

from adapters.memory.batch import Found
from adapters.memory.chains.errors import MemoryNotFound
from adapters.memory.chains.scope import TaskScope
from adapters.memory.chains.tables import memories, memory_tenants

_newer: Final = memories.alias("newer")
CORRECTED_BY: Final = sa.select(_newer.c.id).where(_newer.c.supersedes == memories.c.id).scalar_subquery()
"""The id of the version after a memory, null where it is the newest; seen even where that version is revoked."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Version:
    """One version of a chain as history tells it."""

    id: int
    text: str = field(repr=False)
    source: str
    created_at: datetime
    supersedes: int | None


def readable() -> sa.Select[Any]:
    """Give the query behind every read: memories with their tenant and the id that has corrected each, if one has."""
    t = memory_tenants.c
    joined = memories.join(memory_tenants, t.memory_id == memories.c.id)
    columns = (memories, t.tenant, CORRECTED_BY.label("corrected_by"))
    return sa.select(*columns).select_from(joined).where(t.revoked == 0)


def visible(scope: TaskScope) -> sa.Select[Any]:
    """Give the query for what a scope sees: memories of its user, at user level or of its task."""
    m, t = memories.c, memory_tenants.c
    return readable().where(
        t.tenant == scope.tenant,
        m.user_id == scope.user,
        sa.or_(m.task_id.is_(None), m.task_id == scope.task),
    )


def chain_of(connection: sa.Connection, within: sa.Select[Any], memory_id: int) -> Sequence[Found]:
    """Give all versions of the chain that a memory belongs to, oldest first.

    `within` is the query that says what may be seen. Raises `MemoryNotFound`.
    """
    links = within.with_only_columns(memories.c.id, memories.c.supersedes)
    ids = sa.union(_onwards(links, memory_id, newer=False), _onwards(links, memory_id, newer=True))
    chain = connection.execute(within.where(memories.c.id.in_(ids))).all()
    if not chain:
        raise MemoryNotFound(memory_id)
    # A correction has the higher id. Sorted here: SQLite may sort texts in a temporary file.
    return sorted(chain, key=lambda row: row.id)


def history(connection: sa.Connection, scope: TaskScope, memory_id: int) -> list[Version]:
    """Give all versions of a chain, oldest first, expired ones included; raises `MemoryNotFound`."""
    return [
        Version(id=row.id, text=row.text, source=row.source, created_at=row.created_at, supersedes=row.supersedes)
        for row in chain_of(connection, visible(scope), memory_id)
    ]


def _onwards(links: sa.Select[Any], memory_id: int, *, newer: bool) -> sa.Select[Any]:
    """Give the ids that are reached from one, itself included, by going to newer or to older versions."""
    start, step = links.subquery(), links.subquery()
    name = "newer_versions" if newer else "older_versions"
    reached = sa.select(start.c.id, start.c.supersedes).where(start.c.id == memory_id).cte(name, recursive=True)
    linked = step.c.supersedes == reached.c.id if newer else step.c.id == reached.c.supersedes
    # UNION, not UNION ALL: it ends even where somebody has tied a knot into the file.
    reached = reached.union(sa.select(step.c.id, step.c.supersedes).where(linked))
    return sa.select(reached.c.id)
