"""What a SQLite file keeps of deleted rows, and that a scrub leaves nothing of it: row by row of what was measured."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from orchestrator import Residual
from orchestrator.domain.contract import Scrubbed
from orchestrator.scan.sqlite import scrub
from tests.integration.residue_harness import Example, filled, left

INDEXED = ("CREATE TABLE facts (id INTEGER PRIMARY KEY, value TEXT)", "CREATE INDEX by_value ON facts (value)")
BLANK = "UPDATE facts SET value = '[deleted]' WHERE id = ?"
LONG: Mapping[str, Any] = {"length": 5000, "count": 24}
# What is in the file, and which step of the sequence may not be left out of it.
LEAVES: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "rows": ({}, "vacuum"),
    "rows, FAST": ({"secure": "FAST", "page": 512}, "vacuum"),
    "rows, blanked": ({"delete": BLANK}, "vacuum"),
    "text index": ({"schema": INDEXED}, "vacuum"),
    "text index, FAST": ({"schema": INDEXED, "secure": "FAST", "page": 512}, "vacuum"),
    "text index, blanked": ({"schema": INDEXED, "delete": BLANK}, "vacuum"),
    "overflow pages of 512": ({**LONG, "page": 512}, "vacuum"),
    "overflow pages of 4096": ({**LONG, "page": 4096}, "vacuum"),
    "overflow pages, FAST": ({**LONG, "secure": "FAST"}, "vacuum"),
    "TRUNCATE": ({"journal": "TRUNCATE"}, "vacuum"),
    "PERSIST": ({"journal": "PERSIST"}, "the end of the journal"),
    "WAL": ({"journal": "WAL"}, "vacuum"),
    "WAL, FAST": ({"journal": "WAL", "secure": "FAST", "page": 512}, "vacuum"),
    "WAL, secure": ({"journal": "WAL", "secure": "1"}, "checkpoint"),
    "WAL, overflow pages": ({"journal": "WAL", "secure": "1", **LONG}, "checkpoint"),
}


@pytest.mark.case(114)
@pytest.mark.parametrize("name", LEAVES)
def test_deleted_values_are_in_the_files_until_the_whole_sequence_was_run(tmp_path: Path, name: str) -> None:
    stored, step = LEAVES[name]
    with filled(Example(tmp_path / "m.db", **stored)) as example:
        example.erase()
        before, short = example.copy("before.db"), example.copy("short.db")
        short.by_hand(without=step)
        report = scrub(example.file, wait_ms=0)
        assert (report.outcome, report.residuals) == (Scrubbed.CLEAN, frozenset({Residual.FILE_SYSTEM}))
        found, after_all_but_one, after_all = left(before, short, example)
        assert found > 0
        assert after_all_but_one > 0
        assert after_all == 0


@pytest.mark.case(114)
def test_secure_delete_leaves_nothing_in_a_file_that_was_never_written_to_without_it(tmp_path: Path) -> None:
    with filled(Example(tmp_path / "m.db", secure="1", schema=INDEXED)) as example:
        before = example.copy("before.db")
        example.erase()
        assert left(before, example) == [len(example.gone), 0]


@pytest.mark.case(114)
def test_secure_delete_of_the_eraser_alone_leaves_what_the_application_had_moved(tmp_path: Path) -> None:
    with filled(Example(tmp_path / "m.db")) as example:
        example.churn()
        example.erase(secure="1")
        before, short = example.copy("before.db"), example.copy("short.db")
        short.by_hand(without="vacuum")
        assert scrub(example.file, wait_ms=0).outcome is Scrubbed.CLEAN
        found, after_all_but_one, after_all = left(before, short, example)
        assert (found > 0, after_all_but_one > 0, after_all) == (True, True, 0)


@pytest.mark.case(113)
def test_log_holds_the_values_through_a_vacuum_until_it_is_emptied(tmp_path: Path) -> None:
    with filled(Example(tmp_path / "m.db", journal="WAL", secure="1")) as example:
        example.erase()
        with closing(example.connect()) as database:
            database.execute("VACUUM")
            assert example.left("-wal") == len(example.gone)
            assert database.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()[0] == 0
        assert example.left("-wal") == len(example.gone)
        assert scrub(example.file, wait_ms=0).outcome is Scrubbed.CLEAN
        assert [path.stat().st_size for path in example.files if path.name.endswith("-wal")] == [0]
        assert example.left() == example.left("-shm") == 0


def test_journal_that_others_keep_is_taken_away_and_they_write_on(tmp_path: Path) -> None:
    with filled(Example(tmp_path / "m.db", journal="PERSIST")) as example:
        example.erase()
        assert example.left("-journal") == len(example.gone)
        (application,) = example.application
        application.execute("VACUUM")
        assert example.left("-journal") > 0
        assert scrub(example.file, wait_ms=0).outcome is Scrubbed.CLEAN
        assert [path.name for path in example.files] == ["m.db"]
        application.execute("INSERT INTO facts (value) VALUES ('afterwards')")
        assert example.left() == 0
        assert application.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_neighbours_stay_as_they_are(tmp_path: Path) -> None:
    with filled(Example(tmp_path / "m.db", schema=INDEXED, journal="WAL")) as example:
        example.erase()
        (application,) = example.application
        before = application.execute("SELECT id, value FROM facts ORDER BY id").fetchall()
        assert scrub(example.file, wait_ms=0).outcome is Scrubbed.CLEAN
        assert application.execute("SELECT id, value FROM facts ORDER BY id").fetchall() == before
        assert application.execute("PRAGMA integrity_check").fetchone() == ("ok",)
