"""Carrying out what follows for jobs: their standing is read and changed under one lock, many jobs in one statement."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import Any, Final

import sqlalchemy as sa

from orchestrator.domain.job import Purpose, Store
from orchestrator.domain.states import JobState
from orchestrator.domain.unit import Phase
from orchestrator.service.advance import (
    Action,
    Move,
    NewRound,
    OpenErase,
    OpenFind,
    OpenVerify,
    Standing,
    Tally,
    what_follows,
)
from orchestrator.store import bulk, follow
from orchestrator.store import tables as t
from orchestrator.store.among import among
from orchestrator.store.follow import NewUnit
from orchestrator.store.pages import Page, pages

_STAMP = {
    JobState.SOURCE_REVOKED: "revoked_at_us",
    JobState.DERIVED_CLEANUP: "cleanup_at_us",
    JobState.VERIFIED: "verified_at_us",
    JobState.COMPLETED: "completed_at_us",
    JobState.CANCELLED: "cancelled_at_us",
}
_FORGETTING = {JobState.VERIFIED, JobState.CANCELLED}
_j, _u, _g, _r, _w = t.jobs.c, t.units.c, t.targets.c, t.receipts.c, t.waivers.c
_IS_OPEN = _j.state.in_([t.written(s) for s in JobState if s not in {JobState.COMPLETED, JobState.CANCELLED}])
_UNIT_IS_OPEN = (_u.status != t.DONE) & _u.status.in_([t.PENDING, t.RUNNING])  # the first term names the index


def _that_have(row: sa.ColumnElement[bool]) -> sa.Select[Any]:
    return sa.select(_j.id).where(among(_j.id), sa.exists().where(row))


def _waived(c: sa.ColumnCollection[str, sa.ColumnElement[Any]]) -> sa.ColumnElement[bool]:
    return sa.exists().where(_w.job_id == c["job_id"], _w.adapter == c["adapter"])


def _move_to(to: JobState) -> sa.Update:
    forgotten = dict.fromkeys(("user_id", "project", "selector_value")) if to in _FORGETTING else {}
    move = t.jobs.update().where(among(_j.id), _j.state == sa.bindparam("old"))
    return move.values({"state": to.value, _STAMP[to]: sa.bindparam("now"), **forgotten})


_LOCKED: Final = (
    sa.select(_j.id, _j.state, _j.purpose, _j.round).where(among(_j.id), _IS_OPEN).order_by(_j.id).with_for_update()
)
# A unit from which nothing can follow before it has ended: most jobs have one, after most commits.
_WAITING: Final = (
    sa.select(_u.job_id)
    .distinct()
    .where(among(_u.job_id), _UNIT_IS_OPEN, _u.required == 1, _u.item_ref.is_(None), ~_waived(_u))
)
_KIND = (_u.job_id, _u.adapter, _u.phase, _u.find_pass, _u.item_ref.is_not(None))
_COUNTED: Final = (
    sa.select(*_KIND, sa.func.sum(sa.case((_u.status != t.DONE, 1), else_=0)))
    .join(t.jobs, (_u.job_id == _j.id) & (_u.round == _j.round))
    .where(among(_j.id))
    .group_by(*_KIND)
)
_FOUND_FIRST: Final = _that_have(
    (_g.job_id == _j.id) & (_g.round == _j.round) & (_g.find_pass == sa.literal_column("1"))
)
# What a waived store still shows is no need of the job.
_PRESENT: Final = _that_have((_r.job_id == _j.id) & (_r.round == _j.round) & (_r.outcome == "present") & ~_waived(_r))
_WITH_WINDOWS: Final = _that_have(
    (t.windows.c.job_id == _j.id) & t.windows.c.closed_at_us.is_(None) & ~_waived(t.windows.c)
)
_WAIVERS: Final = sa.select(_w.job_id, _w.adapter).where(among(_w.job_id))
_ERASED_PAGES: Final = sa.select(_u.job_id, _u.round, _u.adapter, _u.page).where(
    among(_u.job_id), _u.phase == Phase.ERASE.value
)
_MOVES: Final = {to: _move_to(to) for to in _STAMP}
# What only a running job needs goes with its end. Where a find had paused may be a key of the store's own.
_CLEARING: Final = (
    t.fingerprints.delete().where(among(t.fingerprints.c.job_id)),
    t.units.update().where(among(_u.job_id), _u.cursor.is_not(None)).values(cursor=None),
    # Nobody waits for these any more.
    t.units.update().where(among(_u.job_id), _u.status == t.PENDING).values(next_attempt_at_us=t.DUE_NEVER),
)


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What advancing needs to know besides the tables."""

    stores: Sequence[Store]
    quiet_time: timedelta
    worker: str


def movable(connection: sa.Connection) -> list[str]:
    """Name the jobs that no unit keeps from moving: those that a sweep has to look at."""
    waiting = sa.exists().where(_u.job_id == _j.id, _UNIT_IS_OPEN, _u.required == 1)
    query = sa.select(_j.id).where(_IS_OPEN, ~waiting).order_by(_j.id)
    return list(connection.execute(query).scalars())


def advance(connection: sa.Connection, rules: Rules, now: int, ids: Sequence[str]) -> list[tuple[str, JobState]]:
    """Do what follows for these jobs; give the moves."""
    jobs = _standings(connection, ids)
    actions = [(job, action) for job in jobs for action in what_follows(job, rules.stores)]
    moved = _move(connection, [(job, a.to) for job, a in actions if isinstance(a, Move)], now, rules.worker)
    _open(connection, [(job, a) for job, a in actions if not isinstance(a, Move)], rules)
    return moved


def cancelled(connection: sa.Connection, job: str, now: int, worker: str) -> None:
    """Move a job that was never begun to its other end."""
    (standing,) = _standings(connection, [job])
    _move(connection, [(standing, JobState.CANCELLED)], now, worker)


def _standings(connection: sa.Connection, ids: Sequence[str]) -> list[Standing]:
    locked = connection.execute(_LOCKED, {"ids": ids}).all()
    # Asked under the lock: of two last units that commit together, the second sees the first.
    waiting = _named(connection, _WAITING, [row.id for row in locked])
    jobs = [row for row in locked if row.id not in waiting]
    if not jobs:
        return []
    tallies, late = _tallies(connection, [row.id for row in jobs])
    # Asked of no more jobs than can need the answer: most are in another part of their way.
    first = [job for job, counted in tallies.items() if max(tally.find_pass for tally in counted) == 1]
    looked = [row.id for row in jobs if row.state == JobState.VERIFIED or _looks(tallies[row.id])]
    found = _named(connection, _FOUND_FIRST, first)
    present = _named(connection, _PRESENT, looked)
    windows = _named(connection, _WITH_WINDOWS, looked)
    waived = defaultdict(set)
    for job, adapter in connection.execute(_WAIVERS, {"ids": [row.id for row in jobs]}).all():
        waived[job].add(adapter)
    unopened = _unopened(connection, [(row.id, row.round) for row in jobs if row.id in late])
    return [
        Standing(
            id=row.id,
            state=JobState(row.state),
            purpose=Purpose(row.purpose),
            round=row.round,
            tallies=tuple(tallies[row.id]),
            found_in_first_pass=row.id in found,
            seen_present=row.id in present,
            open_windows=row.id in windows,
            waived=frozenset(waived[row.id]),
            unopened=row.id in unopened,
        )
        for row in jobs
    ]


def _looks(counted: Sequence[Tally]) -> bool:
    return any(tally.phase is Phase.VERIFY for tally in counted)


def _named(connection: sa.Connection, query: sa.Select[Any], ids: Sequence[str]) -> Collection[str]:
    """Name those of these jobs that a query gives."""
    return set(connection.execute(query, {"ids": ids}).scalars().all()) if ids else ()


def _tallies(connection: sa.Connection, ids: Sequence[str]) -> tuple[Mapping[str, list[Tally]], Collection[str]]:
    """Count the units of each job's round; name the jobs that have asked a source again for a freed item."""
    counted, late = defaultdict(list), set()
    for job, *kind in connection.execute(_COUNTED, {"ids": ids}).all():
        tally = _tally(*kind)
        counted[job].append(tally)
        if tally.of_items and tally.phase is Phase.REVOKE:
            late.add(job)
    return counted, late


@lru_cache  # most jobs are counted alike
def _tally(adapter: str, phase: str, find_pass: int, of_items: int, unfinished: int) -> Tally:
    return Tally(
        adapter=adapter, phase=Phase(phase), find_pass=find_pass, unfinished=unfinished, of_items=bool(of_items)
    )


def _unopened(connection: sa.Connection, jobs: Sequence[tuple[str, int]]) -> Collection[str]:
    """Name the jobs with a page of targets that no erase unit has taken up."""
    if not jobs:
        return ()
    rounds = dict(jobs)
    rows = connection.execute(_ERASED_PAGES, {"ids": list(rounds)}).all()
    opened = {(row.job_id, row.adapter, row.page) for row in rows if row.round == rounds[row.job_id]}
    return {
        job
        for job, found in pages(connection, jobs).items()
        if any((job, page.adapter, page.number) not in opened for page in found)
    }


def _move(
    connection: sa.Connection, wanted: Sequence[tuple[Standing, JobState]], now: int, worker: str
) -> list[tuple[str, JobState]]:
    """Log the moves, then make them by compare-and-set; the raw ids go with the end of the looking."""
    state = {job.id: job.state for job, _ in wanted}
    for to in _STAMP:
        ids = [job.id for job, new in wanted if new is to]
        if not ids:
            continue
        logged = [
            {"job_id": i, "from_state": state[i].value, "to_state": to.value, "at_us": now, "worker": worker}
            for i in ids
        ]
        bulk.insert(connection, t.transitions, logged)
        for statement in _CLEARING if to in _FORGETTING else ():
            connection.execute(statement, {"ids": ids})
        for old in {state[i] for i in ids}:
            same = [i for i in ids if state[i] is old]
            connection.execute(_MOVES[to], {"ids": same, "old": old.value, "now": now})
        state.update(dict.fromkeys(ids, to))
    return [(job.id, to) for job, to in wanted]


def _open(connection: sa.Connection, wanted: Sequence[tuple[Standing, Action]], rules: Rules) -> None:
    """Open the units of all actions of one kind together."""
    rounds = [(job, action) for job, action in wanted if isinstance(action, NewRound)]
    if rounds:
        _new_rounds(connection, [job for job, _ in rounds])
    finds: dict[int, list[tuple[tuple[str, int], Sequence[str]]]] = defaultdict(list)
    paged: list[tuple[Standing, OpenErase | OpenVerify]] = []
    for job, action in wanted:
        match action:
            case OpenFind(find_pass=number, adapters=adapters):
                finds[number].append(((job.id, job.round), adapters))
            case NewRound(adapters=adapters):
                finds[1].append(((job.id, job.round + 1), adapters))
            case OpenErase() | OpenVerify():
                paged.append((job, action))
            case Move():  # pragma: no cover - moves are made by the caller
                pass
    for number, jobs in finds.items():
        follow.open_find(connection, jobs, number, rules.stores)
    if not paged:
        return
    found = pages(connection, [(job.id, job.round) for job, _ in paged])
    erasing = [n for job, a in paged if isinstance(a, OpenErase) for n in _erases(job, a, found.get(job.id, []))]
    looking = [n for job, a in paged if isinstance(a, OpenVerify) for n in _verifies(job, a, found.get(job.id, []))]
    follow.open_units(connection, erasing, rules.stores)
    pause = rules.quiet_time // timedelta(microseconds=1)
    follow.open_units(connection, looking, rules.stores, pause_us=pause)


def _erases(job: Standing, action: OpenErase, found: Sequence[Page]) -> Iterator[NewUnit]:
    for adapter in action.adapters:
        mine = [page for page in found if page.adapter == adapter] or [Page(adapter, 0, 0, None)]
        for page in mine:
            yield NewUnit(job.id, job.round, adapter, Phase.ERASE, page.number, item=page.item)


def _verifies(job: Standing, action: OpenVerify, found: Sequence[Page]) -> Iterator[NewUnit]:
    """Ask each adapter about its own pages, and about every page that the sources named: one of each in a unit."""
    known = [page for page in found if page.find_pass == 0]
    for adapter in action.adapters:
        own = [page.number for page in found if page.adapter == adapter]
        numbers = [*own, *_others(own, max(1, len(known)) - len(own))]
        for place, number in enumerate(numbers):
            from_ = known[place] if place < len(known) else None
            at = None if from_ is None else (from_.adapter, from_.number)
            yield NewUnit(job.id, job.round, adapter, Phase.VERIFY, number, known=at)


def _others(taken: Collection[int], count: int) -> Iterator[int]:
    """Give so many page numbers, the lowest that are free."""
    number = 0
    while count > 0:
        if number not in taken:
            yield number
            count -= 1
        number += 1


def _new_rounds(connection: sa.Connection, jobs: Sequence[Standing]) -> None:
    """Carry the targets over, so that a store which lied once is asked for the same handles again."""
    ids = [job.id for job in jobs]
    carried = sa.select(
        *(_g.job_id, _g.adapter, _g.kind, _g.handle, _g.version, _g.derived_of, _g.item_ref, _g.page),
        (_g.round + 1).label("round"),
        sa.case((_g.find_pass == 0, 0), else_=1).label("find_pass"),
    )
    carried = carried.join(t.jobs, (_j.id == _g.job_id) & (_j.round == _g.round)).where(_j.id.in_(ids))
    connection.execute(t.targets.insert().from_select(list(carried.selected_columns.keys()), carried))
    connection.execute(t.jobs.update().where(_j.id.in_(ids)).values(round=_j.round + 1))
