"""Provenance files that stand alone: which are opened, which are migrated, and which are left as they are."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from adapters.memory.chains import SchemaError, open_file
from adapters.memory.chains.file import engine_of
from adapters.memory.chains.migration import MIGRATION, VERSION_1
from adapters.memory.chains.schema import bring_up
from adapters.memory.engine import writing
from orchestrator import ErasureError, Permanent, StoreLocked
from tests.integration.chains_harness import (
    ALICE,
    DIET,
    EATS_FISH,
    FOOD_QUESTION,
    PASSPORT,
    TURN_3,
    TURN_6,
    TURN_12,
    StepClock,
    holds,
    in_file,
)

ROW = (7, "alice", None, DIET, TURN_3, "2026-10-01T08:00:00+00:00")
# What another program writes for version 2: ids may come back, and no tenants.
VERSION_2 = (
    """CREATE TABLE memories (id INTEGER PRIMARY KEY, user_id TEXT NOT NULL, task_id TEXT, text TEXT NOT NULL,
        source TEXT NOT NULL, created_at TEXT NOT NULL, expires_at TEXT,
        supersedes INTEGER REFERENCES memories(id) UNIQUE)""",
    "CREATE INDEX by_scope ON memories (user_id, task_id)",
    """CREATE TABLE deletions (id INTEGER PRIMARY KEY, user_id TEXT NOT NULL, memory_ids TEXT NOT NULL,
        reason TEXT NOT NULL, deleted_at TEXT NOT NULL)""",
    "PRAGMA user_version = 2",
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "chains.db"


@contextmanager
def raw(file: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        yield connection


def made(file: Path, *statements: str, rows: Sequence[tuple[object, ...]] = ()) -> Path:
    with raw(file) as connection:
        for statement in statements:
            connection.execute(statement)
        for row in rows:
            connection.execute(f"INSERT INTO memories VALUES ({', '.join('?' * len(row))})", row)  # noqa: S608 - no value
    return file


def told(file: Path) -> tuple[int, list[str], list[tuple[object, ...]]]:
    """Give version, tables and memories."""
    with raw(file) as connection:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name"
        names = [name for (name,) in connection.execute(tables)]
        return version, names, connection.execute("SELECT * FROM memories").fetchall() if "memories" in names else []


@pytest.mark.req("R107")
def test_file_of_version_1_migrates_with_data_sources_ids_and_foreign_keys(file: Path) -> None:
    made(file, *VERSION_1, rows=[ROW, (9, "bob", "trip-planning", DIET, TURN_6, ROW[5])])
    with in_file(file) as chains:
        (found,) = chains.recalled(ALICE, FOOD_QUESTION)
        assert (found.id, found.text, found.source) == (7, DIET, TURN_3)
        assert chains.store.correct(ALICE, 7, EATS_FISH, TURN_12) == 10
        assert [v.id for v in chains.store.history(ALICE, 10)] == [7, 10]
        engine = chains.store._engine
        with pytest.raises(ErasureError), writing(engine, ()) as connection:
            connection.exec_driver_sql("UPDATE memories SET supersedes = 999 WHERE id = 9")
        with pytest.raises(ErasureError), writing(engine, ()) as connection:
            connection.exec_driver_sql("UPDATE memories SET supersedes = 7 WHERE id = 9")
    version, _, rows = told(file)
    assert (version, rows[0]) == (2, (*ROW, None, None))
    with in_file(file) as chains:
        assert [v.source for v in chains.store.history(ALICE, 7)] == [TURN_3, TURN_12]


@pytest.mark.req("R107")
def test_new_file_has_the_tables_that_a_migrated_one_has(tmp_path: Path) -> None:
    files = [made(tmp_path / "old.db", *VERSION_1, rows=[ROW]), tmp_path / "new.db"]
    schemas = []
    for file in files:
        with in_file(file):
            pass
        with raw(file) as connection:
            schemas.append(connection.execute("SELECT type, name, sql FROM sqlite_master ORDER BY name").fetchall())
    assert schemas[0] == schemas[1]


@pytest.mark.req("R108")
@pytest.mark.parametrize("after", range(len(MIGRATION) + 1))
def test_migration_that_fails_midway_leaves_version_1(file: Path, after: int) -> None:
    made(file, *VERSION_1, rows=[ROW])
    renamed = next(n for n, step in enumerate(MIGRATION, 1) if "RENAME" in step)
    assert 0 < renamed < len(MIGRATION)
    steps = (*MIGRATION[:after], "CREATE INDEX broken ON nowhere (id)", *MIGRATION[after:])
    engine = engine_of(file, secure_delete=True)
    with pytest.raises(ErasureError), writing(engine, ()) as connection:
        bring_up(connection, steps)
    engine.dispose()
    assert told(file) == (1, ["memories"], [ROW])
    with in_file(file) as chains:
        assert chains.ids(ALICE, FOOD_QUESTION) == [7]


@pytest.mark.req("R108")
def test_row_that_version_2_does_not_allow_leaves_version_1_and_is_not_repeated(file: Path) -> None:
    without_check = VERSION_1[0].replace("CHECK (trim(text) <> '')", "")
    made(file, without_check, VERSION_1[1], rows=[ROW, (8, "alice", None, "  ", "P1234567", ROW[5])])
    with pytest.raises(SchemaError, match="a row that version 2 does not allow") as caught:
        open_file(file, StepClock())
    assert "P1234567" not in str(caught.value)
    assert told(file)[:2] == (1, ["memories"])


@pytest.mark.req("R109")
@pytest.mark.parametrize(
    ("statements", "version"),
    [
        (("CREATE TABLE notes (id INTEGER)", "PRAGMA user_version = 1"), "version 1"),
        ((*VERSION_1, "CREATE TABLE notes (id INTEGER)"), "version 1"),
        (("CREATE TABLE memories (id INTEGER PRIMARY KEY, words TEXT)", "PRAGMA user_version = 1"), "version 1"),
        (("PRAGMA user_version = 3",), "version 3"),
        ((*VERSION_2, "PRAGMA user_version = 3"), "version 3"),
        (("PRAGMA user_version = 2",), "version 2"),
        ((*VERSION_2, "CREATE TABLE notes (id INTEGER)"), "version 2"),
        ((VERSION_2[0].replace(" UNIQUE", ""), *VERSION_2[1:]), "version 2"),
        ((VERSION_2[0].replace(" REFERENCES memories(id)", ""), *VERSION_2[1:]), "version 2"),
        ((VERSION_2[0].replace("source TEXT NOT NULL", "source TEXT"), *VERSION_2[1:]), "version 2"),
        (VERSION_1[:1], "version 0"),
        (("PRAGMA user_version = -1",), "version -1"),
    ],
)
def test_unknown_file_is_refused_and_left_as_it_is(file: Path, statements: Sequence[str], version: str) -> None:
    made(file, *statements)
    before = file.read_bytes()
    with pytest.raises(SchemaError, match=f"^{version} "):
        open_file(file, StepClock())
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == [file.name]


@pytest.mark.req("R109")
def test_what_is_no_database_is_refused(file: Path) -> None:
    file.write_bytes(b"My passport number is P1234567. " * 100)
    with pytest.raises(Permanent, match="not a sound database"):
        open_file(file, StepClock())


@pytest.mark.req("R109")
def test_file_that_is_refused_is_closed(file: Path) -> None:
    made(file, "PRAGMA journal_mode = WAL", *VERSION_2, "PRAGMA user_version = 3")
    with pytest.raises(SchemaError, match=r"^version 3 "):
        open_file(file, StepClock())
    assert [path.name for path in file.parent.iterdir()] == [file.name], "the last connection takes the log with it"


@pytest.mark.req("R115")
def test_version_2_of_another_program_is_taken_over_with_its_rows_and_gives_no_id_again(file: Path) -> None:
    rows = [(*ROW, None, None), (8, "alice", None, EATS_FISH, TURN_12, ROW[5], "2027-01-01T00:00:00Z", 7)]
    record = "INSERT INTO deletions VALUES (1, 'alice', '[9, 12]', 'user request', '2026-10-02T08:00:00+00:00')"
    made(file, *VERSION_2, record, rows=rows)
    with in_file(file) as chains:
        assert [v.id for v in chains.store.history(ALICE, 7)] == [7, 8]
        assert [record.memory_ids for record in chains.store.deletions(ALICE)] == [(9, 12)]
        assert chains.store.remember(ALICE, "user", PASSPORT, TURN_6) == 13
        assert chains.store.forget(ALICE, 7, "user request") == [7, 8]
    assert told(file)[0] == 2


def test_what_another_program_adds_to_a_file_of_ours_belongs_to_the_default_tenant(file: Path) -> None:
    with in_file(file):
        pass
    made(file, rows=[(*ROW, None, None)])
    with in_file(file) as chains:
        assert chains.ids(ALICE, FOOD_QUESTION) == [7]


@pytest.mark.parametrize("statements", [VERSION_1, VERSION_2], ids=["version-1", "version-2"])
def test_old_file_is_cleaned_of_what_was_deleted_before_it_came(file: Path, statements: Sequence[str]) -> None:
    secret = "P1234567 " * 200
    with raw(file) as connection:
        connection.execute("PRAGMA secure_delete = OFF")
        assert connection.execute("PRAGMA secure_delete").fetchone() == (0,)
        for statement in statements:
            connection.execute(statement)
        row = "INSERT INTO memories (user_id, text, source, created_at) VALUES ('alice', ?, 'turn-1', ?)"
        connection.executemany(row, [(text, ROW[5]) for text in (*[secret] * 100, DIET)])
        connection.execute("DELETE FROM memories WHERE text = ?", (secret,))
    assert file.read_bytes().count(secret.encode()) > 50, "there before"
    with in_file(file) as chains:
        assert chains.ids(ALICE, FOOD_QUESTION) == [101]
        assert not holds(file, "P1234567")


def test_old_file_that_is_in_use_is_left_until_it_can_be_cleaned(file: Path) -> None:
    made(file, "PRAGMA journal_mode = WAL", *VERSION_1, rows=[ROW])
    with raw(file) as reader:
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM memories").fetchone() == (1,)
        with pytest.raises(StoreLocked):
            open_file(file, StepClock())
        assert told(file) == (1, ["memories"], [ROW])
    with in_file(file) as chains:
        assert chains.ids(ALICE, FOOD_QUESTION) == [7]


def test_file_of_ours_is_not_cleaned_whenever_it_is_opened(file: Path) -> None:
    with in_file(file) as chains:
        memory_id = chains.store.remember(ALICE, "user", "x" * 2000, "y" * 2000)
        for _ in range(9):
            memory_id = chains.store.correct(ALICE, memory_id, "x" * 2000, "y" * 2000)
        chains.store.forget(ALICE, memory_id, "user request")
        (free,) = chains.rows("PRAGMA freelist_count")
    assert free > (0,)
    with in_file(file) as chains:
        assert chains.rows("PRAGMA freelist_count") == [free]
