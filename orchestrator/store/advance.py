"""Carrying out what follows for jobs: their standing is read and changed under one lock."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

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
from orchestrator.store import tables as t
from orchestrator.store.jobs import open_units

_STAMP = {
    JobState.SOURCE_REVOKED: "revoked_at_us",
    JobState.DERIVED_CLEANUP: "cleanup_at_us",
    JobState.VERIFIED: "verified_at_us",
    JobState.COMPLETED: "completed_at_us",
    JobState.CANCELLED: "cancelled_at_us",
}
_OPEN = [s.value for s in JobState if s not in {JobState.COMPLETED, JobState.CANCELLED}]


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What advancing needs to know besides the tables."""

    stores: Sequence[Store]
    page: int
    quiet_time: timedelta
    worker: str


def advance(
    connection: sa.Connection, rules: Rules, now: int, ids: Sequence[str] | None = None
) -> list[tuple[str, JobState]]:
    """Do what follows for these jobs (None: for every open one); give the moves."""
    moved: list[tuple[str, JobState]] = []
    for job in _standings(connection, ids):
        state = job.state
        for action in what_follows(job, rules.stores):
            if isinstance(action, Move):
                _move(connection, job.id, state, action.to, now, rules.worker)
                state = action.to
                moved.append((job.id, state))
            else:
                _open(connection, job, action, rules)
    return moved


def _standings(connection: sa.Connection, ids: Sequence[str] | None) -> list[Standing]:
    which = t.jobs.c.state.in_(_OPEN) if ids is None else t.jobs.c.id.in_(list(ids)) & t.jobs.c.state.in_(_OPEN)
    jobs = connection.execute(
        sa.select(t.jobs.c.id, t.jobs.c.state, t.jobs.c.purpose, t.jobs.c.round)
        .where(which)
        .order_by(t.jobs.c.id)
        .with_for_update()
    ).all()
    current = sa.select(t.jobs.c.id, t.jobs.c.round).where(which).subquery()

    def of_round(table: sa.Table) -> sa.ColumnElement[bool]:
        return (table.c.job_id == current.c.id) & (table.c.round == current.c.round)

    tallies = defaultdict(list)
    u = t.units
    for row in connection.execute(
        sa.select(
            u.c.job_id,
            u.c.adapter,
            u.c.phase,
            u.c.find_pass,
            sa.func.sum(sa.case((u.c.status != "done", 1), else_=0)).label("unfinished"),
            sa.func.max(u.c.page).label("last_page"),
        )
        .join(current, of_round(u))
        .group_by(u.c.job_id, u.c.adapter, u.c.phase, u.c.find_pass)
    ):
        tallies[row.job_id].append(
            Tally(
                adapter=row.adapter,
                phase=Phase(row.phase),
                find_pass=row.find_pass,
                unfinished=row.unfinished,
                last_page=row.last_page,
            )
        )
    found = _ids(connection, t.targets.c.job_id, of_round(t.targets) & (t.targets.c.find_pass == 1), current)
    present = _ids(connection, t.receipts.c.job_id, of_round(t.receipts) & (t.receipts.c.outcome == "present"), current)
    windows = _ids(
        connection,
        t.windows.c.job_id,
        (t.windows.c.job_id == current.c.id) & t.windows.c.closed_at_us.is_(None),
        current,
    )
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
        )
        for row in jobs
    ]


def _ids(
    connection: sa.Connection, column: sa.Column[str], on: sa.ColumnElement[bool], current: sa.Subquery
) -> frozenset[str]:
    return frozenset(connection.execute(sa.select(column).distinct().join(current, on)).scalars())


def _move(connection: sa.Connection, job: str, old: JobState, new: JobState, now: int, worker: str) -> None:
    """Log the move, then make it by compare-and-set; the raw ids go with the end of the looking."""
    connection.execute(
        t.transitions.insert().values(job_id=job, from_state=old.value, to_state=new.value, at_us=now, worker=worker)
    )
    values: dict[str, object] = {"state": new.value, _STAMP[new]: now}
    if new in {JobState.VERIFIED, JobState.CANCELLED}:
        values |= {"user_id": None, "project": None, "selector_value": None}
        connection.execute(t.fingerprints.delete().where(t.fingerprints.c.job_id == job))
        # Where a find had paused may be a key of the store's own; it is of no more use.
        connection.execute(t.units.update().where(t.units.c.job_id == job).values(cursor=None))
    connection.execute(t.jobs.update().where(t.jobs.c.id == job, t.jobs.c.state == old.value).values(**values))


def _open(connection: sa.Connection, job: Standing, action: Action, rules: Rules) -> None:
    stores = rules.stores
    match action:
        case OpenFind(find_pass=number, adapters=adapters):
            _open_find(connection, job.id, job.round, number, adapters, stores)
        case OpenErase(adapters=adapters):
            pages = _pages(connection, job)
            wanted = [(job.id, a, Phase.ERASE, p, job.round, 0) for a in adapters for p in pages[a] or {0}]
            open_units(connection, wanted, stores)
        case OpenVerify(adapters=adapters):
            pages = _pages(connection, job)
            known = set(range(-(-_known(connection, job) // rules.page)))
            wanted = [(job.id, a, Phase.VERIFY, p, job.round, 0) for a in adapters for p in pages[a] | known or {0}]
            pause = rules.quiet_time // timedelta(microseconds=1)
            open_units(connection, wanted, stores, pause_us=pause)
        case NewRound(adapters=adapters):
            _new_round(connection, job, adapters, stores)
        case Move():  # pragma: no cover - moves are made by the caller
            return


def _open_find(
    connection: sa.Connection, job: str, round_: int, number: int, adapters: Sequence[str], stores: Sequence[Store]
) -> None:
    """Open the first unit of a pass behind every page that is in use: a find's page becomes the page of its targets."""
    used: dict[str, int] = defaultdict(lambda: -1)
    for table in (t.targets, t.units):
        rows = connection.execute(
            sa.select(table.c.adapter, sa.func.max(table.c.page))
            .where(table.c.job_id == job, table.c.round == round_)
            .group_by(table.c.adapter)
        )
        for adapter, page in rows:
            used[adapter] = max(used[adapter], page)
    open_units(connection, [(job, a, Phase.FIND, used[a] + 1, round_, number) for a in adapters], stores)


def _new_round(connection: sa.Connection, job: Standing, adapters: Sequence[str], stores: Sequence[Store]) -> None:
    """Carry the targets over, so that a store which lied once is asked for the same handles again."""
    new = job.round + 1
    c = t.targets.c
    carried = sa.select(
        c.job_id, c.adapter, c.kind, c.handle, c.version, c.derived_of, c.page, sa.literal(new), sa.literal(0)
    ).where(c.job_id == job.id, c.round == job.round)
    names = ["job_id", "adapter", "kind", "handle", "version", "derived_of", "page", "round", "find_pass"]
    connection.execute(t.targets.insert().from_select(names, carried))
    connection.execute(t.jobs.update().where(t.jobs.c.id == job.id).values(round=new))
    _open_find(connection, job.id, new, 1, adapters, stores)


def _pages(connection: sa.Connection, job: Standing) -> dict[str, set[int]]:
    pages: dict[str, set[int]] = defaultdict(set)
    rows = connection.execute(
        sa.select(t.targets.c.adapter, t.targets.c.page)
        .where(t.targets.c.job_id == job.id, t.targets.c.round == job.round)
        .distinct()
    )
    for adapter, group in itertools.groupby(rows, key=lambda row: row.adapter):
        pages[adapter] |= {row.page for row in group}
    return pages


def _known(connection: sa.Connection, job: Standing) -> int:
    """Count what the sources named: the lineage by which a late copy is seen."""
    return connection.execute(
        sa.select(sa.func.count())
        .select_from(t.targets)
        .where(t.targets.c.job_id == job.id, t.targets.c.round == job.round, t.targets.c.find_pass == 0)
    ).scalar_one()
