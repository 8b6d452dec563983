"""The vector index under the contract, with a source of its own: what a record says lies in its vector."""

from __future__ import annotations

import hashlib
import sqlite3
import struct
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import sqlalchemy as sa

from adapters.memory import physical
from adapters.memory.engine import reading
from adapters.vector import Point, VectorAdapter
from orchestrator import Scope, Target
from orchestrator.testing import PLANTED, Record, StoreUnderTest
from tests.contract.on_postgres import OnPostgres
from tests.contract.stores import WAIT_MS, Lines, context_in

AT_ONCE: Final = 1000


class Records:
    """A source that hands out what it was given, until it revokes that."""

    def __init__(self) -> None:
        self._handed_out: set[tuple[Scope, Target]] = set()

    def take(self, records: Collection[Record]) -> None:
        self._handed_out |= {(record.scope, record.fact) for record in records}

    def revoke(self, record: Record) -> None:
        self._handed_out.remove((record.scope, record.fact))

    def active(self, scope: Scope, records: Collection[Target]) -> Mapping[Target, int]:
        return {record: PLANTED for record in records if (scope, record) in self._handed_out}


class VectorUnderTest(StoreUnderTest):
    adapter: VectorAdapter

    dimensions = 256  # four characters of a text are one number
    beside = frozenset({"vector_probes", "vector_schema", "scan_markers"})  # what the store keeps that is no record
    row_id = "rowid"

    def __init__(self, folder: Path, url: str | None = None) -> None:
        self._log = Lines()
        self.file = folder / "vectors.db"
        context = context_in(folder, self._log)
        self.adapter = VectorAdapter(context, url=url or f"sqlite:///{self.file}", dimensions=self.dimensions)
        self.records = Records()
        self.index = self.adapter.index(self.records)
        self._parts: defaultdict[Record, int] = defaultdict(lambda: len(self._parts))
        self._ids: dict[tuple[Scope, str], str] = {}

    def plant(self, record: Record) -> None:
        self.plant_all([record])

    def plant_all(self, records: Sequence[Record]) -> None:
        self.records.take(records)
        of_scopes = defaultdict[Scope, list[Record]](list)
        for record in records:
            of_scopes[record.scope].append(record)
        for scope, some in of_scopes.items():
            for start in range(0, len(some), AT_ONCE):
                assert self._put(scope, some[start : start + AT_ONCE])

    def raw(self) -> Mapping[str, bytes]:
        return {
            f"{table}:{row[0]}": repr(row[1:]).encode()
            for table in self.tables() - self.beside
            for row in self.run(f'SELECT {self.row_id}, * FROM "{table}"')  # noqa: S608 - our own tables
        }

    def readable(self, record: Record) -> bool:
        hits = self.index.search(record.scope, self.embed(record.text), AT_ONCE).hits
        return self._ids.get((record.scope, record.key)) in {hit.id for hit in hits}

    @contextmanager
    def unreachable(self) -> Iterator[None]:
        self.adapter.close()
        away = self.file.rename(self.file.with_name("away.db"))
        self.file.mkdir()
        try:
            yield
        finally:
            self.adapter.close()
            self.file.rmdir()
            away.rename(self.file)

    def late_write(self, record: Record, revision: int) -> bool:
        """Write what was read before its source has revoked it."""
        if revision == PLANTED and (record.scope, record.fact) in self.records._handed_out:
            self.records.revoke(record)
        return self._put(record.scope, [record])

    @contextmanager
    def lie(self) -> Iterator[None]:
        """Take the points from their owner, and what they were made from out of them, and erase none."""
        with super().lie():
            self.run(
                "UPDATE vector_points SET user_id = 'nobody', source = '', origin = NULL, kind = NULL, version = NULL"
            )
            yield

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read one state of the database until the end; how long a scrub waits for that changes no law."""
        with pytest.MonkeyPatch.context() as patience, reading(self.adapter._engine) as connection:
            patience.setattr(physical, "WAIT_MS", WAIT_MS)
            connection.exec_driver_sql("SELECT count(*) FROM vector_points").fetchone()
            yield

    def log(self) -> list[str]:
        return self._log.lines

    def embed(self, text: str) -> Sequence[float]:
        """Give a vector whose bytes are those of the text."""
        size = self.dimensions * 4
        return struct.unpack(f"<{self.dimensions}f", text.encode().ljust(size)[:size])

    def run(self, statement: str) -> Sequence[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.file, isolation_level=None)) as connection:
            return connection.execute(statement).fetchall()

    def tables(self) -> set[str]:
        return {row[0] for row in self.run("SELECT name FROM sqlite_master WHERE type = 'table'")}

    def _put(self, scope: Scope, records: Sequence[Record]) -> bool:
        points = [
            Point(made_from=r.fact, source=r.source, vector=self.embed(r.text), part=self._parts[r]) for r in records
        ]
        stored = self.index.put(scope, points)
        self._ids.update(((record.scope, record.key), id_) for record, id_ in zip(records, stored.ids, strict=False))
        return not stored.refused


class SlippingThrough(VectorUnderTest):
    """A writer that asks no guard: what it writes late is for a look to find."""

    def late_write(self, record: Record, revision: int) -> bool:
        masters = Records()
        masters.take([record])
        self.index, guarded = self.adapter.index(masters), self.index
        try:
            assert revision == PLANTED
            return super()._put(record.scope, [record])
        finally:
            self.index = guarded


class VectorOnPostgres(OnPostgres, VectorUnderTest):
    dimensions = 16

    def __init__(self, folder: Path, url: str) -> None:
        self.database = sa.make_url(url)
        super().__init__(folder, url)

    def embed(self, text: str) -> Sequence[float]:
        return [byte - 127.5 for byte in hashlib.shake_256(text.encode()).digest(self.dimensions)]


@contextmanager
def vectors_in(folder: Path) -> Iterator[VectorUnderTest]:
    store = VectorUnderTest(folder)
    with closing(store.adapter):
        yield store
