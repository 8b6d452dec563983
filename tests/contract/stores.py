"""The real stores under the contract: how each is planted, read raw, cut off and lied about."""

from __future__ import annotations

import json
import math
import socket
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import redis

from adapters.cache import AnswerCache, CacheAdapter
from adapters.cache.connection import Connection
from adapters.memory import MemoryAdapter, physical
from adapters.memory.engine import reading
from adapters.memory.tables import metadata
from orchestrator import AdapterContext, Gate, GateRefused, Keyring
from orchestrator.testing import PLANTED, Record, StoreUnderTest
from tests.contract.toy import NotesUnderTest, open_notes

KEYRING = Keyring(current="tk-1", keys={"tk-1": b"k" * 32})
BULK = 300
PATIENCE = 0.05
WAIT_MS = 50


class RealClock:
    def now(self) -> datetime:
        return datetime.now(UTC)


@dataclass
class Lines:
    """A log that keeps its lines."""

    lines: list[str] = field(default_factory=list)

    def info(self, event: str, **facts: object) -> None:
        self.lines.append(f"{event} {facts!r}")

    def warning(self, event: str, **facts: object) -> None:
        self.lines.append(f"{event} {facts!r}")


def context_in(folder: Path, log: Lines) -> AdapterContext:
    folder.mkdir(parents=True, exist_ok=True)
    return AdapterContext(clock=RealClock(), gate=Gate(KEYRING), log=log, state_dir=folder)


class MemoryUnderTest(StoreUnderTest):
    adapter: MemoryAdapter

    beside = metadata.tables.keys() - {"facts"}  # what the store keeps that is no record
    row_id = "rowid"

    def __init__(self, folder: Path, url: str | None = None) -> None:
        self._log = Lines()
        self.file = folder / "memory.db"
        self.adapter = MemoryAdapter(context_in(folder, self._log), url=url or f"sqlite:///{self.file}")

    def plant(self, record: Record) -> None:
        store = self.adapter.store
        if not store.knows_source(record.scope, record.source):
            store.register_source(record.scope, record.source)
        store.put(record.scope, record.key, record.text, record.source, user_statement=True)

    def plant_all(self, records: Sequence[Record]) -> None:
        """Plant the first of each source by the library, and a bulk of others as the rows that it writes."""
        if len(records) < BULK:
            return super().plant_all(records)
        self.plant(records[0])
        rows = [
            (r.scope.tenant, r.scope.user, r.scope.project, r.key, 1, f"id-{n}-{r.fact.id}", r.text, r.source, math.inf)
            for n, r in enumerate(records)
        ]
        sources = {(r.scope.tenant, r.source) for r in records}
        assert len(sources) == 1
        self.insert(rows[1:])
        return None

    def raw(self) -> Mapping[str, bytes]:
        return {
            f"{table}:{row[0]}": json.dumps(row[1:]).encode()
            for table in self.tables() - self.beside
            for row in self.run(f'SELECT {self.row_id}, * FROM "{table}"')  # noqa: S608 - our own tables
        }

    def readable(self, record: Record) -> bool:
        return any((f.key, f.value) == (record.key, record.text) for f in self.adapter.store.current(record.scope))

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
        del revision  # the gate decides by the source
        try:
            self.plant(record)
        except GateRefused:
            return False
        return True

    @contextmanager
    def lie(self) -> Iterator[None]:
        """Take the rows from their owner, as a foreign key with SET NULL does, and erase none."""
        with super().lie():
            self.run("UPDATE facts SET user_id = 'nobody:' || user_id")
            yield

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read one state of the database until the end; how long a scrub waits for that changes no law."""
        with pytest.MonkeyPatch.context() as patience, reading(self.adapter._engine) as connection:
            patience.setattr(physical, "WAIT_MS", WAIT_MS)
            connection.exec_driver_sql("SELECT count(*) FROM facts").fetchone()
            yield

    def log(self) -> list[str]:
        return self._log.lines

    def run(self, statement: str) -> Sequence[tuple[Any, ...]]:
        with closing(self.sql()) as connection:
            return connection.execute(statement).fetchall()

    def tables(self) -> set[str]:
        return {row[0] for row in self.run("SELECT name FROM sqlite_master WHERE type = 'table'")}

    def insert(self, rows: Sequence[tuple[Any, ...]]) -> None:
        with closing(self.sql()) as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("INSERT INTO facts VALUES (?,?,?,?,?,?,?,?,1,?,1,'live')", rows)
            connection.execute("COMMIT")

    def sql(self) -> sqlite3.Connection:
        return sqlite3.connect(self.file, isolation_level=None)


class CacheUnderTest(StoreUnderTest):
    adapter: CacheAdapter

    def __init__(self, folder: Path, url: str) -> None:
        self._log, self._folder = Lines(), folder
        self.adapter = CacheAdapter(context_in(folder, self._log), url=url)
        # redis-py's hints mix its two clients; ours is never the asynchronous one.
        self.eyes: Any = redis.Redis.from_url(url)
        self.eyes.flushall()

    def plant(self, record: Record) -> None:
        self._put(self.adapter.answers, record, PLANTED)

    def plant_all(self, records: Sequence[Record]) -> None:
        with self.adapter.client().pipeline(transaction=False) as pipe:
            answers = AnswerCache(pipe, Gate(KEYRING))
            for record in records:
                self._put(answers, record, PLANTED)
            assert all(pipe.execute())

    def raw(self) -> Mapping[str, bytes]:
        keys = sorted(key for key in set(self.eyes.scan_iter(count=1000)) if not _beside(key))
        with self.eyes.pipeline(transaction=False) as pipe:
            for key in keys:
                pipe.type(key)
            kinds = pipe.execute()
            for key, kind in zip(keys, kinds, strict=True):
                pipe.hgetall(key) if kind == b"hash" else pipe.dump(key)
            values = pipe.execute()
        return {
            key.decode(): repr(sorted(v.items()) if isinstance(v, dict) else v).encode()
            for key, v in zip(keys, values, strict=True)
        }

    def readable(self, record: Record) -> bool:
        return self.adapter.answers.get(record.scope, record.key) == record.text

    @contextmanager
    def unreachable(self) -> Iterator[None]:
        """Put a server in the place that takes connections and never answers."""
        real = self.adapter._connection
        with closing(socket.create_server(("127.0.0.1", 0))) as silent:
            url = f"redis://127.0.0.1:{silent.getsockname()[1]}/0"
            self.adapter._connection = Connection(url, timeout=PATIENCE, state_dir=self._folder)
            try:
                yield
            finally:
                self.adapter.close()
                self.adapter._connection = real

    def late_write(self, record: Record, revision: int) -> bool:
        return self._put(self.adapter.answers, record, revision)

    @contextmanager
    def lie(self) -> Iterator[None]:
        """Forget which entries there are, and unlink none."""
        with super().lie():
            for key in self.eyes.scan_iter(match="*:keys"):
                self.eyes.delete(key)
            yield

    def log(self) -> list[str]:
        return self._log.lines

    def close(self) -> None:
        self.adapter.close()
        self.eyes.close()

    @staticmethod
    def _put(answers: AnswerCache, record: Record, revision: int) -> bool:
        return answers.put(record.scope, record.key, record.text, [record.fact], revision=revision)


def _beside(key: bytes) -> bool:
    name = key.rpartition(b"}:")
    return key.startswith(b"cache:{") and (name[2] in {b"keys", b"scopes"} or name[2].startswith(b"rev:"))


@contextmanager
def memory_in(folder: Path) -> Iterator[MemoryUnderTest]:
    store = MemoryUnderTest(folder)
    with closing(store.adapter):
        yield store


@contextmanager
def cache_in(folder: Path, url: str) -> Iterator[CacheUnderTest]:
    with closing(CacheUnderTest(folder, url)) as store:
        yield store


@contextmanager
def notes_in(folder: Path) -> Iterator[NotesUnderTest]:
    log = Lines()
    yield open_notes(folder, context_in(folder, log), log.lines)
