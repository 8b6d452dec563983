"""Revoking one job that names more records than there is room for: by conditions, never by lists.

Principles: the same outcome as by lists, in the same transaction. What needs a text is read in
parts, while every text is still there; one statement overwrites them all at the end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa

from adapters.memory import marking, repoint
from adapters.memory.batch import Answer, Found, as_table, insert_or_replace, read_in_parts, run
from adapters.memory.due import ID, Due, leave_no_longer, left_of, taken
from adapters.memory.facts import revisions, scope_of, store_revisions
from adapters.memory.forget import REVOKED
from adapters.memory.selection import Handle, accepted_at, handle_of, named_by
from adapters.memory.tables import (
    KIND,
    accepted_sources,
    facts,
    revocation_left,
    revocation_targets,
    source_revocations,
)
from adapters.memory.tombstones import keep
from orchestrator import Gate, Scope, SelectorKind, Tombstone

_LIVE: Final = facts.c.state != "revoked"
_ROWID: Final = sa.literal_column("facts.rowid", sa.BigInteger())


def revoke(connection: sa.Connection, gate: Gate, due: Due) -> None:
    """Revoke all that is due of one job."""
    _Revocation(connection, gate, due).run()


class _Revocation:
    def __init__(self, connection: sa.Connection, gate: Gate, due: Due) -> None:
        self._connection, self._gate, self._due = connection, gate, due
        self._items = as_table(connection.dialect.name, ID)
        self._going = taken(due, self._items)
        self._stayed = set[marking.Key]()
        self._successors: list[Found] = []

    def run(self) -> None:
        due = self._due
        self._keep_left()
        self._run(self._targets())
        for marks in self._marks():
            keep(self._connection, ((due.order.scope.tenant, due.job, mark) for mark in marks))
        changed = {*due.changed, *self._changed()} if due.raises else set[Scope]()
        self._run(self._blanking())
        repoint.put_again(self._connection, self._gate, self._successors)
        scopes = {*due.asked, *changed}
        known = revisions(self._connection, scopes)
        revision = known.get(due.order.scope, 0)
        if changed:
            revision = max(known.values(), default=0) + 1
            store_revisions(self._connection, dict.fromkeys(scopes, revision))
        more = self._told() - due.told
        row = due.outcome(revision, more=more, changed=bool(changed), repointed=len(self._stayed))
        insert_or_replace(self._connection, source_revocations, [row])

    def _keep_left(self) -> None:
        if not self._due.is_first:
            leave_no_longer(self._connection, [(self._due.job, item) for item in self._due.freed])
            return
        left = left_of(self._due, self._items).subquery("left_alone")
        rows = sa.select(sa.literal(self._due.job), left.c.fact_id)
        self._run(revocation_left.insert().from_select(["job", "fact_id"], rows))

    def _targets(self) -> sa.Insert:
        f, t = facts.c, revocation_targets.c
        place = sa.func.row_number().over(order_by=(f.fact_id, f.version)) + self._due.told
        rows = sa.select(sa.literal(self._due.job), place, sa.literal(KIND), f.fact_id, f.version).where(self._going)
        return revocation_targets.insert().from_select([t.job, t.ordinal, t.kind, t.handle, t.version], rows)

    def _blanking(self) -> sa.Update:
        these: sa.ColumnElement[bool] = self._going & _LIVE
        if self._connection.dialect.name == "sqlite":
            # In the order in which they lie there: each page of the file is written once.
            rows = sa.select(_ROWID).select_from(facts).where(these)
            these = _ROWID.in_(rows)
        return facts.update().where(these).values(REVOKED)

    def _told(self) -> int:
        t = revocation_targets.c
        return self._connection.scalar(sa.select(sa.func.max(t.ordinal)).where(t.job == self._due.job)) or 0

    def _changed(self) -> Collection[Scope]:
        f = facts.c
        query = sa.select(f.tenant, f.user_id, f.project).distinct().where(self._going, _LIVE)
        return [scope_of(*row) for row in self._run(query)]

    def _marks(self) -> Iterator[Iterable[Tombstone]]:
        due, kind = self._due, self._due.order.selector.kind
        if due.is_first:
            yield marking.of_request(self._gate, marking.asked(self._connection, [due]), due, self._keys())
        if kind is SelectorKind.SUBJECT:
            yield from self._marks_of_sources() if due.is_first else ()
            return
        if not due.raises:
            yield marking.of_expired(self._gate, self._last_positions())
        leaving = self._leaving() if kind in marking.TOLD else ()
        for part in self._read(sa.select(facts).where(self._going, _LIVE)):
            told = marking.told(self._connection, part if kind in marking.TOLD else (), leaving, self._expired(part))
            stays = self._standing(part)
            self._stayed |= stays.told_twice(part)
            self._successors += stays.successors(part)
            yield marking.of_records(self._gate, told, due, part, leaving, stays)

    def _standing(self, part: Sequence[Found]) -> repoint.Standing:
        order = self._due.order
        if order.selector.kind is not SelectorKind.SOURCE:
            return repoint.NOTHING
        sources = {order.scope.tenant: [str(order.selector.value)]}
        return repoint.standing(self._connection, self._gate, part, sources=sources, at_us=self._due.at_us)

    def _marks_of_sources(self) -> Iterator[Iterable[Tombstone]]:
        s, scope = accepted_sources.c, self._due.order.scope
        query = sa.select(s.source_id).where(s.tenant == scope.tenant, s.user_id == scope.user)
        if scope.project is not None:
            query = query.where(s.project == scope.project)
        for part in self._read(query):
            yield marking.of_sources(self._gate, self._due, [row.source_id for row in part])

    def _keys(self) -> Collection[marking.Key]:
        f, order = facts.c, self._due.order
        if order.selector.kind is not SelectorKind.MEMORY:
            return ()
        named = named_by(order.scope, order.selector)
        query = sa.select(f.tenant, f.user_id, f.project, f.key).distinct().where(named)
        return [(scope_of(*place), key) for *place, key in self._connection.execute(query)]

    def _expired(self, part: Sequence[Found]) -> Sequence[Found]:
        return () if self._due.raises else part

    def _last_positions(self) -> Mapping[marking.Key, int]:
        f = facts.c
        key = (f.tenant, f.user_id, f.project, f.key)
        rows = self._run(sa.select(*key, sa.func.max(accepted_at())).where(self._going, _LIVE).group_by(*key))
        return {(scope_of(*place), key): position for *place, key, position in rows}

    def _leaving(self) -> Collection[Handle]:
        """Name the records that go and are active: one of a key, so there are never many."""
        f = facts.c
        query = sa.select(f.tenant, f.fact_id, f.version).where(self._going, f.active == 1)
        return {handle_of(row) for row in self._run(query)}

    def _run(self, statement: sa.Executable) -> Answer:
        return run(self._connection, statement, ID, self._due.items)

    def _read(self, query: sa.Select[Any]) -> Iterator[Any]:
        return read_in_parts(self._connection, query, ID, self._due.items)
