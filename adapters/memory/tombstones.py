"""The source's own tombstones: the set that decides, read inside the write transaction."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import Any, Final

import sqlalchemy as sa

from adapters.memory.engine import insert_new
from adapters.memory.tables import source_tombstones
from orchestrator import Tombstone, TombstoneKind

_CHUNK: Final = 500


class LocalTombstones:
    """The tombstones that one open transaction sees."""

    def __init__(self, connection: sa.Connection) -> None:
        """Bind to a transaction."""
        self._connection = connection

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
        while chunk := list(islice(wanted, _CHUNK)):
            query = sa.select(t.kind, t.key_id, t.mac, t.cut_off).where(t.tenant == tenant, t.mac.in_(chunk))
            yield from map(_tombstone, self._connection.execute(query))


def keep(connection: sa.Connection, tenant: str, job: str, tombstones: Iterable[Tombstone]) -> None:
    """Write the tombstones of one job."""
    rows = [
        {"tenant": tenant, "key_id": t.key_id, "mac": t.mac, "kind": t.kind.value, "job": job, "cut_off": t.cut_off}
        for t in tombstones
    ]
    insert_new(connection, source_tombstones, rows)


def of_job(connection: sa.Connection, job: str) -> Iterator[Tombstone]:
    """Give the tombstones of one job, always in the same order."""
    t = source_tombstones.c
    query = sa.select(t.kind, t.key_id, t.mac, t.cut_off).where(t.job == job).order_by(t.kind, t.key_id, t.mac)
    return map(_tombstone, connection.execute(query))


def _tombstone(row: sa.Row[Any, Any, Any, Any]) -> Tombstone:
    kind, key_id, mac, cut_off = row
    return Tombstone(kind=TombstoneKind(kind), key_id=key_id, mac=mac, cut_off=cut_off)
