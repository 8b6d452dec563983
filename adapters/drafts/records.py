"""What a draft job may read: facts that hold now, and drafts that are there."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

import sqlalchemy as sa

from adapters.drafts.lineage import HANDLE
from adapters.drafts.step import KINDS
from adapters.drafts.tables import drafts
from adapters.memory.batch import Found, look_up
from adapters.memory.selection import HANDLE as RECORD
from adapters.memory.selection import exactly
from adapters.memory.tables import KIND, facts
from orchestrator import Target

_LIVE: Final = ("live", 1, 1)


def facts_among(connection: sa.Connection, tenant: str, used: Iterable[Target]) -> list[Found]:
    """Give those facts, by key, that are there in this version and handed out."""
    rows = look_up(connection, RECORD, [(tenant, t.id, t.version) for t in used if t.kind == KIND], _facts)
    live = [row for row in rows if (row.state, row.active, row.confirmed) == _LIVE]
    return sorted(live, key=lambda row: row.key)


def drafts_among(connection: sa.Connection, tenant: str, used: Iterable[Target]) -> Sequence[Found]:
    """Give those drafts that are there."""
    return look_up(connection, HANDLE, [(tenant, t.id) for t in used if t.kind in KINDS], _drafts)


def are_there(connection: sa.Connection, tenant: str, used: Collection[Target]) -> bool:
    """Tell whether everything that a job is made from is there as it was."""
    there = len(facts_among(connection, tenant, used)) + len(drafts_among(connection, tenant, used))
    return there == len(used)


def _facts(given: sa.FromClause) -> sa.Select[Any]:
    return sa.select(facts).select_from(given.join(facts, exactly(given)))


def _drafts(given: sa.FromClause) -> sa.Select[Any]:
    d, g = drafts.c, given.c
    here = (d.tenant == g.tenant) & (d.handle == g.handle)
    return sa.select(drafts).select_from(given.join(drafts, here)).order_by(d.handle)
