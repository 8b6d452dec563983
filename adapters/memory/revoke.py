"""Revoking: targets, blank values, revisions and tombstones of a whole batch in one transaction.

Principles: the row in `source_revocations` is the proof that a job was here, and a repeat
answers from what was written then. Chains of memories, events and candidates go in the same
transaction (`chains.revoke`, `keyed.revoke`). What a hold covers is left as it is and written down, and taken when an
order comes that does not hold it any more. Everything that needs a text of a fact happens
before it is overwritten. Each order of a batch is answered as if those before it had been
committed: of two that name one record, the first revokes it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import sqlalchemy as sa

from adapters.memory import large, marking, prints, repoint
from adapters.memory.answers import answers, reached
from adapters.memory.batch import Found, Row, change, insert_all, insert_or_replace
from adapters.memory.chains import revoke as chains
from adapters.memory.due import Due, leave_no_longer, of_orders, records
from adapters.memory.facts import revisions, scope_of, store_revisions
from adapters.memory.forget import REVOKED
from adapters.memory.instant import micros
from adapters.memory.keyed import revoke as keyed
from adapters.memory.prints import Fingerprinter
from adapters.memory.selection import HANDLE, Handle, handle_of
from adapters.memory.tables import KIND, facts, revocation_left, revocation_targets, source_revocations
from adapters.memory.tombstones import keep
from orchestrator import EraseOrder, Gate, Revocation, Scope, SelectorKind, Tombstone

AT_ONCE: Final = 5_000
"""Records, or sources of subjects, that a batch may name and be worked off by lists."""


@dataclass(frozen=True, kw_only=True)
class _Going:
    """One job of a batch: the records that it takes, those whose text is still there, and the items that it leaves."""

    due: Due
    rows: Sequence[Found]
    live: Sequence[Found]
    left: frozenset[str]
    keys: frozenset[marking.Key]
    sources: Sequence[str]

    @property
    def is_of_source(self) -> bool:
        """Whether a source is forgotten: a fact stays where another has told it."""
        return self.due.order.selector.kind is SelectorKind.SOURCE

    @property
    def changed(self) -> Mapping[Scope, None]:
        """Scopes in which a reading changes, each once: the one that was asked for among them."""
        if not self.due.raises:
            return {}
        places = {*self.due.changed, *(scope_of(row.tenant, row.user_id, row.project) for row in self.live)}
        return dict.fromkeys((*self.due.asked, *places)) if places else {}


@dataclass
class _Batch:
    """What revoking a batch comes to, order after order; it is written at the end."""

    raised: dict[Scope, int] = field(default_factory=dict)
    jobs: list[Row] = field(default_factory=list)
    targets: list[Row] = field(default_factory=list)
    left: list[Row] = field(default_factory=list)
    freed: list[Row] = field(default_factory=list)
    tombstones: list[tuple[str, str, Tombstone]] = field(default_factory=list)
    successors: list[Found] = field(default_factory=list)


def revoke(
    connection: sa.Connection,
    gate: Gate,
    orders: Sequence[EraseOrder],
    *,
    at: datetime,
    by: Fingerprinter | None = None,
    at_once: int = AT_ONCE,
) -> list[Revocation]:
    """Revoke once for each job, and give a page of what that came to: the same for every repeat.

    What was left because of a hold is revoked by the first order that holds it no more. What
    has expired is told by `at`. `by` makes the fingerprints by which files are looked through later.
    """
    places = [reached(order) for order in orders]
    due = keyed.take(connection, chains.take(connection, of_orders(connection, orders, micros(at))))
    if by is not None:
        for each in due:
            prints.keep(connection, by, chains.texts(connection, each))
    if due and not _by_lists(connection, gate, due, at_once, by):
        for each in due:
            large.revoke(connection, gate, each)
    chains.mark(connection, gate, due)
    keyed.mark(connection, gate, due, by)
    told = answers(connection, orders, places)
    return told if by is None else prints.with_prints(connection, orders, told)


def _by_lists(
    connection: sa.Connection, gate: Gate, due: Sequence[Due], at_once: int, by: Fingerprinter | None
) -> bool:
    """Revoke a whole batch; False where it names more than there is room for, and nothing was done."""
    rows = records(connection, due, at_once)
    subjects = {d.order.scope for d in due if d.is_first and d.order.selector.kind is SelectorKind.SUBJECT}
    owned = marking.sources_of(connection, subjects, at_once)
    if rows is None or owned is None:
        return False
    gone: set[Handle] = set()
    going = [_going(each, named, owned, gone) for each, named in zip(due, rows, strict=True)]
    if by is not None:
        prints.keep_facts(connection, by, gone)
    _write(connection, gate, _come_to(connection, gate, going), gone)
    return True


def _going(due: Due, named: Sequence[Found], owned: Mapping[Scope, Sequence[str]], gone: set[Handle]) -> _Going:
    """Tell what one job takes; `gone` is what those before it take, and gets what this one does."""
    rows = [row for row in named if due.takes(row.fact_id)]
    live = [row for row in rows if row.state != "revoked" and handle_of(row) not in gone]
    gone.update(map(handle_of, live))
    kind, scope = due.order.selector.kind, due.order.scope
    keys = ((scope_of(r.tenant, r.user_id, r.project), r.key) for r in named if kind is SelectorKind.MEMORY)
    return _Going(
        due=due,
        rows=rows,
        live=live,
        left=frozenset(row.fact_id for row in named if not due.takes(row.fact_id)),
        keys=frozenset(keys),
        sources=owned.get(scope, ()) if kind is SelectorKind.SUBJECT else (),
    )


def _come_to(connection: sa.Connection, gate: Gate, going: Sequence[_Going]) -> _Batch:
    asked = marking.asked(connection, [each.due for each in going])
    telling = [row for each in going if each.due.order.selector.kind in marking.TOLD for row in each.live]
    expired = [row for each in going if not each.due.raises for row in each.live]
    told = marking.told(connection, telling, {handle_of(row) for each in going for row in each.rows}, expired)
    known = revisions(connection, {each.due.order.scope for each in going}.union(*(e.changed for e in going)))
    stays = _standing(connection, gate, going)
    batch, leaving = _Batch(), set[Handle]()
    for each in going:
        leaving_now = leaving.union(map(handle_of, each.rows))
        job, tenant = each.due.job, each.due.order.scope.tenant
        of_records = marking.of_records(gate, told, each.due, each.live, leaving_now, stays)
        marks = [*_of_request(gate, asked, each), *of_records]
        if not each.due.raises:
            marks += marking.of_expired(gate, _last_positions(told, each.live))
        batch.tombstones += ((tenant, job, mark) for mark in marks)
        leaving.update(map(handle_of, each.live))
        _note(batch, known, each, stays if each.is_of_source else repoint.NOTHING)
    return batch


def _standing(connection: sa.Connection, gate: Gate, going: Sequence[_Going]) -> repoint.Standing:
    """Read what stays of the facts that go by their sources; what any order of the batch takes does not."""
    of_sources = [each for each in going if each.is_of_source]
    live = [row for each in of_sources for row in each.live]
    taken = {handle_of(row) for each in going for row in each.rows}
    sources = defaultdict[str, set[str]](set)
    for each in of_sources:
        sources[each.due.order.scope.tenant].add(str(each.due.order.selector.value))
    at_us = max((each.due.at_us for each in of_sources), default=0)
    return repoint.standing(connection, gate, live, sources=sources, going=taken, at_us=at_us)


def _of_request(gate: Gate, asked: marking.Asked, going: _Going) -> Sequence[Tombstone]:
    if not going.due.is_first:
        return ()
    request = marking.of_request(gate, asked, going.due, going.keys)
    return [*request, *marking.of_sources(gate, going.due, going.sources)]


def _last_positions(told: marking.Told, rows: Sequence[Found]) -> Mapping[marking.Key, int]:
    last: dict[marking.Key, int] = {}
    for row in rows:
        key = (scope_of(row.tenant, row.user_id, row.project), row.key)
        last[key] = max(last.get(key, 0), told.positions[row.tenant, row.source])
    return last


def _note(batch: _Batch, known: dict[Scope, int], going: _Going, stays: repoint.Standing) -> None:
    due, scope = going.due, going.due.order.scope
    if going.changed:
        # Scopes that change together rise to one number above all of theirs.
        raised = dict.fromkeys(going.changed, max(known.get(place, 0) for place in going.changed) + 1)
        known.update(raised)
        batch.raised.update(raised)
    stayed, changed = len(stays.told_twice(going.live)), bool(going.changed)
    batch.jobs.append(due.outcome(known.get(scope, 0), more=len(going.rows), changed=changed, repointed=stayed))
    batch.successors += stays.successors(going.live)
    numbered = enumerate(going.rows, due.told + 1)
    batch.targets += ((due.job, n, KIND, row.fact_id, row.version) for n, row in numbered)
    batch.left += ((due.job, item) for item in sorted(going.left))
    batch.freed += ((due.job, item) for item in sorted(due.freed))


def _write(connection: sa.Connection, gate: Gate, batch: _Batch, gone: set[Handle]) -> None:
    change(connection, HANDLE, sorted(gone), _blank)
    repoint.put_again(connection, gate, batch.successors)
    store_revisions(connection, batch.raised)
    insert_or_replace(connection, source_revocations, batch.jobs)
    insert_all(connection, revocation_targets, batch.targets)
    insert_all(connection, revocation_left, batch.left)
    leave_no_longer(connection, batch.freed)
    keep(connection, batch.tombstones)


def _blank(given: sa.FromClause) -> sa.Update:
    f = facts.c
    these = sa.tuple_(f.tenant, f.fact_id, f.version).in_(sa.select(given))
    return facts.update().where(these).values(REVOKED)
