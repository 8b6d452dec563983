"""Looking again: hand-written SQL on a connection of its own, with none of the code that finds or erases."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

import sqlalchemy as sa

from adapters.drafts.schema import check
from adapters.memory.look import Look, looking
from orchestrator import EraseOrder, Seen, SelectorKind

# CROSS JOIN keeps SQLite from reading the whole table before what is given.
_BY_HANDLE: Final = """
    SELECT given.number, d.handle FROM {given} CROSS JOIN drafts AS d
    WHERE d.tenant = given.tenant AND d.handle = given.id
"""
_BY_LINEAGE: Final = """
    SELECT given.number, d.handle FROM {given} CROSS JOIN draft_used AS u
    JOIN drafts AS d ON d.tenant = u.tenant AND d.handle = u.handle
    WHERE u.tenant = given.tenant AND u.kind = given.kind AND u.id = given.id
      AND (u.version = given.version OR u.version = 0 OR given.version = 0)
"""
# What was made when a newer source had been accepted is no copy of what the job forgot.
_OF_SUBJECT: Final = """
    SELECT given.number, d.handle FROM {given} CROSS JOIN drafts AS d
    LEFT JOIN source_revocations AS r ON r.job = given.job
    WHERE d.tenant = given.tenant AND d.user_id = given.user_id
      AND (given.project IS NULL OR d.project = given.project)
      AND (r.cut_off IS NULL OR d.position <= r.cut_off)
"""
_TABLES: Final = ("draft_jobs", "drafts", "draft_used", "step_dependencies", "approvals", "draft_schema")
_HERE: Final = {
    "sqlite": "SELECT given.name FROM {given} JOIN sqlite_master AS s ON s.name = given.name AND s.type = 'table'",
    "postgresql": "SELECT given.name FROM {given} WHERE to_regclass(given.name) IS NOT NULL",
}
_VERSION: Final = "SELECT s.version FROM {given} CROSS JOIN draft_schema AS s"


def verify(url: sa.URL, orders: Sequence[EraseOrder], *, wait_ms: int) -> list[Seen]:
    """Count what remains of each order: by its targets, by what the sources revoked, and by the whole subject."""
    left: defaultdict[int, set[str]] = defaultdict(set)
    with looking(url, wait_ms=wait_ms) as look:
        if _is_here(look, url.get_backend_name()):
            for number, handle in (*_by_targets(look, orders), *_of_subjects(look, orders)):
                left[number].add(handle)
    return [Seen(remaining=len(left[number])) for number in range(len(orders))]


def _is_here(look: Look, database: str) -> bool:
    tables = [name for (name,) in look(_HERE[database], ("name",), [(name,) for name in _TABLES])]
    if not tables:
        return False
    versions = [version for (version,) in look(_VERSION, ("number",), [(0,)])] if _TABLES[-1] in tables else []
    check(len(tables) == len(_TABLES), versions)
    return True


def _by_targets(look: Look, orders: Sequence[EraseOrder]) -> list[tuple[int, str]]:
    own = [(n, o.scope.tenant, t.id) for n, o in enumerate(orders) for t in {*o.targets, *o.known}]
    # What was made from a draft is a copy as well, though the find could not know of it.
    known = [(n, o.scope.tenant, t.kind, t.id, t.version) for n, o in enumerate(orders) for t in {*o.targets, *o.known}]
    return [
        *look(_BY_HANDLE, ("number", "tenant", "id"), own),
        *look(_BY_LINEAGE, ("number", "tenant", "kind", "id", "version"), known),
    ]


def _of_subjects(look: Look, orders: Sequence[EraseOrder]) -> list[tuple[int, str]]:
    rows = [
        (number, str(order.job), order.scope.tenant, order.scope.user, order.scope.project)
        for number, order in enumerate(orders)
        if order.selector.kind is SelectorKind.SUBJECT
    ]
    return list(look(_OF_SUBJECT, ("number", "job", "tenant", "user_id", "project"), rows))
