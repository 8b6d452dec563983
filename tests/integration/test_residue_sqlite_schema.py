"""What else of a schema keeps deleted values: text indexes, samples, tables of other kinds; and where files lie."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain.contract import Scrubbed
from orchestrator.scan.sqlite import kept_still, scrub
from tests.integration.residue_harness import Example, filled, left, scanned, value

OPTIONS = {row[0] for row in sqlite3.connect(":memory:").execute("PRAGMA compile_options")}
FTS5 = "CREATE VIRTUAL TABLE {} USING fts5(value, content='', tokenize='unicode61')"
# An index of words without the text beside it: whatever is found lies in the index itself.
WORDS: Mapping[str, Any] = {
    "schema": [FTS5.format("words")],
    "insert": "INSERT INTO words (rowid, value) VALUES (?, ?)",
    "length": 64,
}
UNWORD = "INSERT INTO words (words, rowid, value) VALUES ('delete', ?, ?)"
FACTS = "CREATE TABLE facts (id INTEGER PRIMARY KEY, value TEXT)"
OTHERS: Mapping[str, Mapping[str, Any]] = {
    "AUTOINCREMENT": {"schema": ["CREATE TABLE facts (id INTEGER PRIMARY KEY AUTOINCREMENT, value TEXT)"]},
    "WITHOUT ROWID": {"schema": ["CREATE TABLE facts (id INTEGER, value TEXT PRIMARY KEY) WITHOUT ROWID"]},
    "generated columns": {
        "schema": [
            FACTS[:-1] + ", virtually TEXT AS ('v' || value) VIRTUAL, twice TEXT AS (value || 'x') STORED)",
            "CREATE INDEX by_virtual ON facts (virtually)",
        ],
    },
    "partial and expression indexes": {
        "schema": [FACTS, "CREATE INDEX by_lower ON facts (lower(value)) WHERE id > 10"],
    },
    "auto_vacuum": {"schema": ["PRAGMA auto_vacuum = FULL", "VACUUM", FACTS]},
    "UTF-16le": {"encoding": "UTF-16le"},
    "UTF-16be": {"encoding": "UTF-16be"},
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_tables_indexes_and_encodings_keep_nothing_after_a_scrub(tmp_path: Path, name: str) -> None:
    with filled(Example(tmp_path / "m.db", page=512, **OTHERS[name])) as example:
        example.erase()
        before = example.copy("before.db")
        assert scrub(example.file, wait_ms=0).outcome is Scrubbed.CLEAN
        found, after = left(before, example)
        assert (found > 0, after) == (True, 0)


@pytest.mark.case(112)
@pytest.mark.parametrize("kind", ["fts3", "fts4", "fts5"])
@pytest.mark.parametrize("journal", ["DELETE", "WAL"])
def test_words_stay_in_a_full_text_index_through_a_vacuum_until_it_is_optimized(
    tmp_path: Path, journal: str, kind: str
) -> None:
    table = {**WORDS, "schema": [f"CREATE VIRTUAL TABLE words\nUSING {kind.upper()}(value)"]}
    stored = {**table, "delete": "DELETE FROM words WHERE rowid = ?"}
    with filled(Example(tmp_path / "m.db", secure="1", journal=journal, **stored)) as example:
        example.erase()
        before, short = example.copy("before.db"), example.copy("short.db")
        short.by_hand(without="optimize")
        assert scrub(example.file, wait_ms=0).outcome is Scrubbed.CLEAN
        assert left(before, short, example) == [len(example.gone), len(example.gone), 0]


@pytest.mark.case(112)
def test_index_without_content_and_under_a_strange_name_is_optimized_and_a_vocabulary_is_left_alone(
    tmp_path: Path,
) -> None:
    stored = {**WORDS, "schema": [FTS5.format('"it\'s ""words"""')]}
    stored["insert"] = 'INSERT INTO "it\'s ""words""" (rowid, value) VALUES (?, ?)'
    with filled(Example(tmp_path / "m.db", **stored)) as example:
        (application,) = example.application
        application.execute("""CREATE VIRTUAL TABLE terms USING fts5vocab('it''s "words"', 'row')""")
        undo = 'INSERT INTO "it\'s ""words""" ("it\'s ""words""", rowid, value) VALUES (\'delete\', ?, ?)'
        application.executemany(undo, [(n, value(n, 64)) for n in example.gone])
        before = example.copy("before.db")
        assert scrub(example.file, wait_ms=0).outcome is Scrubbed.CLEAN
        assert left(before, example) == [len(example.gone), 0]
        assert application.execute("SELECT count(*) FROM terms").fetchone() == (example.count - len(example.gone),)


@pytest.mark.case(116)
def test_index_that_this_process_cannot_open_is_failed_and_never_clean(tmp_path: Path) -> None:
    with filled(Example(tmp_path / "m.db", **WORDS)) as example:
        (application,) = example.application
        application.execute("PRAGMA writable_schema = ON")
        application.execute("UPDATE sqlite_master SET sql = replace(sql, 'unicode61', 'of_the_application')")
        with closing(example.connect()) as database, pytest.raises(sqlite3.OperationalError, match="no such tokenizer"):
            database.execute("SELECT count(*) FROM words").fetchone()
        report = scrub(example.file, wait_ms=0)
        assert (report.outcome, report.residuals) == (Scrubbed.FAILED, frozenset())


@pytest.mark.case(116)
def test_table_of_an_extension_that_is_missing_is_rewritten_and_what_it_still_holds_is_seen(tmp_path: Path) -> None:
    with filled(Example(tmp_path / "m.db", schema=[FACTS])) as example:
        (application,) = example.application
        application.execute("PRAGMA writable_schema = ON")
        virtual = ("table", "vectors", "vectors", "CREATE VIRTUAL TABLE vectors USING vec0(embedding float[4])")
        application.execute("INSERT INTO sqlite_master VALUES (?, ?, ?, 0, ?)", virtual)
        with closing(example.connect()) as database, pytest.raises(sqlite3.OperationalError, match="no such module"):
            database.execute("SELECT count(*) FROM vectors").fetchone()
        # What the extension keeps of deleted rows are live rows of its tables: no scrub takes them away.
        assert scrub(example.file, wait_ms=0).outcome is Scrubbed.CLEAN
        assert example.left() == len(example.gone)


def sample(example: Example) -> None:
    """Leave samples as a build with STAT4 takes them, whatever this build is."""
    (application,) = example.application
    application.execute("CREATE INDEX by_value ON facts (value)")
    application.execute("ANALYZE")
    if "ENABLE_STAT4" not in OPTIONS:
        application.execute("CREATE TABLE sampled (tbl, idx, neq, nlt, ndlt, sample)")
        application.execute("PRAGMA writable_schema = ON")
        application.execute(
            "UPDATE sqlite_master SET name = 'sqlite_stat4', tbl_name = 'sqlite_stat4', "
            "sql = replace(sql, 'sampled', 'sqlite_stat4') WHERE name = 'sampled'"
        )
        application.close()
        example.application[:] = [example.connect()]
        rows = [(value(n, example.length),) for n in example.gone[:8]]
        example.application[0].executemany("INSERT INTO sqlite_stat4 VALUES ('facts', 'by_value', 1, 1, 1, ?)", rows)


def test_samples_of_another_build_stay_until_statistics_are_taken_anew(tmp_path: Path) -> None:
    with filled(Example(tmp_path / "m.db", secure="1")) as example:
        sample(example)
        example.erase()
        before, short = example.copy("before.db"), example.copy("short.db")
        short.by_hand(without="analyze")
        assert scrub(example.file, wait_ms=0).outcome is Scrubbed.CLEAN
        found, after_all_but_one, after_all = left(before, short, example)
        assert (found > 0, after_all_but_one > 0, after_all) == (True, True, 0)


@pytest.mark.skipif("ENABLE_STAT4" not in OPTIONS, reason="this build of SQLite takes no samples (no ENABLE_STAT4)")
def test_samples_of_this_build_stay_until_statistics_are_taken_anew(tmp_path: Path) -> None:
    with filled(Example(tmp_path / "m.db", secure="1")) as example:
        sample(example)
        example.erase()
        short = example.copy("short.db")
        short.by_hand(without="analyze")
        assert scrub(example.file, wait_ms=0).outcome is Scrubbed.CLEAN
        after_all_but_one, after_all = left(short, example)
        assert (after_all_but_one > 0, after_all) == (True, 0)


def test_statistics_are_not_taken_where_there_were_none(tmp_path: Path) -> None:
    with filled(Example(tmp_path / "m.db")) as example:
        assert scrub(example.file, wait_ms=0).outcome is Scrubbed.CLEAN
        (application,) = example.application
        assert application.execute("SELECT name FROM sqlite_master").fetchall() == [("facts",), ("control",)]


@pytest.mark.parametrize(
    "name",
    ["plain.db", "what?.db", "100%.db", "%41.db", "a#b.db", "two words.db", "Zo\u00eb \u4e2d\u6587.db", "a:b&c=d"],
)
def test_file_under_any_name_is_scrubbed_and_looked_at_with_its_log(tmp_path: Path, name: str) -> None:
    folder = tmp_path / f"in {name}"
    folder.mkdir()
    with filled(Example(folder / name, journal="WAL", secure="1")) as example:
        example.erase()
        with kept_still(example.file, wait_ms=0) as files:
            assert files == [example.file, Path(f"{example.file}-wal")]
        assert scrub(example.file, wait_ms=0).outcome is Scrubbed.CLEAN
        with kept_still(example.file, wait_ms=0) as files:
            assert files == [example.file]
        assert {path.name.removeprefix(name) for path in folder.iterdir()} == {"", "-wal", "-shm"}


def test_log_of_a_file_that_is_reached_by_a_link_is_looked_at(tmp_path: Path) -> None:
    with filled(Example(tmp_path / "m.db", journal="WAL", secure="1")) as example:
        link = tmp_path / "link.db"
        link.symlink_to(example.file)
        with kept_still(link, wait_ms=0) as files:
            report = scanned(files, {n: value(n) for n in example.gone})
        assert {file.path.name for file in report.files if file.hits} == {"m.db-wal"}
        example.erase()
        assert scrub(link, wait_ms=0).outcome is Scrubbed.CLEAN
        assert example.left() == 0


def test_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    assert scrub(tmp_path / "m.db", wait_ms=0).outcome is Scrubbed.FAILED
    (tmp_path / "text.db").write_text("no database at all, but a text of some length " * 100)
    assert scrub(tmp_path / "text.db", wait_ms=0).outcome is Scrubbed.FAILED
    assert [path.name for path in tmp_path.iterdir()] == ["text.db"]
