"""What is known of a preference: what decides it, as of when, and what that came after."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import sqlalchemy as sa

from adapters.memory.facts import place_of
from adapters.memory.preferences import State
from adapters.memory.preferences.event import GLOBAL
from adapters.memory.preferences.marks import LAST, key_mac
from adapters.memory.preferences.resolve import named, resolve
from adapters.memory.sources import position_of
from adapters.memory.tables import erased_events, preference_events
from orchestrator import Gate, Scope


@dataclass(frozen=True, kw_only=True, slots=True)
class Inspection:
    """The inspection record of a key. `scope` is `global` or `project:NAME`: where the deciding event lies.

    `sequence` is that event's, None where nothing was said; `superseded` are those of the same
    key and scope before it, oldest first. `marker` is that of a delete in the project that was
    asked for, where what holds in general stands in for it.
    """

    user: str
    scope: str
    key: str
    state: State
    value: str | None = field(repr=False)
    sequence: int | None
    as_of: int
    superseded: tuple[int, ...]
    marker: int | None


def inspection(connection: sa.Connection, gate: Gate, scope: Scope, key: str, as_of: int | None) -> Inspection:
    """Tell what the log says of a key; without `as_of`, up to the tenant's latest accepted position."""
    told = resolve(connection, gate, scope, key, LAST if as_of is None else as_of)
    lies_in = replace(scope, project=None) if told.resolved_scope == GLOBAL else scope
    before = 0 if told.sequence is None else told.sequence
    return Inspection(
        user=scope.user,
        scope=named(lies_in),
        key=key,
        state=told.state,
        value=told.value,
        sequence=told.sequence,
        as_of=position_of(connection, scope.tenant) if as_of is None else as_of,
        superseded=tuple(sorted(_before(connection, gate, lies_in, key, before))),
        marker=told.marker,
    )


def _before(connection: sa.Connection, gate: Gate, scope: Scope, key: str, sequence: int) -> set[int]:
    e, m, place = preference_events.c, erased_events.c, place_of(scope)
    here = (e.tenant == place["tenant"]) & (e.user_id == place["user_id"]) & (e.project == place["project"])
    events = sa.select(e.sequence).where(here, e.key == key, e.sequence < sequence)
    of_key = (m.tenant == scope.tenant) & (m.key_mac == key_mac(gate, scope, key))
    erased = sa.select(m.sequence).where(of_key, m.sequence < sequence)
    return {*connection.scalars(events), *connection.scalars(erased)}
