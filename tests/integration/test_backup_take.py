"""Taking copies: whole, of one state, with an entry that nobody loses; and where each stands afterwards."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from adapters.backup import Policy
from adapters.backup.standing import State
from orchestrator import InvalidRequest, StoreUnreachable
from tests.integration.backup_harness import (
    ANNA,
    BERTA,
    DAY,
    PASSPORT,
    RENEWED,
    SEAT,
    Stage,
    adapters_in,
    backups,
    sql,
)

__all__ = ["backups"]

TAKES = """
import sys
from pathlib import Path
from tests.integration.backup_harness import adapters_in
stage = adapters_in(Path(sys.argv[1]))
sys.stdin.readline()
for _ in range(5):
    stage.take()
"""


def test_manifest_says_what_the_copy_is(backups: Stage) -> None:
    copy = backups.take()
    window = backups.take(Policy.WINDOW, days=30)
    assert backups.written() == {
        "schema": "expunge/backup-manifest/1",
        "copies": [
            {
                "sha256": copy.sha256,
                "bytes": backups.path(copy).stat().st_size,
                "handle": copy.handle,
                "file": f"{copy.handle}.db",
                "taken_at": copy.taken_at.isoformat().replace("+00:00", "Z"),
                "policy": "rewrite",
                "source": "memory",
                "positions": {"acme": 2, "other": 1},
            },
            json.loads(window.model_dump_json(exclude_none=True)),
        ],
    }
    assert backups.written()["copies"][1]["keep_until"]
    assert backups.is_as_listed(copy)


def test_copy_holds_what_was_there_when_it_was_taken(backups: Stage) -> None:
    copy = backups.take()
    backups.tell(ANNA, "seat", SEAT, "turn-7")
    later = backups.take()
    tables = [row[0] for row in backups.rows(copy, "SELECT name FROM sqlite_master WHERE type = 'table'")]
    assert {"facts", "memories", "source_tombstones"} <= set(tables)
    for table in tables:
        if table != "sqlite_sequence":
            ours = backups.rows(backups.folder / "memory.db", f"SELECT * FROM {table}")  # noqa: S608 - their own
            assert backups.rows(later, f"SELECT * FROM {table}") == ours  # noqa: S608 - their own
    assert [row[4] for row in backups.told(copy)["acme/anna"]][:1] == ["passport"]
    assert SEAT.encode() not in backups.path(copy).read_bytes()
    assert later.positions == {"acme": 3, "other": 1}


def test_copy_is_taken_while_somebody_writes_and_holds_none_of_what_is_not_committed(backups: Stage) -> None:
    with closing(sqlite3.connect(backups.folder / "memory.db", isolation_level=None)) as writing:
        writing.execute("PRAGMA cache_size = 1")  # what is not committed lies in the log already
        writing.execute("BEGIN IMMEDIATE")
        writing.execute("UPDATE facts SET value = 'half done' || hex(zeroblob(20000))")
        assert b"half done" in (backups.folder / "memory.db-wal").read_bytes()
        copy = backups.take()
        writing.execute("ROLLBACK")
    assert b"half done" not in backups.path(copy).read_bytes()
    assert PASSPORT.encode() in backups.path(copy).read_bytes()


def test_copy_brings_nothing_along_that_was_deleted_in_the_source(backups: Stage) -> None:
    """Pages that a source has freed still hold what lay in them, and a copy page by page takes them over."""
    plain = backups.folder / "plain.db"
    with sql(backups.folder / "memory.db") as live, sql(plain) as page_by_page:
        live.execute("PRAGMA secure_delete = OFF")
        live.execute("CREATE TABLE scratch (text TEXT)")
        live.execute("INSERT INTO scratch VALUES (?)", (RENEWED * 999,))
        live.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        live.execute("DROP TABLE scratch")
        live.backup(page_by_page)
    assert RENEWED.encode() in plain.read_bytes(), "the positive control"
    assert RENEWED.encode() not in backups.path(backups.take()).read_bytes()


def test_copy_is_one_file_that_needs_no_log(backups: Stage) -> None:
    copy = backups.take()
    assert backups.rows(copy, "PRAGMA journal_mode") == [("delete",)]
    assert backups.debris() == []


def test_two_copies_of_one_instant_have_handles_of_their_own(backups: Stage) -> None:
    first, second = (backups.backup.take() for _ in range(2))
    assert second.handle == f"{first.handle}-2"
    backups.path(first).unlink()
    assert backups.backup.take().handle == f"{first.handle}-3", "the entry of a file that is missing stays its own"
    assert len(backups.written()["copies"]) == 3


def test_processes_that_take_copies_at_once_lose_no_entry(backups: Stage) -> None:
    backups.take()
    command = [sys.executable, "-c", TAKES, str(backups.folder)]
    root = Path(__file__).parents[2]
    running = [subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
    for process in running:
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
    found = backups.found(backups.revoked())
    while any(process.poll() is None for process in running):
        backups.erase(found)  # a third one rewrites the manifest meanwhile
    told = [process.communicate()[1].decode() for process in running]
    assert [process.returncode for process in running] == [0, 0], told
    seen = backups.backup.copies()
    assert (len(seen.copies), seen.unlisted) == (11, 0)
    assert all(backups.is_as_listed(copy) and state is State.KEPT for copy, state in seen.copies)
    assert backups.debris() == []


@pytest.mark.parametrize(
    ("policy", "until"),
    [
        (Policy.WINDOW, None),
        (Policy.REWRITE, DAY),
        (Policy.WINDOW, -DAY),
        (Policy.WINDOW, timedelta(0)),
    ],
)
def test_time_that_does_not_fit_the_policy_is_refused(backups: Stage, policy: Policy, until: timedelta | None) -> None:
    keep_until = None if until is None else backups.clock.now() + until
    with pytest.raises(InvalidRequest, match=r"keep-until|time to come"):
        backups.backup.take(policy, keep_until)
    assert not backups.manifest.exists()


def test_time_without_an_offset_is_refused(backups: Stage) -> None:
    naive = datetime.fromisoformat("2099-01-31T03:00:00")
    with pytest.raises(InvalidRequest, match="offset"):
        backups.backup.take(Policy.WINDOW, naive)


def test_source_that_is_none_is_refused_by_the_name_of_the_option(tmp_path: Path) -> None:
    stage = adapters_in(tmp_path, source="nowhere.db")
    with pytest.raises(InvalidRequest, match="source"):
        stage.backup.take()
    with sql(tmp_path / "nowhere.db") as other:
        other.execute("CREATE TABLE notes (text TEXT)")
    with pytest.raises(InvalidRequest, match="another database"):
        stage.backup.take()
    assert stage.backup.copies().copies == ()
    assert stage.debris() == []
    stage.memory.close()


def test_manifest_elsewhere_has_to_be_there_before_anybody_looks(tmp_path: Path) -> None:
    """A disk that is not mounted must not look like one without copies."""
    folder, disk = tmp_path / "state", tmp_path / "disk"
    folder.mkdir()
    stage = adapters_in(folder, manifest=disk / "manifest.json")
    stage.everybody()
    order = stage.revoked()
    for call in (stage.found, stage.erase, stage.look):
        with pytest.raises(StoreUnreachable):
            call(order)
    with pytest.raises(StoreUnreachable):
        stage.backup.take()
    disk.mkdir()
    with pytest.raises(StoreUnreachable, match="expunge backup take"):
        stage.found(order)
    stage.backup.take()
    assert len(stage.found(order).targets) == 1
    stage.memory.close()


@pytest.mark.case(128)
def test_each_copy_is_listed_with_its_end_and_with_what_is_seen_of_it(backups: Stage) -> None:
    kept, missing = backups.take(), backups.take()
    overdue, gone = backups.take(Policy.WINDOW, days=1), backups.take(Policy.WINDOW, days=1)
    still = backups.take(Policy.WINDOW, days=30)
    backups.path(missing).unlink()
    backups.path(gone).unlink()
    (backups.copies_folder / "older.db").write_bytes(backups.path(kept).read_bytes())
    backups.clock.at += 2 * DAY
    seen = backups.backup.copies()
    states = {copy.handle: (state, copy.keep_until) for copy, state in seen.copies}
    assert states == {
        kept.handle: (State.KEPT, None),
        missing.handle: (State.MISSING, None),
        overdue.handle: (State.OVERDUE, overdue.keep_until),
        gone.handle: (State.GONE, gone.keep_until),
        still.handle: (State.KEPT, still.keep_until),
    }
    assert seen.unlisted == 1


@pytest.mark.case(126)
def test_copy_says_up_to_where_it_reaches_and_with_which_tombstones(backups: Stage) -> None:
    """What was forgotten by then is in it, as keyed hashes; what came later is told apart by the positions."""
    before = backups.take()
    order = backups.revoked()
    after = backups.take()
    marks = "SELECT kind, mac FROM source_tombstones"
    assert backups.rows(before, marks) == []
    ours = backups.rows(backups.folder / "memory.db", marks)
    assert sorted(backups.rows(after, marks)) == sorted(ours) != []
    assert all(len(mac) == 64 for _, mac in ours)
    (cut_off,) = backups.rows(after, f"SELECT cut_off FROM source_revocations WHERE job = '{order.job}'")  # noqa: S608
    assert cut_off == (before.positions[ANNA.tenant],), "all that the older copy holds of them is up to the cut-off"
    assert BERTA.tenant == ANNA.tenant
