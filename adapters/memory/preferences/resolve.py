"""What holds of a key, from the log: now, or as of a sequence.

Principles: the last event decides, whatever it does; a key is compared as it is, and a project by
its exact name. What was erased answers as erased: never by what came before it, and never by what
holds in general.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import assert_never

import sqlalchemy as sa

from adapters.memory.preferences import marks
from adapters.memory.preferences.event import GLOBAL, Operation, newest
from orchestrator import Gate, Scope


class State(StrEnum):
    """What the log says of a key."""

    VALUE = "value"
    DELETED = "deleted"  # it was taken back: that is not the same as never said
    UNSET = "unset"
    ERASED = "erased"  # it was forgotten: what it was is not told, and nothing stands in for it


@dataclass(frozen=True, kw_only=True, slots=True)
class Resolution:
    """The answer, and the event that it rests on.

    `resolved_scope` is `global` or `project:NAME`; both it and `sequence` are None where nothing
    was ever said. `marker` is the sequence of the delete in the project that was asked for, where
    the answer is therefore the general one.
    """

    state: State
    value: str | None = field(default=None, repr=False)
    sequence: int | None = None
    resolved_scope: str | None = None
    marker: int | None = None


def resolve(connection: sa.Connection, gate: Gate, scope: Scope, key: str, as_of: int) -> Resolution:
    """Answer for a project from its own events, else from those of the user in general."""
    own = _of_exactly(connection, gate, scope, key, as_of)
    if scope.project is None or own.state in {State.VALUE, State.ERASED}:
        return own
    general = _of_exactly(connection, gate, replace(scope, project=None), key, as_of)
    return replace(general, marker=own.sequence)


def named(scope: Scope) -> str:
    """Give the name of a scope among those of its user; no project can have that of the general one."""
    return GLOBAL if scope.project is None else f"project:{scope.project}"


def state_of(operation: Operation | None) -> State:
    """Tell what a key is after an operation, or before the first."""
    match operation:
        case None:
            return State.UNSET
        case Operation.SET:
            return State.VALUE
        case Operation.DELETE:
            return State.DELETED
        case Operation.ERASED:
            return State.ERASED
        case _:
            assert_never(operation)


def _of_exactly(connection: sa.Connection, gate: Gate, scope: Scope, key: str, as_of: int) -> Resolution:
    event = newest(connection, scope, key, as_of)
    erased = marks.newest(connection, gate, scope, [key], as_of).get(key, 0)
    if event is not None and event.sequence > erased:
        state = state_of(event.operation)
        return Resolution(state=state, value=event.value, sequence=event.sequence, resolved_scope=named(scope))
    if erased:
        return Resolution(state=State.ERASED, sequence=erased, resolved_scope=named(scope))
    return Resolution(state=State.UNSET)
