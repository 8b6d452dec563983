"""What may go into an input at all: asked of the database by exact scope, before anything is ranked.

Principles: the scope stands in each statement, so nothing of anybody else is ever ranked and
then taken out. A fact is of exactly this scope, a memory of its task or of the user, and a
preference is asked for by its key.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property

import sqlalchemy as sa

from adapters.context.preferred import Preferred, current
from adapters.context.record import Record
from adapters.memory import facts
from adapters.memory.chains.named import KIND as MEMORY
from adapters.memory.chains.named import any_here, onwards
from adapters.memory.chains.tables import memories, memory_tenants
from adapters.memory.chains.visible import CORRECTED_BY, readable
from adapters.memory.instant import InstantUs, micros
from adapters.memory.tables import KIND as FACT
from orchestrator import Gate, Scope, Target


@dataclass(frozen=True, kw_only=True)
class Eligible:
    """All that may go in, at one state of the database.

    `preferred` has an answer for each key that was asked for, a deleted or an unset one as well.
    """

    revisions: tuple[int, int]  # of the scope, and of the user in general
    records: tuple[Record, ...]  # facts by key, then memories by id
    preferred: Mapping[str, Preferred]

    @cached_property
    def preferences(self) -> tuple[Record, ...]:
        """Give the events whose values hold, by key."""
        return tuple(
            Record(target=told.target, scope=told.scope, key=key, text=told.value, source=told.event.source)
            for key, told in sorted(self.preferred.items())
            # What holds by an event that is not in the log came from nowhere.
            if told.value is not None and told.event is not None and told.target is not None
        )

    @property
    def targets(self) -> frozenset[Target]:
        """Name all of it."""
        return frozenset(record.target for record in (*self.records, *self.preferences))


def eligible(connection: sa.Connection, gate: Gate, scope: Scope, now: datetime, keys: Collection[str]) -> Eligible:
    """Read what holds at `now` in a scope, and the preferences of these keys."""
    general = replace(scope, project=None)
    revisions = facts.revisions(connection, {scope, general})
    return Eligible(
        revisions=(revisions.get(scope, 0), revisions.get(general, 0)),
        records=(*_facts(connection, scope, now), *_memories(connection, scope, now)),
        preferred=current(connection, gate, scope, keys),
    )


def _facts(connection: sa.Connection, scope: Scope, now: datetime) -> list[Record]:
    return [
        Record(
            target=Target(kind=FACT, id=fact.id, version=fact.version),
            scope=scope,
            key=fact.key,
            text=fact.value,
            source=fact.source,
        )
        for fact in facts.current(connection, scope, now.timestamp())
    ]


def _memories(connection: sa.Connection, scope: Scope, now: datetime) -> list[Record]:
    if not any_here(connection):
        return []
    m, t = memories.c, memory_tenants.c
    at_level = m.task_id.is_(None) if scope.project is None else m.task_id.is_(None) | (m.task_id == scope.project)
    unexpired = m.expires_at.is_(None) | (InstantUs(m.expires_at) > micros(now))
    here = (t.tenant == scope.tenant) & (m.user_id == scope.user) & at_level & CORRECTED_BY.is_(None) & unexpired
    newest = readable().where(here).order_by(m.id)
    whole = onwards(newest.with_only_columns(m.id, m.supersedes).order_by(None))
    chains = {row.id: row.chain for row in connection.execute(sa.select(whole.c.chain, whole.c.id))}
    return [
        Record(
            target=Target(kind=MEMORY, id=str(chains[row.id]), version=row.id),
            scope=scope if row.task_id is not None else replace(scope, project=None),
            key=None,
            text=row.text,
            source=row.source,
        )
        for row in connection.execute(newest)
        if row.id in chains
    ]
