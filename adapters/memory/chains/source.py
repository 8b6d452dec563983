"""The chains of the source database: every write passes the gate, and what goes is taken by deletion jobs."""

from __future__ import annotations

from collections import Counter
from typing import Final

import sqlalchemy as sa

from adapters.memory.chains import inputs, write
from adapters.memory.chains.clock import ReadingClock
from adapters.memory.chains.gate import pass_gate, scopes_of
from adapters.memory.chains.reading import ChainReader
from adapters.memory.chains.schema import bring_up_shared
from adapters.memory.chains.scope import Level, TaskScope
from adapters.memory.concerned import raise_revisions
from adapters.memory.engine import writing
from adapters.memory.refused import counted
from orchestrator import Gate, Refusal, Scope, Selector, SelectorKind

_OPENING: Final = "chains"
"""Stands in for a tenant while the tables are made: whoever opens a database waits for whoever does."""


def open_in(engine: sa.Engine, clock: ReadingClock, gate: Gate) -> SourceChains:
    """Open the chains in a source database, whose engine sets its connections up; raises `SchemaError`."""
    with writing(engine, [_OPENING]) as connection:
        bring_up_shared(connection)
    return SourceChains(engine, clock, gate)


class SourceChains(ChainReader):
    """Memories that say where they came from, each of a source that was accepted before.

    It neither forgets nor purges: holds are not known here, so both are left to jobs. A
    missing memory and a foreign one raise the same `MemoryNotFound`, wrong input
    `MemoryInputError`, and what the gate refuses `GateRefused`; none of them takes a reading
    of the clock. `refused` counts what the gate refused in this process, by code.
    """

    def __init__(self, engine: sa.Engine, clock: ReadingClock, gate: Gate) -> None:
        """Bind the store to a database that `open_in` has opened."""
        super().__init__(engine, clock)
        self._gate = gate
        self.refused: Counter[Refusal] = Counter()

    def remember(
        self,
        scope: TaskScope,
        level: str,
        text: str,
        source: str,
        ttl_days: int | None = None,
        *,
        user_statement: bool = False,
    ) -> int:
        """Store a memory and give its id. It expires when `ttl_days` (1 to 3650) have passed, without them never.

        `user_statement` says that the authenticated user states it directly in `source`; that
        admits a forgotten text once, if `source` is a message in this task.
        """
        at_level = inputs.check_level(level)
        _check(text, source, ttl_days)
        with writing(self._engine, [scope.tenant]) as connection:
            to = scopes_of(scope)[at_level is Level.TASK]
            self._pass(connection, scope, text, source, to, user_statement=user_statement)
            memory_id = write.remember(connection, self._clock, scope, at_level, text, source, ttl_days)
            raise_revisions(connection, to)
            return memory_id

    def correct(
        self,
        scope: TaskScope,
        memory_id: int,
        text: str,
        source: str,
        ttl_days: int | None = None,
        *,
        user_statement: bool = False,
    ) -> int:
        """Put a new version after the newest of a chain, at its level, and give its id.

        The time to live is not inherited: a correction without `ttl_days` never expires.
        """
        inputs.check_id(memory_id)
        _check(text, source, ttl_days)
        with writing(self._engine, [scope.tenant]) as connection:
            old = write.newest(connection, scope, memory_id)
            to = scopes_of(scope)[old.task_id is not None]
            self._pass(connection, scope, text, source, to, user_statement=user_statement)
            corrected = write.correct(connection, self._clock, scope, old, text, source, ttl_days)
            raise_revisions(connection, to)
            return corrected

    def _pass(
        self, connection: sa.Connection, scope: TaskScope, text: str, source: str, to: Scope, *, user_statement: bool
    ) -> None:
        with counted(self.refused):
            pass_gate(connection, self._gate, scope, text, source, to=to, user_statement=user_statement)


def _check(text: str, source: str, ttl_days: int | None) -> None:
    inputs.check_statement(text, source, ttl_days)
    Selector(kind=SelectorKind.SOURCE, value=source)  # what no selector could name is never stored
