"""Looking again: hand-written SQL on a connection of its own, with none of the code that finds or erases."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

import sqlalchemy as sa

from adapters.memory.chains import verify as chains
from adapters.memory.keyed import verify as keyed
from adapters.memory.look import Look, looking
from orchestrator import EraseOrder, Seen, SelectorKind

# CROSS JOIN keeps SQLite from reading the whole table before what is given.
_BY_HANDLE: Final = """
    SELECT given.number, f.fact_id, f.version FROM {given} CROSS JOIN facts AS f
    WHERE f.tenant = given.tenant AND f.fact_id = given.fact_id AND f.version = given.version
"""
# A statement that was accepted after the job's cut-off is no copy of what the job forgot.
_BY_SELECTOR: Final = """
    SELECT given.number, f.fact_id, f.version FROM {given} CROSS JOIN facts AS f
    LEFT JOIN accepted_sources AS s ON s.tenant = f.tenant AND s.source_id = f.source
    LEFT JOIN source_revocations AS r ON r.job = given.job
    WHERE f.tenant = given.tenant AND f.user_id = given.user_id
      AND (r.cut_off IS NULL OR s.position IS NULL OR s.position <= r.cut_off)
"""
_IN_PROJECT: Final = " AND (given.project IS NULL OR f.project = given.project)"
_NAMED: Final = {
    SelectorKind.KEY: _IN_PROJECT + " AND f.key = given.value",
    SelectorKind.MEMORY: _IN_PROJECT + " AND f.fact_id = given.value",
    SelectorKind.SUBJECT: _IN_PROJECT,
    SelectorKind.SOURCE: """ AND (f.source = given.value OR EXISTS (SELECT 1 FROM source_ancestry AS a
        WHERE a.tenant = f.tenant AND a.source_id = f.source AND a.ancestor_id = given.value))""",
    SelectorKind.EXPIRED: """ AND EXISTS (SELECT 1 FROM revocation_targets AS g WHERE g.job = given.job
        AND g.kind = 'fact' AND g.handle = f.fact_id AND g.version = f.version)""",
}


def verify(url: sa.URL, orders: Sequence[EraseOrder], *, wait_ms: int) -> list[Seen]:
    """Count what remains of each order: by its targets, by what was revoked, and by its selector."""
    left: defaultdict[int, set[tuple[str, int | str]]] = defaultdict(set)
    with looking(url, wait_ms=wait_ms) as look:
        for number, fact_id, version in (*_by_handle(look, orders), *_by_selector(look, orders)):
            left[number].add((fact_id, version))
        for number, memory in chains.seen(look, url.get_backend_name(), orders):
            left[number].add(("memory", memory))
        for number, kind, handle in keyed.seen(look, orders):
            left[number].add((kind, handle))
    return [Seen(remaining=len(left[number])) for number in range(len(orders))]


def _by_handle(look: Look, orders: Sequence[EraseOrder]) -> list[tuple[int, str, int]]:
    rows = [
        (number, order.scope.tenant, target.id, target.version)
        for number, order in enumerate(orders)
        for target in {t for t in (*order.targets, *order.known) if t.kind == "fact"}
    ]
    return list(look(_BY_HANDLE, ("number", "tenant", "fact_id", "version"), rows))


def _by_selector(look: Look, orders: Sequence[EraseOrder]) -> list[tuple[int, str, int]]:
    found: list[tuple[int, str, int]] = []
    for kind, condition in _NAMED.items():
        rows = [
            (number, str(o.job), o.scope.tenant, o.scope.user, o.scope.project, o.selector.value)
            for number, o in enumerate(orders)
            if o.selector.kind is kind
        ]
        columns = ("number", "job", "tenant", "user_id", "project", "value")
        found += look(_BY_SELECTOR + condition, columns, rows)
    return found
