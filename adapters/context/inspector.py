"""Looking at inputs and preferences: reads alone, each of one state of the database."""

from __future__ import annotations

import sqlalchemy as sa

from adapters.context import keep
from adapters.context.assembled import Assembled
from adapters.context.diagnose import Diagnosis, diagnose
from adapters.context.eligible import eligible
from adapters.context.errors import InputUnknown
from adapters.context.inspection import Inspection, inspection
from adapters.context.record import Scoped
from adapters.context.stale import Stale, keys, stale
from adapters.drafts.schema import bring_up, is_here
from adapters.memory import MemoryAdapter
from adapters.memory.engine import reading
from adapters.memory.preferences.marks import LAST
from orchestrator import InvalidRequest, Scope, Selector, SelectorKind


class Inspector:
    """Says what decides a preference, why it is or is not in an input, and what of an input has changed since.

    It sees what the session may see, and no input of anybody else.
    """

    def __init__(self, memory: MemoryAdapter, session: Scoped) -> None:
        """Bind it to a source database and to who asks."""
        self._engine, self._gate = memory.store._engine, memory.store._gate  # noqa: SLF001 - the same database
        self._clock = memory.store._clock  # noqa: SLF001 - as above
        self._session = session

    def inspect(self, key: str, *, project: str | None = None, as_of: int | None = None) -> Inspection:
        """Give the inspection record of a key, now or as of a sequence, that one included."""
        scope = self._scope(key, project, as_of)
        with reading(self._engine, [scope.tenant]) as connection:
            return inspection(connection, self._gate, scope, key, as_of)

    def diagnose(
        self, key: str, *, project: str | None = None, as_of: int | None = None, name: str | None = None
    ) -> Diagnosis:
        """Check how far a preference got, into the input of that name if one is named; raises `InputUnknown`."""
        scope = self._scope(key, project, as_of)
        bring_up(self._engine)
        with reading(self._engine, [scope.tenant]) as connection:
            made = None if name is None else self._made(connection, scope, name)
            return diagnose(connection, self._gate, scope, key, as_of, made)

    def stale(self, name: str, *, project: str | None = None) -> tuple[Stale, ...]:
        """Name what of an input is not what holds now; raises `InputUnknown` for one that was never made, or erased."""
        scope = self._session.scope(project)
        bring_up(self._engine)
        with reading(self._engine, [scope.tenant]) as connection:
            made = self._made(connection, scope, name)
            now = eligible(connection, self._gate, scope, self._clock.now(), keys(connection, scope, made))
            return tuple(stale(self._gate, scope, made, now))

    def _scope(self, key: str, project: str | None, as_of: int | None) -> Scope:
        Selector(kind=SelectorKind.KEY, value=key)
        if as_of is not None and (type(as_of) is not int or not 0 <= as_of <= LAST):
            message = "as_of must be a whole number from 0 on"
            raise InvalidRequest(message, field="as_of")
        return self._session.scope(project)

    def _made(self, connection: sa.Connection, scope: Scope, name: str) -> Assembled:
        found = keep.read(connection, self._gate, scope, name, {}) if is_here(connection) else None
        if found is None:
            raise InputUnknown
        return found[0]
