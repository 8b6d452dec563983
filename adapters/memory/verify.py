"""Looking again: raw SQL on the file, opened read-only, with none of the code that finds or erases."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from adapters.memory.engine import translated
from orchestrator import EraseOrder, Seen, SelectorKind, Target

_BY_HANDLE: Final = "SELECT fact_id, version FROM facts WHERE tenant = ? AND fact_id = ? AND version = ?"
_CUT_OFF: Final = "SELECT cut_off FROM source_revocations WHERE job = ?"
# A statement that was accepted after the job's cut-off is no copy of what the job forgot.
_BY_SELECTOR: Final = """
    SELECT f.fact_id, f.version FROM facts AS f
    LEFT JOIN accepted_sources AS s ON s.tenant = f.tenant AND s.source_id = f.source
    WHERE f.tenant = :tenant AND f.user_id = :user
      AND (:cut_off IS NULL OR s.position IS NULL OR s.position <= :cut_off)
"""
_IN_PROJECT: Final = " AND (:project IS NULL OR f.project = :project)"
_NAMED: Final = {
    SelectorKind.KEY: _IN_PROJECT + " AND f.key = :value",
    SelectorKind.MEMORY: _IN_PROJECT + " AND f.fact_id = :value",
    SelectorKind.SUBJECT: _IN_PROJECT,
    SelectorKind.SOURCE: """ AND (f.source = :value OR f.source IN (
        SELECT source_id FROM source_ancestry WHERE tenant = :tenant AND ancestor_id = :value))""",
}


def verify(file: Path, orders: Sequence[EraseOrder], *, wait: float) -> list[Seen]:
    """Count what remains of each order: by its targets, by what was revoked, and by its selector."""
    uri = f"{file.as_uri()}?mode=ro"
    with translated(), closing(sqlite3.connect(uri, uri=True, timeout=wait, isolation_level=None)) as connection:
        connection.execute("BEGIN")  # one state for the whole batch
        return [Seen(remaining=len(set(_remaining(connection, order)))) for order in orders]


def _remaining(connection: sqlite3.Connection, order: EraseOrder) -> Iterator[tuple[str, int]]:
    wanted: set[Target] = {t for t in (*order.targets, *order.known) if t.kind == "fact"}
    for target in wanted:
        yield from connection.execute(_BY_HANDLE, (order.scope.tenant, target.id, target.version))
    found = connection.execute(_CUT_OFF, (str(order.job),)).fetchone()
    values = {
        "tenant": order.scope.tenant,
        "user": order.scope.user,
        "project": order.scope.project,
        "value": order.selector.value,
        "cut_off": found[0] if found else None,
    }
    yield from connection.execute(_BY_SELECTOR + _NAMED[order.selector.kind], values)
