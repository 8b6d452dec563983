"""The preference log as a library: each method is one transaction, and every write passes the gate in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import sqlalchemy as sa
import structlog

from adapters.memory.concerned import raise_revisions
from adapters.memory.engine import reading, writing
from adapters.memory.facts import check_names, check_value
from adapters.memory.gate import pass_gate
from adapters.memory.instant import micros
from adapters.memory.preferences import marks
from adapters.memory.preferences.event import Event, Operation, insert, read
from adapters.memory.preferences.replay import replay
from adapters.memory.preferences.resolve import Resolution, resolve
from adapters.memory.preferences.state import Applying, Current, apply, current
from adapters.memory.refused import counted
from adapters.memory.sources import next_position
from orchestrator import Clock, Gate, InvalidRequest, Refusal, Scope, Selector, SelectorKind


class PreferenceLog:
    """What users prefer: every change in the order in which it was accepted, and what holds of each key.

    The caller vouches for the scope, as for the facts. A scope without a project says what holds
    in general; a project that says nothing of a key itself takes that. `refused` counts what the
    gate refused in this process, by code, and `anomalies` the events that were delivered again
    with another content.
    """

    def __init__(self, engine: sa.Engine, gate: Gate, clock: Clock) -> None:
        """Bind the log to its database."""
        self._engine, self._gate, self._clock = engine, gate, clock
        self.refused: Counter[Refusal] = Counter()
        self.anomalies = 0

    def record(self, scope: Scope, key: str, value: str | None, source: str, *, user_statement: bool = False) -> Event:
        """Accept that a key is set, or by None that it is deleted; the log gives it its sequence.

        It holds when it is applied. `user_statement` says that the authenticated user states it
        directly in `source`; that admits a forgotten text once per source and key, if `source` is a
        message of this scope. Raises `GateRefused`, for a source that was never accepted as well,
        and `InvalidRequest` (a `ValueError`) for an empty key, source or value.
        """
        with self._accepting(scope, key, value, source) as connection:
            return self._record(connection, scope, key, value, source, user_statement=user_statement)

    def apply(self, scope: Scope, sequence: int) -> Applying:
        """Let an accepted event hold where it is newer than what holds; raises `EventNotFound` for none of this scope.

        What comes late, or twice, changes nothing.
        """
        _check_sequence("sequence", sequence)
        with writing(self._engine, [scope.tenant]) as connection:
            event = read(connection, scope, sequence)
            outcome = apply(connection, self._gate, scope, event)
            if outcome is Applying.APPLIED:
                raise_revisions(connection, scope)
        if outcome is Applying.ANOMALY:
            self.anomalies += 1
            structlog.get_logger().warning("preference.contradicted", event_id=event.id, sequence=event.sequence)
        return outcome

    def prefer(self, scope: Scope, key: str, value: str | None, source: str, *, user_statement: bool = False) -> Event:
        """Accept an event as `record` does, and apply it in the same transaction."""
        with self._accepting(scope, key, value, source) as connection:
            event = self._record(connection, scope, key, value, source, user_statement=user_statement)
            # Nothing newer can hold: the sequence was taken in this transaction.
            apply(connection, self._gate, scope, event)
            return event

    def resolve(self, scope: Scope, key: str, as_of: int | None = None) -> Resolution:
        """Tell from the log what holds of a key, or what held up to the sequence `as_of`, that one included."""
        Selector(kind=SelectorKind.KEY, value=key)
        if as_of is not None:
            _check_sequence("as_of", as_of)
        with reading(self._engine, [scope.tenant]) as connection:
            return resolve(connection, self._gate, scope, key, marks.LAST if as_of is None else as_of)

    def state(self, scope: Scope, key: str) -> Current:
        """Tell what was applied last of a key of exactly this scope, which may be behind the log."""
        Selector(kind=SelectorKind.KEY, value=key)
        with reading(self._engine, [scope.tenant]) as connection:
            return current(connection, self._gate, scope, key)

    def replay(self, scope: Scope) -> int:
        """Build what holds in exactly this scope anew from the log; give how many keys changed: 0 where it was so."""
        with writing(self._engine, [scope.tenant]) as connection:
            changed = replay(connection, self._gate, scope)
            if changed:
                raise_revisions(connection, scope)
            return changed

    @contextmanager
    def _accepting(self, scope: Scope, key: str, value: str | None, source: str) -> Iterator[sa.Connection]:
        check_names(key, source)
        if value is not None:
            check_value(value)
        with counted(self.refused), writing(self._engine, [scope.tenant]) as connection:
            yield connection

    def _record(
        self, connection: sa.Connection, scope: Scope, key: str, value: str | None, source: str, *, user_statement: bool
    ) -> Event:
        # A delete says no text: there is nothing that a statement could confirm, and none is used up.
        stated = user_statement and value is not None
        pass_gate(connection, self._gate, scope, key, value or "", source, user_statement=stated)
        event = Event(
            id=str(uuid4()),
            sequence=next_position(connection, scope.tenant),
            key=key,
            operation=Operation.DELETE if value is None else Operation.SET,
            value=value,
            source=source,
            accepted_at_us=micros(self._clock.now()),
        )
        insert(connection, scope, event)
        raise_revisions(connection, scope)
        return event


def _check_sequence(name: str, sequence: int) -> None:
    """Raise `InvalidRequest` for what is no sequence: an exact whole number from 0 on."""
    if type(sequence) is not int or not 0 <= sequence <= marks.LAST:
        raise InvalidRequest(f"{name} must be a whole number from 0 on", field=name)
