"""A SQLite file that others use, or a disk that is full: never clean, and what is there stays whole."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from orchestrator import StoreLocked, StoreUnreachable
from orchestrator.domain.contract import Scrubbed
from orchestrator.scan.reading import Stamp
from orchestrator.scan.sqlite import kept_still, scrub
from tests.integration.residue_harness import Example, filled, left, scanned, value

JOURNALS = pytest.mark.parametrize("journal", ["DELETE", "WAL"])
WRITES = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)
try:
    database.execute("BEGIN IMMEDIATE")
    database.execute("CREATE TABLE another (x)")
    database.execute("COMMIT")
    print("written")
except sqlite3.OperationalError as error:
    print(error)
"""
HOLDS = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute(sys.argv[2])
print("held", flush=True)
sys.stdin.read()
"""
READS = """
import sqlite3, sys, time
end = time.monotonic() + 2
while time.monotonic() < end:
    database = sqlite3.connect(sys.argv[1], timeout=0)
    count = database.execute("SELECT count(*) FROM facts").fetchone()[0]
    database.close()
    time.sleep(0.05)
print(count)
"""
SCRUBS = """
import resource, sys
from pathlib import Path
from orchestrator.scan.sqlite import scrub
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
print(scrub(Path(sys.argv[1]), wait_ms=0).outcome)
"""


def said_by(code: str, *args: object) -> str:
    done = subprocess.run([sys.executable, "-c", code, *map(str, args)], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@contextmanager
def holding(file: Path, statement: str) -> Iterator[None]:
    """Let another process hold a lock."""
    command = [sys.executable, "-c", HOLDS, str(file), statement]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        try:
            yield
        finally:
            other.communicate("")


@pytest.mark.case(113)
@JOURNALS
def test_half_read_cursor_makes_it_busy_and_the_bytes_stay_until_it_is_read(tmp_path: Path, journal: str) -> None:
    with filled(Example(tmp_path / "m.db", journal=journal)) as example:
        example.erase()
        with closing(example.connect()) as reader:
            cursor = reader.execute("SELECT value FROM facts")
            cursor.fetchone()
            assert scrub(example.file, wait_ms=50).outcome is Scrubbed.BUSY
            before = example.copy("before.db")
            cursor.close()
        assert scrub(example.file, wait_ms=50).outcome is Scrubbed.CLEAN
        found, after = left(before, example)
        assert (found > 0, after) == (True, 0)


@pytest.mark.parametrize(
    ("journal", "statement"),
    [("DELETE", "BEGIN IMMEDIATE"), ("WAL", "BEGIN IMMEDIATE"), ("DELETE", "BEGIN EXCLUSIVE")],
)
def test_writer_in_another_process_is_waited_for_as_long_as_allowed(
    tmp_path: Path, journal: str, statement: str
) -> None:
    with filled(Example(tmp_path / "m.db", journal=journal, secure="0")) as example:
        example.erase()
        with holding(example.file, statement):
            began = time.monotonic()
            assert scrub(example.file, wait_ms=300).outcome is Scrubbed.BUSY
            assert 0.25 < time.monotonic() - began < 3
            before = example.copy("before.db")
        assert scrub(example.file, wait_ms=300).outcome is Scrubbed.CLEAN
        found, after = left(before, example)
        assert (found > 0, after) == (True, 0)


@JOURNALS
def test_disk_that_is_full_is_failed_and_the_database_stays_whole(tmp_path: Path, journal: str) -> None:
    with filled(Example(tmp_path / "m.db", journal=journal, length=1000)) as example:
        example.erase()
        (application,) = example.application
        application.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        # No file may grow beyond this: the journal, or the log, does not fit.
        room = example.file.stat().st_size * 2 // 5
        assert said_by(SCRUBS, example.file, room) == "failed"
        assert application.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert example.left() > 0
        assert said_by(SCRUBS, example.file, 2**40) == "clean"


@JOURNALS
def test_nobody_writes_while_files_are_kept_still_and_readers_change_no_stamp(tmp_path: Path, journal: str) -> None:
    with filled(Example(tmp_path / "m.db", journal=journal)) as example:
        example.erase()
        assert scrub(example.file, wait_ms=0).outcome is Scrubbed.CLEAN
        with kept_still(example.file, wait_ms=0) as files:
            assert files == [example.file]
            before = [Stamp.of(file.stat()) for file in files]
            command = [sys.executable, "-c", READS, str(example.file)]
            reader = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            report = scanned(files, {n: value(n) for n in example.gone})
            assert said_by(WRITES, example.file) == "database is locked"
            assert reader.communicate()[0].strip() == str(example.count - len(example.gone))
            assert [Stamp.of(file.stat()) for file in files] == before
        assert (report.control_found, report.hits, report.files[0].doubt) == (True, {}, None)
        assert said_by(WRITES, example.file) == "written"


def test_log_that_is_not_empty_keeps_its_stamp_while_readers_read(tmp_path: Path) -> None:
    with (
        filled(Example(tmp_path / "m.db", journal="WAL")) as example,
        closing(example.connect()) as reader,
        kept_still(example.file, wait_ms=0) as files,
    ):
        assert files == [example.file, Path(f"{example.file}-wal")]
        before = [Stamp.of(file.stat()) for file in files]
        time.sleep(0.05)
        for _ in range(20):
            assert reader.execute("SELECT count(*) FROM facts").fetchone() == (example.count,)
        assert [Stamp.of(file.stat()) for file in files] == before
        # Moving pages out of the log needs no write lock: a scan tells that the file has changed.
        reader.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        assert Stamp.of(files[0].stat()) != before[0]


def test_scan_in_a_process_of_its_own_keeps_the_lock_that_reading_here_would_lose(tmp_path: Path) -> None:
    with filled(Example(tmp_path / "m.db")) as example, kept_still(example.file, wait_ms=0) as files:
        scanned(files, {n: value(n) for n in example.gone})
        assert said_by(WRITES, example.file) == "database is locked"
        os.close(os.open(files[0], os.O_RDONLY))
        assert said_by(WRITES, example.file) == "written"


def test_files_that_cannot_be_kept_still_are_told(tmp_path: Path) -> None:
    with filled(Example(tmp_path / "m.db")) as example:
        (application,) = example.application
        application.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreLocked), kept_still(example.file, wait_ms=10):
            pass
        application.execute("ROLLBACK")
        with pytest.raises(StoreUnreachable), kept_still(tmp_path / "none.db", wait_ms=10):
            pass
        with pytest.raises(ZeroDivisionError), kept_still(example.file, wait_ms=10):
            raise ZeroDivisionError
        with closing(sqlite3.connect(example.file, timeout=0)) as database:
            database.execute("CREATE TABLE another (x)")
