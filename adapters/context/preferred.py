"""What holds of a preference, as it was applied last: that decides what goes into an input, and never a score."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

import sqlalchemy as sa

from adapters.memory.keyed.named import EVENT
from adapters.memory.preferences import Current, Event, EventNotFound, Operation, State
from adapters.memory.preferences import state as applied
from adapters.memory.preferences.event import read
from adapters.memory.preferences.resolve import state_of
from orchestrator import Gate, Scope, Target


@dataclass(frozen=True, kw_only=True, slots=True)
class Preferred:
    """The answer for a key, and the event that decided it: sequence 0 and no event where nothing was ever said.

    `scope` is where that event lies; of one that was erased there is a sequence, and no event.
    """

    state: State
    scope: Scope
    sequence: int = 0
    value: str | None = field(default=None, repr=False)
    event: Event | None = None

    @property
    def target(self) -> Target | None:
        """Name the event, as deletion jobs do."""
        return None if self.event is None else Target(kind=EVENT, id=self.event.id, version=self.sequence)


def current(connection: sa.Connection, gate: Gate, scope: Scope, keys: Collection[str]) -> dict[str, Preferred]:
    """Give what was applied last of these keys: in the project, else in general.

    What was deleted in the project gives way to the general; what was erased there does not.
    """
    return {key: _current(connection, gate, scope, key) for key in sorted(set(keys))}


def _current(connection: sa.Connection, gate: Gate, scope: Scope, key: str) -> Preferred:
    held = applied.current(connection, gate, scope, key)
    if scope.project is not None and held.operation not in {Operation.SET, Operation.ERASED}:
        return _current(connection, gate, replace(scope, project=None), key)
    return Preferred(
        state=state_of(held.operation),
        scope=scope,
        sequence=held.sequence,
        value=held.value,
        event=_event(connection, scope, held),
    )


def _event(connection: sa.Connection, scope: Scope, held: Current) -> Event | None:
    try:
        return read(connection, scope, held.sequence)
    except EventNotFound:
        return None
