"""The drafts under the contract: each record is a checkpoint that a runner has left, made from one fact."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from adapters.drafts import DraftsAdapter, Fault, JobUnknown, MemoryChanged
from adapters.drafts.step import KINDS
from adapters.drafts.tables import metadata
from adapters.memory import MemoryStore, physical
from adapters.memory.engine import reading
from adapters.memory.tables import metadata as of_source
from orchestrator import Gate, GateRefused
from orchestrator.testing import Record, StoreUnderTest
from tests.contract.on_postgres import OnPostgres
from tests.contract.stores import KEYRING, WAIT_MS, Lines, RealClock, context_in

BULK = 30
_OF_NOTHING = """SELECT * FROM draft_used AS u WHERE NOT EXISTS (
    SELECT 1 FROM drafts AS d WHERE d.tenant = u.tenant AND d.handle = u.handle
    UNION ALL SELECT 1 FROM draft_jobs AS j WHERE j.tenant = u.tenant AND j.handle = u.handle)"""


class Stopped(Exception):
    """The runner has died."""


def stop_after_collect(passed: Fault) -> None:
    if passed is Fault.AFTER_COLLECT:
        raise Stopped


class DraftsUnderTest(StoreUnderTest):
    """The fact goes as soon as its checkpoint is there, as the source erases its own: what is under test are drafts."""

    adapter: DraftsAdapter

    # What the source keeps, facts left out: one that is left behind is a record too many.
    beside = (of_source.tables.keys() - {"facts"}) | (metadata.tables.keys() - {"drafts"})
    row_id = "rowid"
    mark = "?"

    def __init__(self, folder: Path, url: str | None = None) -> None:
        self._log = Lines()
        self.file = folder / "memory.db"
        context = context_in(folder, self._log)
        self.adapter = DraftsAdapter(context, url=url or f"sqlite:///{self.file}")
        self.source = MemoryStore(self.adapter._engine, Gate(KEYRING), RealClock())
        _ = self.adapter.runtime  # makes the tables

    def plant(self, record: Record) -> None:
        if record.fact.kind in KINDS:
            self._build(record)
            return
        scope, fact = record.scope, record.fact
        if not self.source.knows_source(scope, record.source):
            self.source.register_source(scope, record.source)
        place = (scope.tenant, scope.user, scope.project or "", record.key, fact.version)
        marks = ",".join([self.mark] * 12)
        row = (*place, fact.id, record.text, record.source, 1, math.inf, 1, "live")
        self.run(f"INSERT INTO facts VALUES ({marks})", row)  # noqa: S608 - marks of ours
        try:
            self.adapter.runtime.submit(scope, record.key, keys=[record.key])
            with pytest.raises(Stopped):
                self.adapter.runtime.run(scope, record.key, fault=stop_after_collect)
        finally:
            self.run(
                f"DELETE FROM facts WHERE tenant = {self.mark} AND fact_id = {self.mark}",  # noqa: S608 - as above
                (scope.tenant, fact.id),
            )

    def plant_all(self, records: Sequence[Record]) -> None:
        """Plant a few by the library, and a bulk of others as the rows that it writes."""
        if len(records) < BULK:
            return super().plant_all(records)
        self.plant(records[0])
        jobs, drafts, used = [], [], []
        for n, record in enumerate(records[1:]):
            scope, handle = record.scope, f"{n:05}-{record.fact.id}"
            place = (scope.user, scope.project or "")
            jobs.append((scope.tenant, f"job-{handle}", *place, record.key, "open", 0, None, 0, None, None))
            drafts.append((scope.tenant, handle, f"job-{handle}", *place, "collect", 0, f"{record.key}: {record.text}"))
            used += [(scope.tenant, h, "fact", record.fact.id, record.fact.version) for h in (f"job-{handle}", handle)]
        self.insert({"draft_jobs": jobs, "drafts": drafts, "draft_used": used})
        return None

    def _build(self, record: Record) -> None:
        """Write a draft that was made from another one, with all that is behind that, as a runner does."""
        scope, handle = record.scope, f"upon-{record.fact.id}"
        behind = self.run(
            f"SELECT kind, id, version FROM draft_used WHERE tenant = {self.mark} AND handle = {self.mark}",  # noqa: S608
            (scope.tenant, record.fact.id),
        )
        place = (scope.user, scope.project or "")
        job = (scope.tenant, f"job-{handle}", *place, record.key, "open", 0, None, 0, None, None)
        draft = (scope.tenant, handle, f"job-{handle}", *place, "collect", 0, f"{record.key}: {record.text}")
        used = [(record.fact.kind, record.fact.id, record.fact.version), *behind]
        rows = [(scope.tenant, handle, *target) for target in used]
        self.insert({"draft_jobs": [job], "drafts": [draft], "draft_used": rows})

    def raw(self) -> Mapping[str, bytes]:
        found = {f"drafts:{row[0]}:{row[1]}": json.dumps(row).encode() for row in self.run("SELECT * FROM drafts")}
        for table in self.tables() - self.beside - {"drafts"}:
            rows = self.run(f'SELECT {self.row_id}, * FROM "{table}"')  # noqa: S608 - our own tables
            found |= {f"{table}:{row[0]}": json.dumps(row[1:]).encode() for row in rows}
        # What a draft was made from goes with it.
        found |= {f"draft_used:{row[:4]}": json.dumps(row).encode() for row in self.run(_OF_NOTHING)}
        return found

    def readable(self, record: Record) -> bool:
        try:
            job = self.adapter.runtime.inspect(record.scope, record.key)
        except JobUnknown:
            return False
        return any(draft.text == f"{record.key}: {record.text}" for draft in job.drafts)

    @contextmanager
    def unreachable(self) -> Iterator[None]:
        self.adapter._engine.dispose()
        away = self.file.rename(self.file.with_name("away.db"))
        self.file.mkdir()
        try:
            yield
        finally:
            self.adapter._engine.dispose()
            self.file.rmdir()
            away.rename(self.file)

    def late_write(self, record: Record, revision: int) -> bool:
        del revision  # the suite raises none here: a source that revokes is in the tests of the runtime
        try:
            self.plant(record)
        except (GateRefused, MemoryChanged):
            return False
        return True

    @contextmanager
    def lie(self) -> Iterator[None]:
        """Take the drafts from their owner and forget what they were made from, and erase none."""
        with super().lie():
            self.run("UPDATE drafts SET user_id = 'nobody:' || user_id")
            self.run("DELETE FROM draft_used")
            yield

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read one state of the database until the end; how long a scrub waits for that changes no law."""
        with pytest.MonkeyPatch.context() as patience, reading(self.adapter._engine) as connection:
            patience.setattr(physical, "WAIT_MS", WAIT_MS)
            connection.exec_driver_sql("SELECT count(*) FROM drafts").fetchone()
            yield

    def log(self) -> list[str]:
        return self._log.lines

    def run(self, statement: str, values: Sequence[Any] = ()) -> Sequence[tuple[Any, ...]]:
        with closing(self.sql()) as connection:
            return connection.execute(statement, values).fetchall()

    def tables(self) -> set[str]:
        return {row[0] for row in self.run("SELECT name FROM sqlite_master WHERE type = 'table'")}

    def insert(self, rows: Mapping[str, Sequence[tuple[Any, ...]]]) -> None:
        with closing(self.sql()) as connection:
            connection.execute("BEGIN IMMEDIATE")
            for table, some in rows.items():
                connection.executemany(f"INSERT INTO {table} VALUES ({self.marks(some)})", some)  # noqa: S608 - ours
            connection.execute("COMMIT")

    def marks(self, rows: Sequence[tuple[Any, ...]]) -> str:
        return ",".join([self.mark] * len(rows[0]))

    def sql(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.file, isolation_level=None)
        connection.execute("PRAGMA secure_delete = ON")
        return connection


class DraftsOnPostgres(OnPostgres, DraftsUnderTest):
    beside = DraftsUnderTest.beside | {"memory_schema"}
    mark = "%s"

    def __init__(self, folder: Path, url: str) -> None:
        self.database = sa.make_url(url)
        super().__init__(folder, url)

    def insert(self, rows: Mapping[str, Sequence[tuple[Any, ...]]]) -> None:
        with self.eyes().cursor() as cursor:
            for table, some in rows.items():
                cursor.executemany(f"INSERT INTO {table} VALUES ({self.marks(some)})".encode(), some)  # noqa: S608


@contextmanager
def drafts_in(folder: Path) -> Iterator[DraftsUnderTest]:
    store = DraftsUnderTest(folder)
    with closing(store.adapter):
        yield store
