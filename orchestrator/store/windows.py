"""Windows of copies that cannot be edited: when one has ended, its store is asked whether the copy is gone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

import sqlalchemy as sa

from orchestrator.domain.contract import Target
from orchestrator.domain.job import Store, WindowView
from orchestrator.domain.states import JobState
from orchestrator.domain.unit import Finished, Outcome, Phase
from orchestrator.store import tables as t
from orchestrator.store.among import among
from orchestrator.store.clock import micros, moment
from orchestrator.store.follow import NewUnit, open_units

KIND: Final = "backup_copy"
_w, _j, _u = t.windows.c, t.jobs.c, t.units.c
# A window's place among those of its job and store: a verified job gets no further ones.
_PLACE: Final = sa.func.row_number().over(partition_by=(_w.job_id, _w.adapter), order_by=_w.copy_handle) - 1
_ENDED: Final = (
    sa.select(_w.job_id, _w.adapter, _w.until_us, _w.closed_at_us, _j.round, _PLACE.label("page"))
    .join(t.jobs, _j.id == _w.job_id)
    .where(
        _j.state == t.written(JobState.VERIFIED),
        _w.job_id.in_(sa.select(_w.job_id).where(_w.closed_at_us.is_(None), _w.until_us <= sa.bindparam("now"))),
    )
    .subquery("placed")
)
_DUE: Final = sa.select(_ENDED).where(
    _ENDED.c.closed_at_us.is_(None),
    _ENDED.c.until_us <= sa.bindparam("now"),
    ~sa.exists().where(
        _u.job_id == _ENDED.c.job_id,
        _u.adapter == _ENDED.c.adapter,
        _u.phase == Phase.CLOSE.value,
        _u.page == _ENDED.c.page,
        _u.round == _ENDED.c.round,
    ),
)
_OF_UNITS: Final = sa.select(_w.job_id, _w.adapter, _w.copy_handle, _PLACE.label("page")).where(among(_w.job_id))
_OPEN: Final = sa.select(_w.job_id, _w.adapter, _w.copy_handle).where(among(_w.job_id), _w.closed_at_us.is_(None))


def end(connection: sa.Connection, stores: Sequence[Store], now: int) -> None:
    """Open a close unit for each window of a verified job that has ended by `now`, in microseconds since 1970."""
    known = {store.name for store in stores}
    ended = connection.execute(_DUE, {"now": now}).all()
    new = [NewUnit(w.job_id, w.round, w.adapter, Phase.CLOSE, w.page) for w in ended if w.adapter in known]
    open_units(connection, new, stores)


def of_units(connection: sa.Connection, units: Sequence[sa.Row[str]]) -> Mapping[str, list[Target]]:
    """Give the copy of each close unit."""
    rows = connection.execute(_OF_UNITS, {"ids": [unit.job_id for unit in units]}).all() if units else []
    copies = {(row.job_id, row.adapter, row.page): row.copy_handle for row in rows}
    return {u.id: [Target(kind=KIND, id=copies[u.job_id, u.adapter, u.page])] for u in units}


def scheduled(connection: sa.Connection, jobs: Sequence[str]) -> Mapping[tuple[str, str], set[str]]:
    """Give the copies with an open window of each job and store."""
    found = defaultdict[tuple[str, str], set[str]](set)
    for job, adapter, handle in connection.execute(_OPEN, {"ids": jobs}).all() if jobs else []:
        found[job, adapter].add(handle)
    return found


def close(connection: sa.Connection, done: Sequence[Finished], at: datetime) -> None:
    """Close the windows whose copies were seen to be gone."""
    for answer in done:
        if answer.receipt is not None and answer.receipt.outcome is Outcome.CLOSED:
            (copy,), order = answer.claimed.order.targets, answer.claimed.order
            mine = (_w.job_id == str(order.job), _w.adapter == answer.claimed.adapter, _w.copy_handle == copy.id)
            connection.execute(t.windows.update().where(*mine).values(closed_at_us=micros(at)))


def of_jobs(connection: sa.Connection, jobs: Sequence[str]) -> Mapping[str, list[WindowView]]:
    """Give the windows of jobs, the first to end first."""
    found = defaultdict[str, list[WindowView]](list)
    query = sa.select(t.windows).where(among(_w.job_id)).order_by(_w.job_id, _w.until_us, _w.adapter, _w.copy_handle)
    for row in connection.execute(query, {"ids": jobs}).all():
        closed = None if row.closed_at_us is None else moment(row.closed_at_us)
        view = WindowView(adapter=row.adapter, copy=row.copy_handle, until=moment(row.until_us), closed_at=closed)
        found[row.job_id].append(view)
    return found
