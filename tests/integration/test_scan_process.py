"""A scan in a process of its own: what it sees comes back whole, and a database that is open here keeps its locks."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from orchestrator import DeadlinePassed, Keyring, Transient
from orchestrator.scan import child
from orchestrator.scan.fingerprints import Fingerprinter
from orchestrator.scan.keys import Keys
from orchestrator.scan.process import ProcessScanner
from orchestrator.scan.report import Doubt, Verdict

SECRET = b"the passport number is P1234567"
MARKER = b"0123456789abcdef0123456789ABCDEF"
KEYS = Keys.derive(Keyring.create())
BY = Fingerprinter(KEYS)
# Another process tries to write: a process that has lost its locks would let it.
WRITE = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)
try:
    database.execute("BEGIN IMMEDIATE")
except sqlite3.OperationalError as error:
    sys.exit(9)
"""


def scanner(seconds: float = 60) -> ProcessScanner:
    return ProcessScanner(KEYS, timedelta(seconds=seconds))


def test_report_comes_back_as_it_was_made(tmp_path: Path) -> None:
    (tmp_path / "found").write_bytes(b"..." + SECRET + MARKER)
    (tmp_path / "packed.gz").write_bytes(b"\x1f\x8b\x08" + bytes(40))
    (tmp_path / "clean").write_bytes(b"nothing of it is in here")
    wanted = {"job": BY.of_bytes(SECRET).rows, "other": BY.of_bytes(b"somebody else's number").rows}
    paths = [tmp_path / "found", tmp_path / "packed.gz", tmp_path / "clean", tmp_path / "missing"]
    report = scanner().files(paths, wanted, MARKER)
    told = {file.path.name: file for file in report.files}
    assert {name: file.verdict for name, file in told.items()} == {
        "found": Verdict.FOUND,
        "packed.gz": Verdict.NOT_SCANNABLE,
        "clean": Verdict.CLEAN,
        "missing": Verdict.INCONCLUSIVE,
    }
    assert told["found"].hits == {"job": len(BY.of_bytes(SECRET).rows)}
    assert told["missing"].doubt is Doubt.VANISHED
    assert report.control_found
    asked = {
        "keys": {"base": f"{KEYS.base:x}", "window": KEYS.window.hex(), "seal": KEYS.seal.hex()},
        "paths": [str(tmp_path / "clean")],
        "wanted": {},
        "marker": MARKER.hex(),
    }
    assert child.answer(asked)["control_found"] is False


def test_held_values_are_told_in_this_process() -> None:
    prints = BY.of_bytes(SECRET).rows
    assert scanner().held([b"..." + SECRET], {"job": prints}) == {"job": frozenset(prints)}


def test_database_that_is_open_here_keeps_its_locks(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("CREATE TABLE t (v TEXT)")
        database.execute("INSERT INTO t VALUES (?)", (SECRET.decode(),))
        database.execute("BEGIN IMMEDIATE")
        report = scanner().files([path], {"job": BY.of_bytes(SECRET).rows}, MARKER)
        assert report.hits["job"] > 0
        write = [sys.executable, "-c", WRITE, str(path)]
        assert subprocess.run(write, check=False).returncode == 9
        # The control: a handle that is opened and closed here takes the lock away with it.
        path.read_bytes()
        assert subprocess.run(write, check=False).returncode == 0


def test_scan_that_takes_too_long_or_ends_badly_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DeadlinePassed):
        scanner(0.001).files([tmp_path], {}, MARKER)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(Transient):
        scanner().files([tmp_path], {}, MARKER)
