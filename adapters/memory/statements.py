"""Statements of users: how far one reaches decides where it goes, and whether it is kept at all.

The application reads the words and says the reach; nothing here is inferred. What it said is kept beside the source.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeAlias, assert_never

import sqlalchemy as sa

from adapters.memory import facts
from adapters.memory.batch import Found
from adapters.memory.confirmation import said_in
from adapters.memory.engine import reading, writing
from adapters.memory.refused import counted
from adapters.memory.sources import origin_of
from adapters.memory.tables import facts as table
from adapters.memory.tables import source_reaches
from adapters.memory.tombstones import LocalTombstones
from orchestrator import Clock, Gate, GateRefused, InvalidRequest, Refusal, Refused, Scope, Write


class Reach(StrEnum):
    """How far a statement reaches."""

    ANSWER = "answer"  # one answer
    TASK = "task"  # what is being done now
    PROJECT = "project"  # everything in this project, from now on
    USER = "user"  # the user in general, in every project


class NotSaid(Refused):
    """The source is no message of the user in this scope: nobody has stated it there."""


class ReachTaken(Refused):
    """This message was taken with another reach for the same key: let the user say it in a message of its own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Constraint:
    """What binds one answer or one task, and is kept nowhere: the caller hands it on and lets it go."""

    key: str
    value: str = field(repr=False)
    reach: Reach


@dataclass(frozen=True, kw_only=True, slots=True)
class Kept:
    """Where a statement was kept, and as which version of its key."""

    scope: Scope
    key: str
    version: int
    reach: Reach


Taken: TypeAlias = Constraint | Kept


class Statements:
    """Takes what users state, as far as it reaches. The caller vouches for the scope, and for the reach.

    `refused` counts what the gate refused in this process, by code.
    """

    def __init__(self, engine: sa.Engine, gate: Gate, clock: Clock) -> None:
        """Bind it to a source database."""
        self._engine, self._gate, self._clock = engine, gate, clock
        self.refused: Counter[Refusal] = Counter()

    def take(
        self, scope: Scope, key: str, value: str, source: str, *, reach: Reach, expires: float = math.inf
    ) -> Taken:
        """Keep a statement in the project of `scope` or for the user in general, or give it back as a constraint.

        `source` is a message of the user in `scope`. The same again gives the same answer, and brings back nothing
        that was revoked since. Raises `NotSaid`, `ReachTaken`, `GateRefused` and `InvalidRequest`.
        """
        facts.check(key, value, source, expires)
        if not isinstance(reach, Reach):
            raise InvalidRequest(f"reach must be one of {', '.join(Reach)}", field="reach")
        if reach is Reach.PROJECT and scope.project is None:
            message = "what reaches a project needs a scope with that project"
            raise InvalidRequest(message, field="reach")
        with counted(self.refused), writing(self._engine, [scope.tenant]) as connection:
            if not said_in(connection, scope, source):
                raise NotSaid
            self._note(connection, scope, key, source, reach)
            match reach:
                case Reach.ANSWER | Reach.TASK:
                    self._pass_once(connection, scope, key, value, source)
                    return Constraint(key=key, value=value, reach=reach)
                case Reach.PROJECT | Reach.USER:
                    place = scope if reach is Reach.PROJECT else replace(scope, project=None)
                    version = self._keep(connection, place, key, value, source, expires, said_at=scope)
                    return Kept(scope=place, key=key, version=version, reach=reach)
                case _:
                    assert_never(reach)

    def reach_of(self, scope: Scope, key: str, source: str) -> Reach | None:
        """Tell how far a message was taken to reach for a key; None where it was not taken for it."""
        with reading(self._engine, [scope.tenant]) as connection:
            return _reach_of(connection, *self._named(scope, key, source))

    def _note(self, connection: sa.Connection, scope: Scope, key: str, source: str, reach: Reach) -> None:
        named = self._named(scope, key, source)
        known = _reach_of(connection, *named)
        if known is None:
            connection.execute(source_reaches.insert().values((*named, reach.value)))
        elif known is not reach:
            raise ReachTaken(reach=known)

    def _pass_once(self, connection: sa.Connection, scope: Scope, key: str, value: str, source: str) -> None:
        # Nothing is kept, so no confirmation is used up.
        origin = origin_of(connection, scope, source)
        write = Write(scope=scope, key=key, text=value, origin=origin, confirmed=True)
        refusal = self._gate.decide(write, LocalTombstones(connection))
        if refusal is not None:
            raise GateRefused(refusal)

    def _keep(
        self,
        connection: sa.Connection,
        place: Scope,
        key: str,
        value: str,
        source: str,
        expires: float,
        *,
        said_at: Scope,
    ) -> int:
        kept = _kept(connection, place, key, source)
        if kept is not None and (kept.state == "revoked" or (kept.value, kept.expires) == (value, expires)):
            return int(kept.version)
        return facts.put(
            connection,
            self._gate,
            place,
            key,
            value,
            source,
            expires=expires,
            confirmed=True,
            user_statement=True,
            said_at=said_at,
        )

    def _named(self, scope: Scope, key: str, source: str) -> tuple[str, str, str]:
        return scope.tenant, source, self._gate.handle(scope.tenant, "reach", scope.canonical(), key)


def _reach_of(connection: sa.Connection, tenant: str, source: str, key_mac: str) -> Reach | None:
    r = source_reaches.c
    query = sa.select(r.reach).where(r.tenant == tenant, r.source_id == source, r.key_mac == key_mac)
    found = connection.scalar(query)
    return None if found is None else Reach(found)


def _kept(connection: sa.Connection, place: Scope, key: str, source: str) -> Found | None:
    """Give the newest version of a key that a message has told."""
    f, here = table.c, facts.place_of(place)
    query = sa.select(f.version, f.value, f.expires, f.state).where(f.source == source, f.key == key)
    query = query.where(f.tenant == here["tenant"], f.user_id == here["user_id"], f.project == here["project"])
    return connection.execute(query.order_by(f.version.desc()).limit(1)).first()
