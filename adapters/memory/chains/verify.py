"""Looking for chains again: hand-written SQL, with none of the code that finds or erases.

Principles: what is revoked is there as long as its row is; a memory without a row that names
its tenant might be anybody's, so it counts for everybody whose it could be.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from adapters.memory.look import Look
from orchestrator import EraseOrder, SelectorKind

# CROSS JOIN keeps SQLite from reading the whole table before what is given.
_MEMORIES: Final = """
    SELECT given.number, m.id FROM {given} CROSS JOIN memories AS m
    LEFT JOIN memory_tenants AS t ON t.memory_id = m.id
"""
_OF_TENANT: Final = " WHERE (t.tenant = given.tenant OR t.tenant IS NULL)"
_BY_HANDLE: Final = _MEMORIES + _OF_TENANT + " AND m.id = given.version"
# What was accepted after the job's cut-off is no copy of what the job forgot.
_BY_SELECTOR: Final = (
    _MEMORIES
    + """
    LEFT JOIN accepted_sources AS s ON s.tenant = given.tenant AND s.source_id = m.source
    LEFT JOIN source_revocations AS r ON r.job = given.job
"""
    + _OF_TENANT
    + """ AND m.user_id = given.user_id
      AND (r.cut_off IS NULL OR s.position IS NULL OR s.position <= r.cut_off)
"""
)
_IN_PROJECT: Final = " AND (given.project IS NULL OR m.task_id = given.project)"
_NAMED: Final = {
    SelectorKind.MEMORY: _IN_PROJECT + " AND CAST(m.id AS text) = given.value",
    SelectorKind.SUBJECT: _IN_PROJECT,
    SelectorKind.SOURCE: """ AND (m.source = given.value OR EXISTS (SELECT 1 FROM source_ancestry AS a
        WHERE a.tenant = given.tenant AND a.source_id = m.source AND a.ancestor_id = given.value))""",
    SelectorKind.EXPIRED: """ AND EXISTS (SELECT 1 FROM revocation_targets AS g WHERE g.job = given.job
        AND g.kind = 'memory' AND g.version = m.id)""",
}
_TABLES: Final = {
    "sqlite": "SELECT given.name FROM {given} JOIN sqlite_master AS s ON s.name = given.name AND s.type = 'table'",
    "postgresql": "SELECT given.name FROM {given} WHERE to_regclass(given.name) IS NOT NULL",
}


def seen(look: Look, database: str, orders: Sequence[EraseOrder]) -> Iterator[tuple[int, int]]:
    """Give what remains: the number of an order, and the id of a memory."""
    if not list(look(_TABLES[database], ("name",), [("memories",)])):
        return
    handles = [
        (number, order.scope.tenant, target.version)
        for number, order in enumerate(orders)
        for target in {t for t in (*order.targets, *order.known) if t.kind == "memory"}
    ]
    yield from look(_BY_HANDLE, ("number", "tenant", "version"), handles)
    for kind, condition in _NAMED.items():
        rows = [
            (number, str(o.job), o.scope.tenant, o.scope.user, o.scope.project, o.selector.value)
            for number, o in enumerate(orders)
            if o.selector.kind is kind
        ]
        yield from look(_BY_SELECTOR + condition, ("number", "job", "tenant", "user_id", "project", "value"), rows)
