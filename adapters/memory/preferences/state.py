"""What holds now of each key: the event that was applied last, by the order of the log and not by that of arrival.

Principles: one statement compares and writes, so no late event can come between; what is not
newer is refused, a second delivery among it; an event whose key has a later one that was erased
is refused as well. A delete stays as a row: without it, an older set would come back.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

import sqlalchemy as sa

from adapters.memory.facts import place_of
from adapters.memory.preferences import marks
from adapters.memory.preferences.event import Event, Operation
from adapters.memory.tables import preferences
from orchestrator import Gate, Scope

_MOVE: Final = sa.text(
    """
    INSERT INTO preferences (tenant, user_id, project, key, handle, sequence, operation, value)
    SELECT e.tenant, e.user_id, e.project, e.key, e.handle, e.sequence,
           CASE e.state WHEN 'live' THEN e.operation ELSE 'erased' END, CASE e.state WHEN 'live' THEN e.value END
    FROM preference_events e
    WHERE e.tenant = :tenant AND e.user_id = :user_id AND e.project = :project AND e.sequence = :sequence
      AND NOT EXISTS (
        SELECT 1 FROM erased_events m WHERE m.tenant = :tenant AND m.key_mac = :key_mac AND m.sequence >= :sequence
      )
    ON CONFLICT (tenant, user_id, project, key) DO UPDATE
    SET handle = excluded.handle, sequence = excluded.sequence,
        operation = excluded.operation, value = excluded.value
    WHERE excluded.sequence > preferences.sequence
    RETURNING sequence
    """
)


class Applying(StrEnum):
    """What applying an event came to; only `applied` has changed anything."""

    APPLIED = "applied"
    REJECTED = "rejected"  # what holds is newer
    DUPLICATE = "duplicate"  # it was applied before
    ANOMALY = "anomaly"  # what holds has this sequence, and says something else


@dataclass(frozen=True, kw_only=True, slots=True)
class Current:
    """What holds of a key: sequence 0 and no operation where nothing was applied yet."""

    sequence: int = 0
    operation: Operation | None = None
    value: str | None = field(default=None, repr=False)


def apply(connection: sa.Connection, gate: Gate, scope: Scope, event: Event) -> Applying:
    """Let an event of this scope hold where it is newer than what does; the log itself is read for what it says."""
    if _move(connection, gate, scope, event):
        return Applying.APPLIED
    row = _row(connection, scope, event.key)
    if row is None or row.sequence != event.sequence:
        return Applying.REJECTED
    same = (row.handle, row.operation, row.value) == (event.id, event.operation, event.value)
    return Applying.DUPLICATE if same else Applying.ANOMALY


def current(connection: sa.Connection, gate: Gate, scope: Scope, key: str) -> Current:
    """Give what holds of a key of exactly this scope: where its last event was erased, that."""
    row = _row(connection, scope, key)
    erased = marks.newest(connection, gate, scope, [key]).get(key, 0)
    if row is not None and row.sequence > erased:
        return Current(sequence=row.sequence, operation=Operation(row.operation), value=row.value)
    return Current(sequence=erased, operation=Operation.ERASED) if erased else Current()


def _move(connection: sa.Connection, gate: Gate, scope: Scope, event: Event) -> bool:
    given = {**place_of(scope), "sequence": event.sequence, "key_mac": marks.key_mac(gate, scope, event.key)}
    return connection.execute(_MOVE, given).first() is not None


def _row(connection: sa.Connection, scope: Scope, key: str) -> sa.Row[Any] | None:
    p, place = preferences.c, place_of(scope)
    here = (p.tenant == scope.tenant, p.user_id == scope.user, p.project == place["project"], p.key == key)
    return connection.execute(sa.select(preferences).where(*here)).first()
