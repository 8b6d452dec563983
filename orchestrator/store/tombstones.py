"""The control database's copy of the tombstones: it outlives a restore of the source."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import sqlalchemy as sa

from orchestrator.domain.contract import Tombstone, TombstoneKind
from orchestrator.store import tables as t

CHUNK = 500


@dataclass(frozen=True)
class SqlTombstones:
    """`gate.TombstoneLookup` over one open transaction."""

    connection: sa.Connection

    def key_ids(self, tenant: str) -> Collection[str]:
        """Name every key under which the tenant has tombstones."""
        query = sa.select(t.tombstones.c.key_id).distinct().where(t.tombstones.c.tenant == tenant)
        return set(self.connection.execute(query).scalars())

    def matching(self, tenant: str, macs: Collection[str]) -> Iterable[Tombstone]:
        """Give the tenant's tombstones with one of these macs."""
        c, wanted = t.tombstones.c, list(macs)
        for start in range(0, len(wanted), CHUNK):
            some = wanted[start : start + CHUNK]
            for row in self.connection.execute(
                sa.select(c.kind, c.key_id, c.mac, c.cut_off).where(c.tenant == tenant, c.mac.in_(some))
            ):
                yield Tombstone(kind=TombstoneKind(row.kind), key_id=row.key_id, mac=row.mac, cut_off=row.cut_off)
