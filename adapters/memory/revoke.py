"""Revoking: targets, blank values, revisions and tombstones of a whole batch in one transaction.

Principles: the row in `source_revocations` is the proof that a job was here, and a repeat
answers from what was written then. Everything that needs a text happens before the text is
overwritten. Each order of a batch is answered as if those before it had been committed: of
two that name one record, the first revokes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import sqlalchemy as sa

from adapters.memory.batch import Found, Row, change, columns, insert_all, look_up
from adapters.memory.facts import revisions, store_revisions
from adapters.memory.forget import REVOKED
from adapters.memory.marking import Going, Rows, Surroundings, handle_of, surroundings, tombstones
from adapters.memory.selection import HANDLE, Handle, look_up_named
from adapters.memory.tables import KIND, facts, revocation_targets, source_revocations
from adapters.memory.tombstones import keep, of_jobs
from orchestrator import MAX_PAGE, EraseOrder, Gate, InvalidRequest, Revocation, Scope, Target, Tombstone

_JOB: Final = columns(job=str)
_PAGE: Final = columns(number=int, job=str, after=int)


@dataclass
class _Batch:
    """What revoking a batch comes to, order after order; it is written at the end."""

    raised: dict[Scope, int] = field(default_factory=dict)
    gone: dict[Handle, None] = field(default_factory=dict)
    jobs: list[Row] = field(default_factory=list)
    targets: list[Row] = field(default_factory=list)
    tombstones: list[tuple[str, str, Tombstone]] = field(default_factory=list)


def revoke(connection: sa.Connection, gate: Gate, orders: Sequence[EraseOrder]) -> list[Revocation | None]:
    """Revoke once for each job, and give a page of what that came to: the same for every repeat.

    None is the answer where an item of the selection is under a hold: revoking destroys a
    value, so nothing of that job is done until the item is free. The others are revoked.
    """
    after = [_ordinal(order.cursor) for order in orders]
    free = [(order, rows) for order, rows in _selected(connection, orders) if not _is_held(order, rows)]
    if free:
        _write(connection, _revoke_each(connection, gate, free))
    return _answers(connection, orders, after)


def _selected(connection: sa.Connection, orders: Sequence[EraseOrder]) -> list[tuple[EraseOrder, Rows]]:
    """Read what each job names that has revoked nothing yet."""
    made = _made(connection, orders)
    first: dict[str, EraseOrder] = {}
    for order in orders:  # two pages of one job may stand in one batch
        first.setdefault(str(order.job), order)
    new = [order for job, order in first.items() if job not in made]
    rows: list[list[Found]] = [[] for _ in new]
    for row in look_up_named(connection, new, _records):
        rows[row.number].append(row)
    return list(zip(new, rows, strict=True))


def _is_held(order: EraseOrder, rows: Rows) -> bool:
    return not order.held.isdisjoint(i for row in rows for i in (row.fact_id, f"{KIND}:{row.fact_id}"))


def _revoke_each(connection: sa.Connection, gate: Gate, free: Sequence[tuple[EraseOrder, Rows]]) -> _Batch:
    around, batch = surroundings(connection, free), _Batch()
    scopes = {order.scope for order, _ in free}
    scopes.update(place for order, rows in free for place in Going(order=order, rows=rows, live=rows).places)
    known = revisions(connection, scopes)
    for order, rows in free:
        live = [row for row in rows if row.state != "revoked" and handle_of(row) not in batch.gone]
        _revoke_one(gate, around, batch, known, Going(order=order, rows=rows, live=live))
    return batch


def _revoke_one(gate: Gate, around: Surroundings, batch: _Batch, known: dict[Scope, int], going: Going) -> None:
    job, scope = str(going.order.job), going.order.scope
    marks = tombstones(gate, around, going, batch.gone.keys())
    batch.tombstones += ((scope.tenant, job, mark) for mark in marks)
    batch.gone.update(dict.fromkeys(map(handle_of, going.live)))
    if going.live:
        # Scopes that change together rise to one number above all of theirs.
        changed = {scope, *going.places}
        raised = dict.fromkeys(changed, max(known.get(place, 0) for place in changed) + 1)
        known.update(raised)
        batch.raised.update(raised)
    cut_off = around.positions.get(scope.tenant, 0)
    batch.jobs.append((job, cut_off, known.get(scope, 0), len(going.rows)))
    batch.targets += ((job, n, KIND, row.fact_id, row.version) for n, row in enumerate(going.rows, 1))


def _write(connection: sa.Connection, batch: _Batch) -> None:
    change(connection, HANDLE, list(batch.gone), _blank)
    store_revisions(connection, batch.raised)
    insert_all(connection, source_revocations, batch.jobs)
    insert_all(connection, revocation_targets, batch.targets)
    keep(connection, batch.tombstones)


def _answers(connection: sa.Connection, orders: Sequence[EraseOrder], after: Sequence[int]) -> list[Revocation | None]:
    jobs = [str(order.job) for order in orders]
    made = _made(connection, orders)
    pages: list[list[Target]] = [[] for _ in orders]
    asked = [(number, job, start) for number, (job, start) in enumerate(zip(jobs, after, strict=True))]
    for number, kind, handle, version in look_up(connection, _PAGE, asked, _page_of_targets):
        pages[number].append(Target(kind=kind, id=handle, version=version))
    # All of them come with the first page.
    marks = of_jobs(connection, {job for job, start in zip(jobs, after, strict=True) if not start})
    return [
        _page(made.get(job), targets, () if start else marks.get(job, ()), start)
        for job, targets, start in zip(jobs, pages, after, strict=True)
    ]


def _page(made: Found | None, targets: Sequence[Target], marks: Sequence[Tombstone], after: int) -> Revocation | None:
    if made is None:
        return None
    last = after + len(targets)
    return Revocation(
        targets=tuple(targets),
        tombstones=tuple(marks),
        revision=made.revision,
        cursor=str(last) if last < made.targets else None,
    )


def _made(connection: sa.Connection, orders: Sequence[EraseOrder]) -> Mapping[str, Found]:
    """Read what those jobs have revoked that were here before."""
    jobs = [(job,) for job in {str(order.job) for order in orders}]
    return {row.job: row for row in look_up(connection, _JOB, jobs, _revocations)}


def _records(asked: sa.FromClause, condition: sa.ColumnElement[bool]) -> sa.Select[Any]:
    f, o = facts.c, asked.c
    return sa.select(o.number, facts).select_from(asked.join(facts, condition)).order_by(o.number, f.fact_id, f.version)


def _blank(given: sa.FromClause) -> sa.Update:
    f = facts.c
    these = sa.tuple_(f.tenant, f.fact_id, f.version).in_(sa.select(given))
    return facts.update().where(these).values(REVOKED)


def _revocations(given: sa.FromClause) -> sa.Select[Any]:
    r = source_revocations
    return sa.select(r).select_from(given.join(r, r.c.job == given.c.job))


def _page_of_targets(given: sa.FromClause) -> sa.Select[Any]:
    t, g = revocation_targets.c, given.c
    page = (t.job == g.job) & (t.ordinal > g.after) & (t.ordinal <= g.after + MAX_PAGE)
    columns = (g.number, t.kind, t.handle, t.version)
    return sa.select(*columns).select_from(given.join(revocation_targets, page)).order_by(g.number, t.ordinal)


def _ordinal(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdigit()):
        message = "the cursor is not one of this store's"
        raise InvalidRequest(message, field="cursor")
    return int(cursor)
