"""Carrying out what follows for jobs: their standing is read and changed under one lock, many jobs in one statement."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import sqlalchemy as sa

from orchestrator.domain.job import Store
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
    what_follows,
)
from orchestrator.store import bulk, follow
from orchestrator.store import tables as t
from orchestrator.store.among import among
from orchestrator.store.follow import NewUnit
from orchestrator.store.pages import Page, pages
from orchestrator.store.standing import standings

_STAMP = {
    JobState.SOURCE_REVOKED: "revoked_at_us",
    JobState.DERIVED_CLEANUP: "cleanup_at_us",
    JobState.VERIFIED: "verified_at_us",
    JobState.COMPLETED: "completed_at_us",
    JobState.CANCELLED: "cancelled_at_us",
}
_FORGETTING = {JobState.VERIFIED, JobState.CANCELLED}
_j, _u, _g, _r, _w = t.jobs.c, t.units.c, t.targets.c, t.receipts.c, t.waivers.c


def _move_to(to: JobState) -> sa.Update:
    forgotten = dict.fromkeys(("user_id", "project", "selector_value")) if to in _FORGETTING else {}
    move = t.jobs.update().where(among(_j.id), _j.state == sa.bindparam("old"))
    return move.values({"state": to.value, _STAMP[to]: sa.bindparam("now"), **forgotten})


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


def advance(connection: sa.Connection, rules: Rules, now: int, ids: Sequence[str]) -> list[tuple[str, JobState]]:
    """Do what follows for these jobs; give the moves. `now` is in microseconds since 1970."""
    jobs = standings(connection, ids)
    actions = [(job, action) for job in jobs for action in what_follows(job, rules.stores)]
    moved = _move(connection, [(job, a.to) for job, a in actions if isinstance(a, Move)], now, rules.worker)
    _open(connection, [(job, a) for job, a in actions if not isinstance(a, Move)], rules)
    return moved


def cancelled(connection: sa.Connection, job: str, now: int, worker: str) -> None:
    """Move a job that was never begun to its other end; `now` is in microseconds since 1970."""
    (standing,) = standings(connection, [job])
    _move(connection, [(standing, JobState.CANCELLED)], now, worker)


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
