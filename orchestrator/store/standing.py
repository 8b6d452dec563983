"""Reading where jobs stand, under a lock on each: many jobs in a few statements, and none that has to wait anyway."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import sqlalchemy as sa

from orchestrator.domain.job import Purpose
from orchestrator.domain.states import JobState
from orchestrator.domain.unit import Phase
from orchestrator.service.advance import Standing, Tally
from orchestrator.store import tables as t
from orchestrator.store.among import among
from orchestrator.store.pages import pages

_j, _u, _g, _r, _w = t.jobs.c, t.units.c, t.targets.c, t.receipts.c, t.waivers.c
_IS_OPEN = _j.state.in_([t.written(s) for s in JobState if s not in {JobState.COMPLETED, JobState.CANCELLED}])
_UNIT_IS_OPEN = (_u.status != t.DONE) & _u.status.in_([t.PENDING, t.RUNNING])  # the first term names the index


def _that_have(row: sa.ColumnElement[bool]) -> sa.Select[Any]:
    return sa.select(_j.id).where(among(_j.id), sa.exists().where(row))


def _waived(c: sa.ColumnCollection[str, sa.ColumnElement[Any]]) -> sa.ColumnElement[bool]:
    return sa.exists().where(_w.job_id == c["job_id"], _w.adapter == c["adapter"])


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
_OF_ROUND = (_g.job_id == _j.id) & (_g.round == _j.round)
# Said as a number, the first pass is looked up in an index of its own: few jobs have another one that found anything.
_FOUND_FIRST: Final = _that_have(_OF_ROUND & (_g.find_pass == sa.literal_column("1")))
_FOUND_LATER: Final = _that_have(_OF_ROUND & (_g.find_pass == sa.bindparam("number")))
# What a waived store still shows is no need of the job.
_PRESENT: Final = _that_have((_r.job_id == _j.id) & (_r.round == _j.round) & (_r.outcome == "present") & ~_waived(_r))
_WITH_WINDOWS: Final = _that_have(
    (t.windows.c.job_id == _j.id) & t.windows.c.closed_at_us.is_(None) & ~_waived(t.windows.c)
)
_WAIVERS: Final = sa.select(_w.job_id, _w.adapter).where(among(_w.job_id))
_ERASED_PAGES: Final = sa.select(_u.job_id, _u.round, _u.adapter, _u.page).where(
    among(_u.job_id), _u.phase == Phase.ERASE.value
)


def movable(connection: sa.Connection) -> list[str]:
    """Name the jobs that no unit keeps from moving: those that a sweep has to look at."""
    waiting = sa.exists().where(_u.job_id == _j.id, _UNIT_IS_OPEN, _u.required == 1)
    query = sa.select(_j.id).where(_IS_OPEN, ~waiting).order_by(_j.id)
    return list(connection.execute(query).scalars())


def standings(connection: sa.Connection, ids: Sequence[str]) -> list[Standing]:
    """Give where those of these jobs stand that no unit keeps waiting; each is locked until the transaction ends."""
    locked = connection.execute(_LOCKED, {"ids": ids}).all()
    # Asked under the lock: of two last units that commit together, the second sees the first.
    waiting = _named(connection, _WAITING, [row.id for row in locked])
    jobs = [row for row in locked if row.id not in waiting]
    if not jobs:
        return []
    tallies, late = _tallies(connection, [row.id for row in jobs])
    # Asked of no more jobs than can need the answer: most are in another part of their way.
    looked = [row.id for row in jobs if row.state == JobState.VERIFIED or _looks(tallies[row.id])]
    found = _found_in_last_pass(connection, tallies)
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
            found_in_last_pass=row.id in found,
            seen_present=row.id in present,
            open_windows=row.id in windows,
            waived=frozenset(waived[row.id]),
            unopened=row.id in unopened,
        )
        for row in jobs
    ]


def _looks(counted: Sequence[Tally]) -> bool:
    return any(tally.phase is Phase.VERIFY for tally in counted)


def _found_in_last_pass(connection: sa.Connection, tallies: Mapping[str, Sequence[Tally]]) -> Collection[str]:
    """Name the jobs that are looking still and whose last pass has found something new."""
    of_pass: dict[int, list[str]] = defaultdict(list)
    for job, counted in tallies.items():
        if not any(tally.phase is Phase.ERASE for tally in counted):
            of_pass[max((tally.find_pass for tally in counted if not tally.of_items), default=0)].append(job)
    found = set(_named(connection, _FOUND_FIRST, of_pass.pop(1, [])))
    for number, jobs in of_pass.items():
        if number:  # 0 is what the sources name
            found.update(_named(connection, _FOUND_LATER, jobs, number=number))
    return found


def _named(connection: sa.Connection, query: sa.Select[Any], ids: Sequence[str], **given: int) -> Collection[str]:
    """Name those of these jobs that a query gives."""
    return set(connection.execute(query, {"ids": ids, **given}).scalars().all()) if ids else ()


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
