"""The control database is a store too: its own files are rewritten without the raw ids of ended jobs."""

from __future__ import annotations

import sqlite3
import threading
import time
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from orchestrator import Keyring
from orchestrator.bootstrap import CONTROL_FILES, Control, open_control
from orchestrator.domain.contract import Scrubbed
from orchestrator.initialise import initialise
from orchestrator.scan.fingerprints import Fingerprinter
from orchestrator.scan.keys import Keys
from orchestrator.scan.process import ProcessScanner
from orchestrator.store.migrate import upgrade
from workers.main import run_dispatcher

NAME = "anna.of.the.seven.hills@example.org"
MARKER = b"0123456789abcdef0123456789ABCDEF"
KEYS = Keys.derive(Keyring.create())


@pytest.fixture
def control(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Control:
    monkeypatch.setenv("EXPUNGE_ENGINE__CONTROL_SCRUB", "200ms")
    initialise(tmp_path)
    made = open_control(tmp_path)
    upgrade(made.database)
    # What an older program has deleted without overwriting it.
    with closing(sqlite3.connect(tmp_path / "orchestrator.db", isolation_level=None)) as database:
        database.execute("PRAGMA secure_delete = OFF")
        database.execute("CREATE TABLE of_before (name TEXT)")
        database.executemany("INSERT INTO of_before VALUES (?)", [(f"{NAME}, entry {n:04}",) for n in range(500)])
        database.execute("DELETE FROM of_before WHERE rowid % 2")
        database.execute("DROP TABLE of_before")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return made


def hits(folder: Path) -> int:
    prints = Fingerprinter(KEYS).of_text(NAME).rows
    files = sorted(folder.glob("orchestrator.db*"))
    return ProcessScanner(KEYS, timedelta(minutes=1)).files(files, {"name": prints}, MARKER).hits.get("name", 0)


@pytest.mark.req("R134")
def test_scrub_leaves_nothing_of_what_was_deleted_in_the_files(control: Control, tmp_path: Path) -> None:
    assert hits(tmp_path) > 0, "the positive control"
    assert control.empty_log()
    assert hits(tmp_path) > 0, "emptying the log alone leaves it"
    assert control.scrub() is Scrubbed.CLEAN
    assert hits(tmp_path) == 0
    with control.database.begin() as connection:
        runs = connection.exec_driver_sql("SELECT store, outcome FROM scrub_runs").all()
        assert connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"
    assert [tuple(run) for run in runs] == [(CONTROL_FILES, "clean")]
    control.close()


def test_reader_makes_it_busy_and_it_is_not_called_clean(control: Control, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "orchestrator.db", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM deletion_jobs").fetchone()
        assert control.scrub() is Scrubbed.BUSY
    assert control.scrub() is Scrubbed.CLEAN
    control.close()


def test_two_dispatchers_scrub_one_after_the_other(control: Control) -> None:
    assert control.ledger.open_scrub(CONTROL_FILES, "another") is not None
    assert control.scrub() is None
    control.close()


def test_dispatcher_scrubs_from_time_to_time(control: Control, tmp_path: Path) -> None:
    over = threading.Event()
    thread = threading.Thread(target=run_dispatcher, args=(control, over))
    thread.start()
    try:
        until = time.monotonic() + 20
        while hits(tmp_path):
            assert time.monotonic() < until, "waited in vain"
            time.sleep(0.2)
    finally:
        over.set()
        thread.join()
        control.close()
