"""The source's own tombstones: the set that decides, read inside the write transaction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final, TypeAlias

import sqlalchemy as sa

from adapters.memory.batch import columns, insert_new, look_up
from adapters.memory.tables import source_tombstones
from orchestrator import Tombstone, TombstoneKind

Place: TypeAlias = tuple[str, str, str]
"""Kind, key id and mac: where the tombstones of a job, in their order, are gone on with."""
MAX_TOMBSTONES: Final = 4_000
"""Tombstones in one answer of revoke."""
_CHUNK: Final = 500
_JOB: Final = columns(job=str)


class LocalTombstones:
    """The tombstones that one open transaction sees, but for those of some jobs."""

    def __init__(self, connection: sa.Connection, but: Collection[str] = ()) -> None:
        """Bind to a transaction; `but` are the jobs whose tombstones do not count."""
        self._connection, self._but = connection, but

    def key_ids(self, tenant: str) -> Collection[str]:
        """Name every key under which the tenant has tombstones."""
        t, found, last = source_tombstones.c, set(), ""
        # From one key to the next along the index: a DISTINCT would read every tombstone.
        query = sa.select(sa.func.min(t.key_id)).where(t.tenant == tenant, t.key_id > sa.bindparam("last"))
        while (last := self._connection.scalar(query, {"last": last})) is not None:
            found.add(last)
        return found

    def matching(self, tenant: str, macs: Collection[str]) -> Iterable[Tombstone]:
        """Give the tenant's tombstones with one of these macs."""
        t, wanted = source_tombstones.c, iter(macs)
        counts = t.job.not_in(self._but) if self._but else sa.true()
        while chunk := list(islice(wanted, _CHUNK)):
            query = sa.select(t.kind, t.key_id, t.mac, t.cut_off).where(t.tenant == tenant, t.mac.in_(chunk), counts)
            yield from map(_tombstone, self._connection.execute(query))


def keep(connection: sa.Connection, tombstones: Iterable[tuple[str, str, Tombstone]]) -> None:
    """Write tombstones, each with its tenant and job."""
    rows = [(tenant, t.key_id, t.mac, t.kind.value, job, t.cut_off) for tenant, job, t in tombstones]
    insert_new(connection, source_tombstones, rows)


def first_of_jobs(connection: sa.Connection, jobs: Collection[str]) -> Mapping[str, Sequence[Tombstone]]:
    """Give the first tombstones of each job: a page, and one that tells whether there are more."""
    found = defaultdict[str, list[Tombstone]](list)
    for job, *mark in look_up(connection, _JOB, [(job,) for job in jobs], _first_of_each):
        found[job].append(_tombstone(mark))
    return found


def next_of_job(connection: sa.Connection, job: str, after: Place) -> Sequence[Tombstone]:
    """Give the tombstones of a job that come after a place: a page, and one that tells whether there are more."""
    t = source_tombstones.c
    query = sa.select(t.kind, t.key_id, t.mac, t.cut_off).where(t.job == job)
    query = query.where(sa.tuple_(t.kind, t.key_id, t.mac) > sa.tuple_(*map(sa.literal, after)))
    rows = connection.execute(query.order_by(t.kind, t.key_id, t.mac).limit(MAX_TOMBSTONES + 1))
    return [_tombstone(row) for row in rows]


def _first_of_each(given: sa.FromClause) -> sa.Select[Any]:
    t = source_tombstones.c
    marks = (t.job, t.kind, t.key_id, t.mac, t.cut_off)
    order = (t.kind, t.key_id, t.mac)
    place = sa.func.row_number().over(partition_by=t.job, order_by=order).label("place")
    of_job = given.join(source_tombstones, t.job == given.c.job)
    n = sa.select(*marks, place).select_from(of_job).subquery("numbered").c
    columns = (n.job, n.kind, n.key_id, n.mac, n.cut_off)
    return sa.select(*columns).where(n.place <= MAX_TOMBSTONES + 1).order_by(n.job, n.place)


def _tombstone(row: Sequence[Any]) -> Tombstone:
    kind, key_id, mac, cut_off = row
    return Tombstone(kind=TombstoneKind(kind), key_id=key_id, mac=mac, cut_off=cut_off)
