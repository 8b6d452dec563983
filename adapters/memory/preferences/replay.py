"""What holds, built anew from the log: for what was lost, applied in part, or changed by other hands."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from adapters.memory.batch import Row, change, columns, insert_all
from adapters.memory.facts import place_of
from adapters.memory.preferences import marks
from adapters.memory.preferences.event import newest_of_each
from adapters.memory.tables import preferences
from orchestrator import Gate, Scope

_KEY: Final = columns(tenant=str, user_id=str, project=str, key=str)


def replay(connection: sa.Connection, gate: Gate, scope: Scope) -> int:
    """Let the last event of each key of exactly this scope hold; give the number of keys that changed."""
    place = tuple(place_of(scope).values())
    right, held = _from_log(connection, gate, scope), _held(connection, scope)
    wrong = sorted(key for key in right.keys() | held.keys() if right.get(key) != held.get(key))
    change(connection, _KEY, [(*place, key) for key in wrong], _delete)
    insert_all(connection, preferences, [(*place, key, *right[key]) for key in wrong if key in right])
    return len(wrong)


def _from_log(connection: sa.Connection, gate: Gate, scope: Scope) -> dict[str, Row]:
    events = newest_of_each(connection, scope)
    erased = marks.newest(connection, gate, scope, events.keys())
    return {
        key: (event.id, event.sequence, event.operation.value, event.value)
        for key, event in events.items()
        if event.sequence > erased.get(key, 0)
    }


def _held(connection: sa.Connection, scope: Scope) -> dict[str, Row]:
    p, place = preferences.c, place_of(scope)
    here = (p.tenant == scope.tenant, p.user_id == scope.user, p.project == place["project"])
    rows = connection.execute(sa.select(p.key, p.handle, p.sequence, p.operation, p.value).where(*here))
    return {key: tuple(rest) for key, *rest in rows}


def _delete(given: sa.FromClause) -> sa.Delete:
    p = preferences.c
    these = sa.tuple_(p.tenant, p.user_id, p.project, p.key).in_(sa.select(given))
    return preferences.delete().where(these)
