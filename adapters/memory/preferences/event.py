"""The log of preferences: events in the order in which they were accepted, and never changed but by a forget request.

The order is that of the tenant's positions, which sources take as well. No caller gives one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

import sqlalchemy as sa

from adapters.memory.batch import raise_numbers
from adapters.memory.facts import place_of
from adapters.memory.tables import preference_events, tenant_positions
from orchestrator import Refused, Scope

GLOBAL: Final = "global"
_LIVE: Final = "live"
_E: Final = preference_events.c
_INSERT: Final = sa.text(
    """
    INSERT INTO preference_events
      (tenant, sequence, handle, user_id, project, key, operation, value, source, accepted_at_us, state)
    VALUES
      (:tenant, :sequence, :handle, :user_id, :project, :key, :operation, :value, :source, :accepted_at_us, 'live')
    ON CONFLICT (tenant, sequence) DO NOTHING
    RETURNING sequence
    """
)


class Operation(StrEnum):
    """What an event does to its key."""

    SET = "set"
    DELETE = "delete"
    ERASED = "erased"  # what it did was forgotten; that there was one stays


class EventNotFound(Refused):
    """There is no such event in this scope: it was never accepted, or it was erased."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """An accepted event. `value` is None unless it sets one; `accepted_at_us` is in microseconds since 1970."""

    id: str
    sequence: int
    key: str
    operation: Operation
    value: str | None = field(repr=False)
    source: str
    accepted_at_us: int


def insert(connection: sa.Connection, scope: Scope, event: Event) -> None:
    """Write an event that was let through; raises `Refused` where its sequence is taken.

    Whatever is accepted afterwards comes after it, also where it brings its sequence from elsewhere.
    """
    row = {
        **place_of(scope),
        "handle": event.id,
        "sequence": event.sequence,
        "key": event.key,
        "operation": event.operation.value,
        "value": event.value,
        "source": event.source,
        "accepted_at_us": event.accepted_at_us,
    }
    if connection.execute(_INSERT, row).first() is None:
        message = "There is an event of this sequence already."
        raise Refused(message)
    raise_numbers(connection, tenant_positions, [(scope.tenant, event.sequence)])


def read(connection: sa.Connection, scope: Scope, sequence: int) -> Event:
    """Give an event of exactly this scope; raises `EventNotFound`."""
    row = connection.execute(sa.select(preference_events).where(*_in(scope), _E.sequence == sequence)).first()
    if row is None:
        raise EventNotFound
    return _event(row)


def newest(connection: sa.Connection, scope: Scope, key: str, as_of: int) -> Event | None:
    """Give the last event of a key of exactly this scope up to a sequence, that one included."""
    of_key = sa.select(preference_events).where(*_in(scope), _E.key == key, _E.sequence <= as_of)
    row = connection.execute(of_key.order_by(_E.sequence.desc()).limit(1)).first()
    return None if row is None else _event(row)


def newest_of_each(connection: sa.Connection, scope: Scope) -> dict[str, Event]:
    """Give the last event of each key of exactly this scope."""
    in_order = sa.select(preference_events).where(*_in(scope)).order_by(_E.sequence)
    return {row.key: _event(row) for row in connection.execute(in_order)}


def _in(scope: Scope) -> tuple[sa.ColumnElement[bool], ...]:
    place = place_of(scope)
    return _E.tenant == place["tenant"], _E.user_id == place["user_id"], _E.project == place["project"]


def _event(row: sa.Row[Any]) -> Event:
    live = row.state == _LIVE
    return Event(
        id=row.handle,
        sequence=row.sequence,
        key=row.key,
        operation=Operation(row.operation) if live else Operation.ERASED,
        value=row.value if live else None,
        source=row.source,
        accepted_at_us=row.accepted_at_us,
    )
