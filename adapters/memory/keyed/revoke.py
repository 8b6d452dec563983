"""Revoking events and candidates: in the transaction of the facts, in two halves around theirs.

Principles: what a job takes is written down first, among its targets, and all else goes by
that list. It is hidden at once; its text stays until all of a batch is hidden, so that
tombstones and fingerprints are made from it, and is gone before the transaction ends. What a
hold covers is left as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, Final

import sqlalchemy as sa

from adapters.memory import prints
from adapters.memory.batch import Found, as_table, in_parts, insert_all, run
from adapters.memory.concerned import concerned
from adapters.memory.due import ID, Due
from adapters.memory.facts import scope_of
from adapters.memory.keyed.named import (
    CANDIDATE,
    EVENT,
    TABLES,
    any_here,
    asked_by,
    left_alone,
    named,
    version_of,
)
from adapters.memory.keyed.tombstones import marks_of
from adapters.memory.prints import Fingerprinter
from adapters.memory.selection import EVER, Parameters, in_project
from adapters.memory.tables import (
    fact_candidates,
    preference_events,
    preferences,
    revocation_left,
    revocation_targets,
)
from adapters.memory.tombstones import keep
from orchestrator import Gate, SelectorKind

_t: Final = revocation_targets.c
_e, _c, _p = preference_events.c, fact_candidates.c, preferences.c
_TENANT: Final = sa.bindparam("of_tenant", type_=sa.Text())
_OF_JOB: Final = (
    (_t.job == sa.bindparam("of_job", type_=sa.Text()))
    & (_t.ordinal > sa.bindparam("told", type_=sa.BigInteger()))
    & (_t.ordinal <= sa.bindparam("last", type_=sa.BigInteger()))
)
_LAST: Final = sa.select(sa.func.max(_t.ordinal)).where(_t.job == sa.bindparam("of_job", type_=sa.Text()))


def _taken(kind: str) -> sa.ColumnElement[bool]:
    c, of_kind = TABLES[kind].c, _t.kind == sa.literal_column(f"'{kind}'")
    return (c.tenant == _TENANT) & c.handle.in_(sa.select(_t.handle).where(_OF_JOB, of_kind))


_LIVE: Final = {EVENT: _e.state == "live", CANDIDATE: _c.state == "pending"}
_PLACES: Final = sa.union(
    *(
        sa.select(TABLES[kind].c.user_id, TABLES[kind].c.project).where(_taken(kind), live)
        for kind, live in _LIVE.items()
    )
)
_RECORDS: Final = sa.union_all(
    *(
        sa.select(
            sa.literal_column(f"'{kind}'", sa.Text()).label("kind"),
            *(TABLES[kind].c[name] for name in ("tenant", "user_id", "project", "key", "handle", "source", "value")),
            version_of(kind).label("version"),
        ).where(_taken(kind))
        for kind in TABLES
    )
)
_IN_FORCE: Final = (
    preferences.update()
    .where(_p.tenant == _TENANT, _p.handle.in_(sa.select(_e.handle).where(_taken(EVENT))))
    .values(operation="erased", value=None)
)
_HIDE: Final = (
    preference_events.update().where(_taken(EVENT), _LIVE[EVENT]).values(state="revoked"),
    fact_candidates.update().where(_taken(CANDIDATE), _LIVE[CANDIDATE]).values(state="blocked"),
    _IN_FORCE,
)
_BLANK: Final = tuple(TABLES[kind].update().where(_taken(kind)).values(value=None) for kind in TABLES)


def take(connection: sa.Connection, due: Sequence[Due]) -> list[Due]:
    """Name and hide what is due, and tell of each job how many targets that were and what changed."""
    if not due or not any_here(connection):
        return list(due)
    return [_take(connection, each) for each in due]


def mark(connection: sa.Connection, gate: Gate, due: Iterable[Due], by: Fingerprinter | None) -> None:
    """Make tombstones and fingerprints of what `take` has taken, and blank it."""
    some = [each for each in due if each.keyed]
    for each in some:
        records = partial(_records, connection, each)
        if by is not None:
            rows = (row for part in records() for row in part if row.value is not None)
            prints.keep(connection, by, (((row.tenant, row.kind, row.handle, row.version), row.value) for row in rows))
        if each.order.selector.kind is not SelectorKind.SUBJECT:
            for marks in marks_of(connection, gate, each, records):
                keep(connection, ((each.order.scope.tenant, each.job, one) for one in marks))
    for each in some:
        for statement in _BLANK:
            connection.execute(statement, _list_of(each))


def _take(connection: sa.Connection, due: Due) -> Due:
    asked = asked_by(due.order, EVER)  # nothing is younger than a cut-off that is set now
    if asked is None:
        return due
    dialect, before = connection.dialect.name, due.told
    way = (dialect, due.order.selector.kind, in_project(due.order))
    if due.is_first and due.order.held:
        left = run(connection, _held(*way), ID, due.items, **asked).scalars()
        insert_all(connection, revocation_left, [(due.job, item) for item in sorted(left)])
    statement = _named(*way) if due.is_first else _freed(dialect)
    of = asked if due.is_first else {name: asked[name] for name in ("of_tenant", "of_user")}
    run(connection, statement, ID, due.items, **of, of_job=due.job, told=before)
    last = connection.scalar(_LAST, {"of_job": due.job}) or 0
    if last == before:
        return due
    taken = replace(due, keyed=last - before)
    places = connection.execute(_PLACES, _list_of(taken)).all()
    for hide in _HIDE:
        connection.execute(hide, _list_of(taken))
    changed = [scope_of(due.order.scope.tenant, row.user_id, row.project) for row in places]
    return replace(taken, changed=due.changed.union(*(concerned(connection, place) for place in changed)))


def _list_of(due: Due) -> Parameters:
    place: Parameters = {"of_job": due.job, "told": due.told - due.keyed, "last": due.told}
    return {"of_tenant": due.order.scope.tenant, **place}


def _records(connection: sa.Connection, due: Due) -> Iterator[Sequence[Found]]:
    """Read what a job has taken, some at a time; the texts of what it has taken itself are still there."""
    return in_parts(connection, _RECORDS, _list_of(due))


@cache
def _named(dialect: str, selector: SelectorKind, within_project: bool) -> sa.Insert:  # noqa: FBT001 - its key
    items = as_table(dialect, ID)
    listed = sa.select(items.c.fact_id)
    return _targets({k: named(k, selector, within_project) & t.c.handle.not_in(listed) for k, t in TABLES.items()})


@cache
def _freed(dialect: str) -> sa.Insert:
    return _targets({kind: left_alone(kind, as_table(dialect, ID)) for kind in TABLES})


def _targets(conditions: dict[str, sa.ColumnElement[bool]]) -> sa.Insert:
    """Give the statement that writes targets behind those that the job has: events, then candidates."""
    parts = [
        sa.select(
            sa.literal_column(str(n), sa.BigInteger()).label("place"),
            sa.literal_column(f"'{kind}'", sa.Text()).label("kind"),
            TABLES[kind].c.handle.label("handle"),
            version_of(kind).label("version"),
        ).where(condition)
        for n, (kind, condition) in enumerate(conditions.items())
    ]
    found = sa.union_all(*parts).subquery("found").c
    place = sa.func.row_number().over(order_by=(found.place, found.handle))
    ordinal = place + sa.bindparam("told", type_=sa.BigInteger())
    rows = sa.select(sa.bindparam("of_job", type_=sa.Text()), ordinal, found.kind, found.handle, found.version)
    return revocation_targets.insert().from_select([_t.job, _t.ordinal, _t.kind, _t.handle, _t.version], rows)


@cache
def _held(dialect: str, selector: SelectorKind, within_project: bool) -> sa.CompoundSelect[Any]:  # noqa: FBT001 - its key
    listed = sa.select(as_table(dialect, ID).c.fact_id)
    return sa.union(
        *(
            sa.select(t.c.handle).where(named(kind, selector, within_project), t.c.handle.in_(listed))
            for kind, t in TABLES.items()
        )
    )
