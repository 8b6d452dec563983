"""What the file still holds after a fact was revoked, and what every connection guarantees."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest

from adapters.memory import MemoryStore, open_engine
from adapters.memory.engine import checkpoint, reading
from orchestrator import Gate, Keyring, Scope

A = Scope(tenant="tenant-a", user="user-1", project="agent-research")
VERSIONS = [f"{n:02d}-passport-P1234567-".ljust(700, "x") for n in range(30)]


class At:
    def now(self) -> datetime:
        return datetime(2026, 11, 1, tzinfo=UTC)


def hits(file: Path) -> int:
    parts = (file, file.with_name(f"{file.name}-wal"), file.with_name(f"{file.name}-shm"))
    return sum(part.read_bytes().count(b"-passport-P1234567-") for part in parts if part.exists())


@pytest.mark.req("R31")
def test_blanked_values_are_not_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "m.db"
    engine = open_engine(f"sqlite:///{file}")
    store = MemoryStore(engine, Gate(Keyring.create()), At())
    store.register_source(A, "turn-1")
    for value in VERSIONS:
        assert len(value) == 700
        store.put(A, "passport", value, "turn-1", 1e12)
    assert hits(file) >= 30
    store.forget(A, "passport")
    assert hits(file) == 0
    engine.dispose()


@pytest.mark.req("R31")
@pytest.mark.parametrize("secure", [0, 1])
def test_the_probe_sees_what_secure_delete_would_have_overwritten(tmp_path: Path, secure: int) -> None:
    file = tmp_path / "plain.db"
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA secure_delete = {secure}")
    assert connection.execute("PRAGMA secure_delete").fetchone() == (secure,)
    connection.execute("CREATE TABLE facts (version INTEGER PRIMARY KEY, value TEXT)")
    connection.executemany("INSERT INTO facts (value) VALUES (?)", [(v,) for v in VERSIONS])
    connection.execute("UPDATE facts SET value = '[deleted]'")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    assert (hits(file) > 0) is (secure == 0)
    connection.close()


def test_every_connection_keeps_its_settings(tmp_path: Path) -> None:
    engine = open_engine(f"sqlite:///{tmp_path / 'm.db'}")
    wanted = {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "secure_delete": 1, "busy_timeout": 30000}
    with reading(engine) as one, reading(engine) as other:
        for connection in (one, other):
            for name, value in wanted.items():
                assert connection.exec_driver_sql(f"PRAGMA {name}").scalar() == value
    engine.dispose()


def test_a_reader_keeps_the_log_and_forgetting_does_not_wait_for_it(tmp_path: Path) -> None:
    file = tmp_path / "m.db"
    engine = open_engine(f"sqlite:///{file}")
    store = MemoryStore(engine, Gate(Keyring.create()), At())
    store.register_source(A, "turn-1")
    store.put(A, "passport", VERSIONS[0], "turn-1", 1e12)
    assert checkpoint(engine)
    with reading(engine) as reader:
        assert reader.exec_driver_sql("SELECT count(*) FROM facts").scalar() == 1
        assert store.forget(A, "passport").versions == 1
        assert hits(file) == 1, "the reader still sees the old state"
        assert not checkpoint(engine)
    assert checkpoint(engine)
    assert hits(file) == 0
    engine.dispose()


def test_a_fact_does_not_show_its_value_by_accident(tmp_path: Path) -> None:
    engine = open_engine(f"sqlite:///{tmp_path / 'm.db'}")
    store = MemoryStore(engine, Gate(Keyring.create()), At())
    store.register_source(A, "turn-1")
    store.put(A, "passport", "P1234567", "turn-1")
    (fact,) = store.current(A)
    assert (fact.value, "P1234567" in repr(fact)) == ("P1234567", False)
    engine.dispose()
