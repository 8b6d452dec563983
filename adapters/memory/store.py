"""The memory store as a library: each method is one transaction, and every write passes the gate in it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection
from dataclasses import replace

import sqlalchemy as sa

from adapters.memory import facts, sources
from adapters.memory.engine import checkpoint, reading, writing
from adapters.memory.facts import Fact
from adapters.memory.forget import Forgotten, forget
from adapters.memory.holding import HoldsOn, nobody_holds
from adapters.memory.refused import counted
from adapters.memory.sources import SourceKind
from adapters.memory.versions import check_version
from orchestrator import Clock, Gate, Refusal, Scope


class MemoryStore:
    """Facts of a scope with versions and a revision.

    The caller vouches for the scope: it comes from a session, never from a request's body. A
    scope without a project holds what is true of the user in general; reads match exactly.
    `refused` counts what the gate refused in this process, by code.
    """

    def __init__(self, engine: sa.Engine, gate: Gate, clock: Clock, holds: HoldsOn = nobody_holds) -> None:
        """Bind the store to its database."""
        self._engine, self._gate, self._clock, self._holds = engine, gate, clock, holds
        self.refused: Counter[Refusal] = Counter()

    def register_source(
        self,
        scope: Scope,
        source_id: str,
        *,
        kind: str = SourceKind.USER_MESSAGE,
        derived_from: Collection[str] = (),
    ) -> int:
        """Accept a source and give its position; the same data again gives the same position.

        Raises `GateRefused` for a forgotten source or an unknown ancestor, `Refused` for an
        id that was accepted with other data.
        """
        at_us = round(self._clock.now().timestamp() * 1_000_000)
        with counted(self.refused), writing(self._engine, [scope.tenant]) as connection:
            return sources.register(
                connection, self._gate, scope, source_id, kind=kind, derived_from=derived_from, at_us=at_us
            )

    def knows_source(self, scope: Scope, source_id: str) -> bool:
        """Tell whether this user has an accepted source of that id."""
        with reading(self._engine, [scope.tenant]) as connection:
            return sources.origin_of(connection, scope, source_id) is not None

    def put(
        self,
        scope: Scope,
        key: str,
        value: str,
        source: str,
        expires: float = math.inf,
        *,
        confirmed: bool = True,
        user_statement: bool = False,
    ) -> int:
        """Store a new version of a key, make it the active one, and give its number.

        `user_statement` says that the authenticated user states it directly in `source`;
        that admits a forgotten text once per source and key, if `source` is a message of
        this scope. An unconfirmed version hides a confirmed one from `current`.
        Raises `GateRefused`, and `InvalidRequest` (a `ValueError`) for an empty key or source.
        """
        facts.check(key, value, source, expires)
        with counted(self.refused), writing(self._engine, [scope.tenant]) as connection:
            return facts.put(
                connection,
                self._gate,
                scope,
                key,
                value,
                source,
                expires=expires,
                confirmed=confirmed,
                user_statement=user_statement,
            )

    def replace(
        self,
        scope: Scope,
        key: str,
        value: str,
        source: str,
        *,
        expected_version: int,
        expires: float = math.inf,
        confirmed: bool = True,
        user_statement: bool = False,
    ) -> int:
        """Store a new version of a key as `put` does, if the key is still at the version that was read.

        `expected_version` is 0 where there is to be nothing of the key; what was erased is nothing, what was
        revoked and is not erased yet is something. Raises `VersionConflict`, from which no repeat leads on: the
        caller reads again and asks the user.
        """
        facts.check(key, value, source, expires)
        check_version(expected_version)
        with counted(self.refused), writing(self._engine, [scope.tenant]) as connection:
            return facts.put(
                connection,
                self._gate,
                scope,
                key,
                value,
                source,
                expires=expires,
                confirmed=confirmed,
                user_statement=user_statement,
                expected_version=expected_version,
            )

    def current(self, scope: Scope, now: float | None = None) -> list[Fact]:
        """Give the active, confirmed facts of exactly this scope that expire after `now`, by key."""
        at = self._clock.now().timestamp() if now is None else now
        with reading(self._engine, [scope.tenant]) as connection:
            return facts.current(connection, scope, at)

    def revision(self, scope: Scope) -> int:
        """Give the scope's revision, 0 where nothing was ever stored."""
        with reading(self._engine, [scope.tenant]) as connection:
            return facts.revision(connection, scope)

    def revision_for_answers(self, scope: Scope) -> int:
        """Give the revision under which an answer of a scope is cached: read it before the facts.

        It is the higher one of the scope's and of that of the user in general, which a request that
        reaches into all projects raises.
        """
        places = {scope, replace(scope, project=None)}
        with reading(self._engine, [scope.tenant]) as connection:
            return max(facts.revisions(connection, places).values(), default=0)

    def forget(self, scope: Scope, key: str) -> Forgotten:
        """Revoke every version of a key here; a scope without a project means every project.

        It sets no tombstones and reaches no copies: a deletion job does. Raises `RuleRefused` while a legal hold
        covers any of them: a deletion job waits until it is released.
        """
        with writing(self._engine, [scope.tenant]) as connection:
            answer = forget(connection, self._holds, scope, key)
        checkpoint(self._engine)
        return answer
