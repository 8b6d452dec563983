"""What files still hold after forgetting. The tests set secure_delete themselves, and show that the probe sees."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from adapters.memory import sqlite
from adapters.memory.chains import open_file
from adapters.memory.chains.migration import VERSION_1
from adapters.memory.engine import checkpoint, reading
from orchestrator import Permanent
from tests.integration.chains_harness import (
    ALICE,
    DIET,
    FOOD_QUESTION,
    PASSPORT,
    TURN_3,
    TURN_6,
    TURN_12,
    Chains,
    StepClock,
    chains_in,
    holds,
    in_file,
    in_source,
)

SECRET = "P1234567"
REASON = "user request at trip-planning/turn-20"
on_sqlite = chains_in("file", "source")


def tell_and_forget(chains: Chains) -> None:
    memory_id = chains.store.remember(ALICE, "user", PASSPORT, TURN_6)
    chains.store.correct(ALICE, memory_id, PASSPORT, TURN_12)
    chains.store.remember(ALICE, "user", DIET, TURN_3)
    assert holds(chains.file, SECRET), "the probe sees what is there"
    chains.store.forget(ALICE, memory_id, REASON)
    assert len(chains.ids(ALICE, FOOD_QUESTION)) == 1


@pytest.mark.req("R106")
def test_secure_delete_is_on_by_default(tmp_path: Path) -> None:
    file, clock = tmp_path / "chains.db", StepClock()
    store = open_file(file, clock)
    memory_id = store.remember(ALICE, "user", PASSPORT, TURN_6)
    assert holds(file, SECRET)
    store.forget(ALICE, memory_id, REASON)
    store.close()
    assert not holds(file, SECRET)


@pytest.mark.req("R106")
def test_text_stays_in_the_file_with_secure_delete_off(tmp_path: Path) -> None:
    file = tmp_path / "chains.db"
    with in_file(file, secure_delete=False) as chains:
        tell_and_forget(chains)
    assert holds(file, SECRET)


@pytest.mark.req("R96")
@pytest.mark.parametrize("secure_delete", [0, 1])
def test_probe_sees_what_secure_delete_would_have_overwritten(tmp_path: Path, secure_delete: int) -> None:
    file = tmp_path / "plain.db"
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA secure_delete = {secure_delete}")
        assert connection.execute("PRAGMA secure_delete").fetchone() == (secure_delete,)
        connection.execute(VERSION_1[0])
        row = "INSERT INTO memories (user_id, text, source, created_at) VALUES ('alice', ?, 'turn-6', 'now')"
        connection.executemany(row, [(PASSPORT,), (DIET,)])
        assert holds(file, SECRET)
        connection.execute("DELETE FROM memories WHERE text = ?", (PASSPORT,))
    assert holds(file, SECRET) is (secure_delete == 0)
    assert holds(file, DIET)


@pytest.mark.req("R96")
@pytest.mark.parametrize("secure_delete", [True, False])
def test_migration_leaves_no_second_copy_that_forgetting_would_not_reach(
    tmp_path: Path, *, secure_delete: bool
) -> None:
    file = tmp_path / "chains.db"
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        for statement in VERSION_1:
            connection.execute(statement)
        row = "INSERT INTO memories VALUES (1, 'alice', NULL, ?, 'turn-6', '2026-10-01T08:00:00+00:00')"
        connection.execute(row, (PASSPORT,))
    with in_file(file, secure_delete=secure_delete) as chains:
        assert holds(file, SECRET)
        assert chains.store.forget(ALICE, 1, REASON) == [1]
    assert holds(file, SECRET) is not secure_delete


@contextmanager
def with_a_log(folder: Path, place: str, *, secure_delete: bool) -> Iterator[Chains]:
    """Open chains whose database keeps a write-ahead log."""
    file = folder / "chains.db"
    if place == "source":
        with in_source(f"sqlite:///{file}") as chains:
            yield chains
        return
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    with in_file(file, secure_delete=secure_delete) as chains:
        yield chains


@pytest.mark.req("R118")
@pytest.mark.parametrize(("place", "secure_delete"), [("file", True), ("file", False), ("source", True)])
def test_sidecar_holds_the_text_before_a_truncating_checkpoint_and_not_after(
    tmp_path: Path, place: str, *, secure_delete: bool
) -> None:
    with with_a_log(tmp_path, place, secure_delete=secure_delete) as chains:
        engine, log = chains.store._engine, chains.file.with_name("chains.db-wal")
        with reading(engine) as reader:
            reader.exec_driver_sql("SELECT count(*) FROM memories")
            tell_and_forget(chains)
            assert SECRET.encode() in log.read_bytes()
            assert not checkpoint(engine), "a reader keeps the log"
            assert holds(chains.file, SECRET)
        assert checkpoint(engine)
        assert log.read_bytes() == b""
        assert holds(chains.file, SECRET) is not secure_delete
        assert holds(chains.file, DIET)


@pytest.mark.req("R118")
@pytest.mark.parametrize("place", ["file", "source"])
def test_forgetting_and_purging_empty_the_log_by_themselves(tmp_path: Path, place: str) -> None:
    with with_a_log(tmp_path, place, secure_delete=True) as chains:
        tell_and_forget(chains)
        assert not holds(chains.file, SECRET)
        chains.store.remember(ALICE, "user", PASSPORT, TURN_6, 1)
        assert holds(chains.file, SECRET)
        chains.clock.at = chains.clock.at.replace(year=2027)
        assert chains.store.purge_expired() == 1
        assert not holds(chains.file, SECRET)


@pytest.mark.req("R117")
def test_every_connection_of_a_pool_of_5_has_secure_delete_and_foreign_keys(on_sqlite: Chains) -> None:
    engine = on_sqlite.store._engine
    five = [engine.connect() for _ in range(5)]
    assert len({id(connection.connection.driver_connection) for connection in five}) == 5
    for connection in five:
        told = [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("secure_delete", "foreign_keys")]
        assert told == [1, 1]
        connection.close()


@pytest.mark.req("R117")
def test_secure_delete_is_turned_off_in_words_where_that_is_asked_for(tmp_path: Path) -> None:
    with in_file(tmp_path / "chains.db", secure_delete=False) as chains, reading(chains.store._engine) as connection:
        assert connection.exec_driver_sql("PRAGMA secure_delete").scalar() == 0


class Deaf:
    """A driver whose SQLite was built without a setting: it takes the word and keeps nothing."""

    isolation_level: str | None = ""

    def execute(self, _statement: str) -> Any:  # noqa: ANN401 - stands in for a cursor
        return self

    def fetchone(self) -> None:
        return None


@pytest.mark.req("R117")
def test_connection_that_does_not_keep_a_setting_is_not_used() -> None:
    with pytest.raises(Permanent, match="does not keep the setting secure_delete"):
        sqlite.settle(Deaf(), {"secure_delete": 1})
