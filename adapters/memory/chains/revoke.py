"""Revoking chains: in the transaction of the facts, in two halves around theirs.

Principles: what a job takes is written down first, among its targets, and all else goes by
that list. A revoked chain is hidden from every read; its text stays until it is erased, so
tombstones are made when all of a batch is revoked. What a hold covers is left as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, Final

import sqlalchemy as sa

from adapters.memory.batch import Found, as_table, in_parts, insert_all, run
from adapters.memory.chains.named import KIND, any_here, asked_by, whole_chains
from adapters.memory.chains.tables import memories, memory_tenants
from adapters.memory.chains.tombstones import marks_of
from adapters.memory.concerned import concerned
from adapters.memory.due import ID, Due
from adapters.memory.facts import scope_of
from adapters.memory.selection import EVER, Parameters, in_project
from adapters.memory.tables import revocation_left, revocation_targets
from adapters.memory.tombstones import keep
from orchestrator import Gate, SelectorKind

_t: Final = revocation_targets.c
_TAKEN: Final = (
    (_t.job == sa.bindparam("of_job"))
    & (_t.kind == sa.literal_column(f"'{KIND}'"))
    & (_t.ordinal > sa.bindparam("told", type_=sa.BigInteger()))
    & (_t.ordinal <= sa.bindparam("last", type_=sa.BigInteger()))
)
_MINE: Final = sa.select(memories, memory_tenants.c.tenant, memory_tenants.c.revoked, _t.handle).select_from(
    revocation_targets.join(memories, memories.c.id == _t.version).join(
        memory_tenants, memory_tenants.c.memory_id == memories.c.id
    )
)
_PLACES: Final = (
    _MINE.with_only_columns(memory_tenants.c.tenant, memories.c.user_id, memories.c.task_id, memory_tenants.c.revoked)
    .distinct()
    .where(_TAKEN)
)
_LAST: Final = sa.select(sa.func.max(_t.ordinal)).where(_t.job == sa.bindparam("of_job"))
_HIDE: Final = (
    memory_tenants.update()
    .where(memory_tenants.c.revoked == 0, memory_tenants.c.memory_id.in_(sa.select(_t.version).where(_TAKEN)))
    .values(revoked=1)
)


def take(connection: sa.Connection, due: Sequence[Due]) -> list[Due]:
    """Name and hide the chains that are due, and tell of each job how many targets that were and what changed."""
    if not due or not any_here(connection):
        return list(due)
    return [_take(connection, each) for each in due]


def mark(connection: sa.Connection, gate: Gate, due: Iterable[Due]) -> None:
    """Set the tombstones of the chains that `take` has taken."""
    for each in due:
        if each.chained and each.order.selector.kind is not SelectorKind.SUBJECT:
            for marks in marks_of(connection, gate, each, partial(_texts, connection, each)):
                keep(connection, ((each.order.scope.tenant, each.job, one) for one in marks))


def texts(connection: sa.Connection, due: Due) -> Iterator[tuple[tuple[str, str, str, int], str]]:
    """Give the texts that a job has taken, each with its tenant, kind, chain and id."""
    if due.chained:
        for part in _texts(connection, due):
            yield from (((row.tenant, KIND, row.handle, row.id), row.text) for row in part)


def _take(connection: sa.Connection, due: Due) -> Due:
    asked = asked_by(due.order, EVER, due.at_us)  # what was left is told by its id, and there since before the cut-off
    if asked is None:
        return due
    way = (connection.dialect.name, due.order.selector.kind, in_project(due.order))
    if due.is_first and due.order.held:
        left = run(connection, _held(*way), ID, due.items, **asked).scalars()
        insert_all(connection, revocation_left, [(due.job, item) for item in sorted(left)])
    place: Parameters = {"of_job": due.job, "told": due.told_before}
    run(connection, _targets(*way, first=due.is_first), ID, due.items, **asked, **place)
    # Asked for: drivers do not count what a statement writes that begins with WITH.
    last = connection.scalar(_LAST, {"of_job": due.job}) or 0
    if last == due.told_before:
        return due
    taken = replace(due, chained=last - due.told_before)
    found = connection.execute(_PLACES, _list_of(taken)).all()
    connection.execute(_HIDE, _list_of(taken))
    # What was left sets tombstones of its own when it is free: whoever asks again has to be told of them.
    rows = [row for row in found if not row.revoked or not due.is_first] if due.raises else []
    places = (scope_of(row.tenant, row.user_id, row.task_id) for row in rows)
    return replace(taken, changed=due.changed.union(*(concerned(connection, place) for place in places)))


def _list_of(due: Due) -> Parameters:
    return {"of_job": due.job, "told": due.told_before, "last": due.told}


def _texts(connection: sa.Connection, due: Due) -> Iterator[Sequence[Found]]:
    """Read the versions that a job has taken, some at a time."""
    return in_parts(connection, _MINE.where(_TAKEN), _list_of(due))


@cache
def _targets(dialect: str, kind: SelectorKind, within_project: bool, *, first: bool) -> sa.Insert:  # noqa: FBT001 - its key
    whole, items = whole_chains(kind, within_project).c, as_table(dialect, ID)
    handle, listed = sa.cast(whole.chain, sa.Text()), sa.select(items.c.fact_id)
    place = sa.func.row_number().over(order_by=(whole.chain, whole.id)) + sa.bindparam("told", type_=sa.BigInteger())
    job, of_kind = sa.bindparam("of_job", type_=sa.Text()), sa.literal_column(f"'{KIND}'", sa.Text())
    rows = sa.select(job, place, of_kind, handle, whole.id)
    rows = rows.where(handle.not_in(listed) if first else handle.in_(listed))
    return revocation_targets.insert().from_select([_t.job, _t.ordinal, _t.kind, _t.handle, _t.version], rows)


@cache
def _held(dialect: str, kind: SelectorKind, within_project: bool) -> sa.Select[Any]:  # noqa: FBT001 - its key
    whole, items = whole_chains(kind, within_project).c, as_table(dialect, ID)
    handle = sa.cast(whole.chain, sa.Text())
    return sa.select(handle).distinct().where(handle.in_(sa.select(items.c.fact_id)))
