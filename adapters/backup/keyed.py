"""Events of preferences and candidates in a copy: which an order names, and how they go.

Principles: the tenant stands in every statement; an event goes with what holds by it, and leaves
a mark in the copy as it does in the source: whoever restores it must not be given an older answer.
An older copy has no such tables.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Mapping
from typing import Final

from adapters.backup.looking import tables_of
from orchestrator import EraseOrder, Gate, Scope, SelectorKind, Target

EVENT: Final = "event"
CANDIDATE: Final = "candidate"
Handle = tuple[str, int]
"""Handle and version: an event's is its sequence, a candidate's 0."""
_NOT_AFTER: Final = "coalesce(s.position <= coalesce(:cut_off, r.cut_off), TRUE)"
_ROWS: Final = f"""
    LEFT JOIN accepted_sources AS s ON s.tenant = t.tenant AND s.source_id = t.source
    LEFT JOIN source_revocations AS r ON r.job = :job
    WHERE t.tenant = :tenant AND t.user_id = :user AND {_NOT_AFTER} AND """
_EVENTS: Final = f"SELECT t.handle, t.sequence FROM preference_events AS t {_ROWS}"  # noqa: S608 - texts of ours
_CANDIDATES: Final = f"SELECT t.handle, 0 FROM fact_candidates AS t {_ROWS}"  # noqa: S608 - as above
_IN_PROJECT: Final = "(:project IS NULL OR t.project = :project)"
_TOLD_IN: Final = """({0} = :value OR EXISTS (SELECT 1 FROM source_ancestry AS a
    WHERE a.tenant = :tenant AND a.source_id = {0} AND a.ancestor_id = :value))"""
_OF_FACT: Final = """(t.handle = :value OR EXISTS (SELECT 1 FROM facts AS f WHERE f.tenant = t.tenant
    AND f.user_id = t.user_id AND f.project = t.project AND f.key = t.key AND f.fact_id = :value))"""
_NAMED_EVENTS: Final[Mapping[SelectorKind, str]] = {
    SelectorKind.KEY: f"{_EVENTS} {_IN_PROJECT} AND t.key = :value",
    SelectorKind.MEMORY: f"{_EVENTS} {_IN_PROJECT} AND {_OF_FACT}",
    SelectorKind.SUBJECT: f"{_EVENTS} {_IN_PROJECT}",
    SelectorKind.SOURCE: f"{_EVENTS} {_TOLD_IN.format('t.source')}",
}
_NAMED_CANDIDATES: Final[Mapping[SelectorKind, str]] = {
    SelectorKind.KEY: f"{_CANDIDATES} {_IN_PROJECT} AND t.key = :value",
    SelectorKind.MEMORY: f"{_CANDIDATES} {_IN_PROJECT} AND {_OF_FACT}",
    SelectorKind.SUBJECT: f"{_CANDIDATES} {_IN_PROJECT}",
    SelectorKind.SOURCE: f"{_CANDIDATES} ({_TOLD_IN.format('t.source')} OR {_TOLD_IN.format('t.decided_in')})",
}
_GIVEN: Final = """(SELECT json_extract(value, '$[0]') AS handle, json_extract(value, '$[1]') AS version
    FROM json_each(:known)) AS g"""
# What holds by an event is its copy: it is named though the event itself is not there.
_KNOWN_EVENTS: Final = f"""
    SELECT e.handle, e.sequence FROM {_GIVEN} CROSS JOIN preference_events AS e
    WHERE e.tenant = :tenant AND e.handle = g.handle AND e.sequence = g.version
    UNION SELECT p.handle, p.sequence FROM {_GIVEN} CROSS JOIN preferences AS p
    WHERE p.tenant = :tenant AND p.handle = g.handle AND p.sequence = g.version
"""  # noqa: S608 - as above
_KNOWN_CANDIDATES: Final = f"""
    SELECT c.handle, 0 FROM {_GIVEN} CROSS JOIN fact_candidates AS c
    WHERE c.tenant = :tenant AND c.handle = g.handle AND g.version = 0
"""  # noqa: S608 - as above
_KEYS: Final = f"""
    SELECT e.user_id, e.project, e.key, e.sequence FROM {_GIVEN} CROSS JOIN preference_events AS e
    WHERE e.tenant = :tenant AND e.handle = g.handle AND e.sequence = g.version
"""  # noqa: S608 - as above
_MARK: Final = "INSERT INTO erased_events VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_DELETE: Final[Mapping[str, tuple[str, ...]]] = {
    EVENT: tuple(
        f"DELETE FROM {table} WHERE tenant = :tenant AND (handle, sequence) IN (SELECT handle, version FROM {_GIVEN})"  # noqa: S608 - as above
        for table in ("preferences", "preference_events")
    ),
    CANDIDATE: (
        f"DELETE FROM fact_candidates WHERE tenant = :tenant AND handle IN (SELECT handle FROM {_GIVEN})",  # noqa: S608 - as above
    ),
}


def named(
    connection: sqlite3.Connection,
    order: EraseOrder,
    known: Collection[Target],
    kind: str,
    asked: Mapping[str, str | int | None],
) -> tuple[Handle, ...]:
    """Give the events, or the candidates, of a copy that an order names; `known` are those of the source.

    `asked` are the parameters that say who asks for what.
    """
    if not are_here(connection):
        return ()
    events = kind == EVENT
    statement = (_NAMED_EVENTS if events else _NAMED_CANDIDATES).get(order.selector.kind)
    found = set(connection.execute(statement, asked)) if statement is not None else set()
    handles = sorted({(target.id, target.version) for target in known if target.kind == kind})
    if handles:
        found.update(
            connection.execute(_KNOWN_EVENTS if events else _KNOWN_CANDIDATES, _given(order.scope.tenant, handles))
        )
    return tuple(sorted((handle, version) for handle, version in found if handle not in order.held))


def holds(connection: sqlite3.Connection, tenant: str, kind: str, record: Handle) -> bool:
    """Tell whether a copy holds an event or candidate of a tenant, whoever owns it."""
    statement = _KNOWN_EVENTS if kind == EVENT else _KNOWN_CANDIDATES
    return are_here(connection) and connection.execute(statement, _given(tenant, [record])).fetchone() is not None


def delete(new: sqlite3.Connection, gate: Gate, tenant: str, kind: str, records: Collection[Handle]) -> None:
    """Delete events with what holds by them, or candidates; an event leaves its mark."""
    given = _given(tenant, records)
    if kind == EVENT:
        for user, project, key, sequence in new.execute(_KEYS, given).fetchall():
            scope = Scope(tenant=tenant, user=user, project=project or None)
            new.execute(_MARK, (tenant, gate.handle(tenant, "preference", scope.canonical(), key), sequence))
    for statement in _DELETE[kind]:
        new.execute(statement, given)


def are_here(connection: sqlite3.Connection) -> bool:
    """Tell whether a copy has the tables of events and candidates."""
    return "preference_events" in tables_of(connection)


def _given(tenant: str, handles: Collection[Handle]) -> dict[str, str]:
    return {"tenant": tenant, "known": json.dumps(list(handles), ensure_ascii=False)}
