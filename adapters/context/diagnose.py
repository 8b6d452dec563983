"""Why a preference did not reach a model: five checks in the order in which it passes, and the first that fails.

The log (H), what was applied (P), what was selected (R) and what went in (C) are four
representations; that one is right says nothing of the next. That all are right says nothing of
what a model made of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

import sqlalchemy as sa

from adapters.context.assembled import Assembled
from adapters.context.inspection import Inspection, inspection
from adapters.memory.keyed.named import EVENT
from adapters.memory.preferences import Operation, State
from adapters.memory.preferences import state as applied
from adapters.memory.preferences.event import newest
from adapters.memory.preferences.marks import LAST, key_mac
from adapters.memory.preferences.marks import newest as newest_erased
from adapters.memory.tables import preference_events
from orchestrator import Gate, Scope


class Stage(StrEnum):
    """A check that a preference passes on its way into an input, in order."""

    CAPTURED = "captured"
    INTERPRETED = "interpreted"
    APPLIED = "applied"
    SELECTED = "selected"
    INCLUDED = "included"

    @property
    def failure(self) -> str:
        """Say in a sentence what it means that this check failed."""
        return _FAILURES[self]


_FAILURES: Final = {
    Stage.CAPTURED: "No event of this key was accepted from this user up to then.",
    Stage.INTERPRETED: "The user said something of this key, and it was taken to hold in other projects alone.",
    Stage.APPLIED: "What was applied last is not what the log says: `expunge memory replay` builds it anew.",
    Stage.SELECTED: "The input was made without asking for what holds of this key.",
    Stage.INCLUDED: "It is not in the input: left out, or said after the input was made.",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Diagnosis:
    """The first check that fails, None where all that could be made hold, and what is known of the key.

    The last two checks are made where an input is named.
    """

    failed: Stage | None
    known: Inspection


def diagnose(
    connection: sa.Connection, gate: Gate, scope: Scope, key: str, as_of: int | None, made: Assembled | None
) -> Diagnosis:
    """Make the checks in order, as of a sequence: the first that fails is told, whatever is wrong after it."""
    known, until = inspection(connection, gate, scope, key, as_of), LAST if as_of is None else as_of
    silent = known.sequence is None and known.marker is None
    if silent and not _said_anywhere(connection, scope, key, until):
        return Diagnosis(failed=Stage.CAPTURED, known=known)
    if silent:
        return Diagnosis(failed=Stage.INTERPRETED, known=known)
    places = {scope, replace(scope, project=None)}
    if not all(_is_applied(connection, gate, place, key, until) for place in places):
        return Diagnosis(failed=Stage.APPLIED, known=known)
    return Diagnosis(failed=None if made is None else _in_input(gate, scope, key, known, made), known=known)


def _said_anywhere(connection: sa.Connection, scope: Scope, key: str, until: int) -> bool:
    e = preference_events.c
    of_user = (e.tenant == scope.tenant) & (e.user_id == scope.user)
    query = sa.select(sa.literal(1)).where(of_user, e.key == key, e.sequence <= until).limit(1)
    return connection.scalar(query) is not None


def _is_applied(connection: sa.Connection, gate: Gate, scope: Scope, key: str, until: int) -> bool:
    """Tell whether what was applied last in exactly this scope is the log's last event up to then, or a later one."""
    event, held = newest(connection, scope, key, until), applied.current(connection, gate, scope, key)
    erased = newest_erased(connection, gate, scope, [key], until).get(key, 0)
    said = 0 if event is None else event.sequence
    if held.sequence != max(said, erased):
        return held.sequence > max(said, erased)
    if event is None or erased >= said:
        return held.operation in {None, Operation.ERASED}
    return (held.operation, held.value) == (event.operation, event.value)


def _in_input(gate: Gate, scope: Scope, key: str, known: Inspection, made: Assembled) -> Stage | None:
    decides = known.sequence or 0
    consulted = made.consulted.get(key_mac(gate, scope, key))
    # An input that is older than the event could not ask for it: that is no fault of the selection.
    if consulted is None or (consulted != decides and decides <= made.as_of):
        return Stage.SELECTED
    items = {item.position for item in made.items if (item.target.kind, item.key) == (EVENT, key)}
    is_in = consulted == decides and items == ({decides} if known.state is State.VALUE else set())
    return None if is_in else Stage.INCLUDED
