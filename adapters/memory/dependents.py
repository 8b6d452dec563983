"""What is made from records and lies in the same database: drafts, by the name that their own package gives them.

Principle: a draft names every record behind it, so one look is enough. One whose record is not
there was made from something that has been erased, here or before the copy was taken.
"""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from adapters.memory.batch import change, columns

_HANDLE: Final = columns(tenant=str, handle=str)
_WITHOUT_FACT: Final = """
    SELECT DISTINCT u.tenant, u.handle FROM draft_used AS u
    JOIN drafts AS d ON d.tenant = u.tenant AND d.handle = u.handle
    WHERE u.kind = 'fact' AND NOT EXISTS (SELECT 1 FROM facts AS f
        WHERE f.tenant = u.tenant AND f.fact_id = u.id AND f.version = u.version)
"""
_WITHOUT_MEMORY: Final = """
    SELECT DISTINCT u.tenant, u.handle FROM draft_used AS u
    JOIN drafts AS d ON d.tenant = u.tenant AND d.handle = u.handle
    WHERE u.kind = 'memory' AND NOT EXISTS (SELECT 1 FROM memory_tenants AS t
        WHERE t.tenant = u.tenant AND t.memory_id = u.version)
"""
_WITHOUT_EVENT: Final = """
    SELECT DISTINCT u.tenant, u.handle FROM draft_used AS u
    JOIN drafts AS d ON d.tenant = u.tenant AND d.handle = u.handle
    WHERE u.kind = 'event' AND NOT EXISTS (SELECT 1 FROM preference_events AS e
        WHERE e.tenant = u.tenant AND e.handle = u.id AND e.sequence = u.version)
"""
_VOID: Final = """
    UPDATE approvals SET state = 'void' WHERE state IN ('pending', 'approved') AND NOT EXISTS (SELECT 1 FROM drafts AS d
        WHERE d.tenant = approvals.tenant AND d.job = approvals.handle AND d.step = 'approval')
"""
_drafts: Final = sa.table("drafts", sa.column("tenant"), sa.column("handle"))
_used: Final = sa.table("draft_used", sa.column("tenant"), sa.column("handle"))


def drop_orphans(connection: sa.Connection) -> int:
    """Erase the drafts of which a record is not there, and give how many; no action waits on without its text."""
    if not sa.inspect(connection).has_table("draft_used"):
        return 0
    queries = (_WITHOUT_FACT, _WITHOUT_EVENT, _WITHOUT_MEMORY)
    gone = {tuple(row) for query in queries for row in connection.exec_driver_sql(query)}
    for build in (_without_drafts, _without_used):
        change(connection, _HANDLE, sorted(gone), build)
    if sa.inspect(connection).has_table("approvals"):
        connection.exec_driver_sql(_VOID)
    return len(gone)


def _without_drafts(given: sa.FromClause) -> sa.Delete:
    return _drafts.delete().where(sa.tuple_(_drafts.c.tenant, _drafts.c.handle).in_(sa.select(given)))


def _without_used(given: sa.FromClause) -> sa.Delete:
    return _used.delete().where(sa.tuple_(_used.c.tenant, _used.c.handle).in_(sa.select(given)))
