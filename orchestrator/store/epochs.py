"""The epoch of each source: raised by every restore, so that nothing of the time before it is taken for the present."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final
from uuid import UUID

import sqlalchemy as sa

from orchestrator.domain.contract import Target, Tombstone, TombstoneKind
from orchestrator.domain.states import JobState
from orchestrator.domain.unit import Phase
from orchestrator.store import bulk
from orchestrator.store import tables as t

FIRST: Final = 1
_PART: Final = 2_000
_s, _t, _g, _j, _u = t.sources.c, t.tombstones.c, t.targets.c, t.jobs.c, t.units.c


def of(connection: sa.Connection, adapter: str) -> int:
    """Give the epoch of a source; the first one where it was never restored."""
    return connection.scalar(sa.select(_s.epoch).where(_s.adapter == adapter)) or FIRST


def of_all(connection: sa.Connection) -> Mapping[str, int]:
    """Give the epochs of all sources that were ever restored."""
    return {row.adapter: row.epoch for row in connection.execute(sa.select(_s.adapter, _s.epoch))}


def raise_(connection: sa.Connection, adapter: str) -> int:
    """Begin a new epoch of a source, and give it: from this commit on, what was called for before is dropped."""
    bulk.insert(connection, t.sources, [{"adapter": adapter, "epoch": FIRST}], conflict=bulk.KEEP)
    mine = t.sources.update().where(_s.adapter == adapter)
    connection.execute(mine.values(epoch=_s.epoch + 1))
    return of(connection, adapter)


def key_ids(connection: sa.Connection) -> set[str]:
    """Name every key under which any tenant has tombstones."""
    return set(connection.execute(sa.select(_t.key_id).distinct()).scalars())


def tombstones(connection: sa.Connection) -> Iterator[tuple[str, UUID, Tombstone]]:
    """Give every tombstone with its tenant and job, some in hand at a time."""
    query = sa.select(t.tombstones).execution_options(stream_results=True)
    with connection.execute(query) as found:
        for part in found.partitions(_PART):
            for row in part:
                kind = TombstoneKind(row.kind)
                mark = Tombstone(kind=kind, key_id=row.key_id, mac=row.mac, cut_off=row.cut_off)
                yield row.tenant, UUID(row.job_id), mark


def targets(connection: sa.Connection, adapter: str) -> Iterator[tuple[UUID, Target]]:
    """Give what a source has named to jobs that are not verified yet, each once for a job."""
    going_on = _j.state.in_([t.written(JobState.SOURCE_REVOKED), t.written(JobState.DERIVED_CLEANUP)])
    query = sa.select(_g.job_id, _g.kind, _g.handle, _g.version).distinct().join(t.jobs, _j.id == _g.job_id)
    query = query.where(going_on, _g.adapter == adapter, _g.find_pass == 0).order_by(_g.job_id)
    with connection.execute(query.execution_options(stream_results=True)) as found:
        for part in found.partitions(_PART):
            for row in part:
                yield UUID(row.job_id), Target(kind=row.kind, id=row.handle, version=row.version)


def kept(connection: sa.Connection, adapter: str) -> list[tuple[UUID, str]]:
    """Give each item that a job has left because of a hold and has still to revoke."""
    waits = (_u.adapter == adapter) & (_u.phase == Phase.REVOKE.value) & (_u.status != t.DONE)
    query = sa.select(_u.job_id, _u.item_ref).where(waits, _u.item_ref.is_not(None)).order_by(_u.job_id, _u.item_ref)
    return [(UUID(job), item) for job, item in connection.execute(query)]


def note(connection: sa.Connection, copy: str, *, tombstones: int, erased: int, began: int, ended: int) -> None:
    """Write down that a copy was restored and brought up to date, with both times in microseconds since 1970."""
    row = {"copy_handle": copy, "restored_at_us": began, "finished_at_us": max(began, ended)}
    bulk.insert(connection, t.restores, [{**row, "tombstones": tombstones, "erased": erased}])
