"""Copies that are not as they should be, or not as we make them: refused, or rewritten as they are."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from adapters.backup.errors import NotAsListed
from adapters.backup.looking import looking
from orchestrator import Erased, ErrorCode, Permanent, Seen, StoreUnreachable
from tests.integration.backup_harness import (
    ANNA,
    BERTA,
    RENEWED,
    SUBJECT,
    Stage,
    backups,
    in_wal_mode,
    sql,
)

__all__ = ["backups"]

# What later versions of the source database brought, taken back; chains came with none.
TO_VERSION_1: Final = (
    "DROP INDEX facts_expiring",
    "DROP TABLE record_prints",
    "DROP TABLE revocation_left",
    "DROP INDEX facts_of_user",
    "DROP TABLE memory_tenants",
    "DROP TABLE deletion_tenants",
    "DROP TABLE memories",
    "DROP TABLE deletions",
    "DROP TABLE chain_schema",
    "PRAGMA user_version = 1",
)


def test_copy_that_is_seen_missing_is_absent_and_one_with_a_log_left_behind_is_not(backups: Stage) -> None:
    first, second = backups.take(), backups.take()
    found = backups.found(backups.revoked())
    backups.path(first).unlink()
    backups.path(second).unlink()
    backups.path(second).with_name(second.file + "-wal").write_bytes(b"what was not yet moved " * 99)
    answer = replace(found, targets=found.targets[:1]), replace(found, targets=found.targets[1:])
    assert backups.erase(answer[0]) == Erased(already_absent=1)
    with pytest.raises(NotAsListed):
        backups.erase(answer[1])
    assert backups.look(found) == Seen(inconclusive=True)


def test_disk_that_is_away_is_not_taken_for_one_without_copies(tmp_path: Path, backups: Stage) -> None:
    backups.take()
    found = backups.found(backups.revoked())
    away = backups.copies_folder.rename(tmp_path / "away")
    backups.copies_folder.touch()
    for call in (backups.erase, backups.look):
        with pytest.raises(StoreUnreachable):
            call(found)
    backups.copies_folder.unlink()
    away.rename(backups.copies_folder)
    assert backups.erase(found).erased == 1


def damage(path: Path) -> None:
    with sql(path) as copy:
        copy.execute("UPDATE facts SET confirmed = 0")


def no_database(path: Path) -> None:
    path.write_text("This is no database. " * 500)


def another_database(path: Path) -> None:
    path.unlink()
    with sql(path) as other:
        other.execute("CREATE TABLE notes (text TEXT)")


def link(path: Path) -> None:
    path.symlink_to(path.rename(path.parent.parent / "elsewhere.db"))


@pytest.mark.parametrize("harm", [damage, no_database, another_database, link])
def test_file_that_is_not_the_one_of_the_manifest_is_refused_and_left_as_it_is(
    backups: Stage, harm: Callable[[Path], None]
) -> None:
    bad, good = backups.take(), backups.take()
    order = backups.revoked()
    found = backups.found(order)
    harm(backups.path(bad))
    before = backups.path(bad).read_bytes()
    with pytest.raises(Permanent) as caught:
        backups.erase(found)
    assert caught.value.code is ErrorCode.STORE_REFUSED
    assert backups.path(bad).read_bytes() == before
    assert backups.listed(bad) == bad, "nothing is written over what the manifest says"
    assert "acme/anna" not in backups.told(good), "the others were rewritten all the same"
    assert backups.look(replace(found, known=order.known)) != Seen()
    assert [line for line in backups.log.lines if "copy.refused" in line]


def test_one_bad_copy_keeps_no_other_order_of_its_batch(backups: Stage) -> None:
    bad = backups.take()
    theirs = backups.found(backups.revoked(SUBJECT, BERTA))
    good = backups.take()
    mine = backups.found(backups.revoked())
    mine = replace(mine, targets=tuple(target for target in mine.targets if target.id == good.handle))
    damage(backups.path(bad))
    assert backups.backup.erase([theirs, mine]) == [Erased(), Erased(erased=1)]
    with pytest.raises(NotAsListed):
        backups.erase(theirs)


def test_file_without_an_entry_is_named_never_edited_and_keeps_the_job_waiting(backups: Stage) -> None:
    copy = backups.take()
    stray = backups.copies_folder / "older" / "anna.db"
    stray.parent.mkdir()
    shutil.copy(backups.path(copy), stray)
    before = stray.read_bytes()
    found = backups.found(backups.revoked())
    assert len(found.targets) == 2
    assert "anna" not in repr([target.id for target in found.targets]), "a file's name may be anybody's"
    assert backups.erase(found) == Erased(erased=1)
    assert stray.read_bytes() == before
    assert backups.look(found).remaining == 1
    stray.unlink()
    assert backups.erase(found) == Erased(already_absent=2)
    assert backups.look(found) == Seen()


def test_copy_of_an_older_schema_is_rewritten_as_it_is(backups: Stage) -> None:
    copy = backups.take()
    with sql(backups.path(copy)) as old:
        for statement in TO_VERSION_1:
            old.execute(statement)
    backups.as_listed(copy)
    found = backups.found(backups.revoked())
    assert backups.erase(found) == Erased(erased=1)
    assert backups.rows(copy, "SELECT tenant, user_id FROM facts ORDER BY 1") == [("acme", "berta"), ("other", "anna")]
    assert backups.rows(copy, "PRAGMA user_version") == [(1,)]
    assert backups.look(found) == Seen()


def test_copy_with_a_log_is_looked_at_and_rewritten_with_it(backups: Stage) -> None:
    copy = in_wal_mode(backups)
    order = backups.revoked(SUBJECT, ANNA)
    found = backups.found(order)
    assert backups.look(found).remaining == 1
    assert backups.erase(found) == Erased(erased=1)
    told = backups.told(copy)
    assert "acme/anna" not in told
    assert [row[7] for row in told["acme/berta"] if row[4] == "late"] == [RENEWED], "what the log alone held is kept"
    assert backups.is_as_listed(copy)
    assert backups.debris() == []
    assert backups.look(replace(found, known=order.known)) == Seen()


def test_copy_that_wants_a_log_and_has_none_is_looked_at_without_making_one(backups: Stage) -> None:
    copy = backups.take()
    with sql(backups.path(copy)) as other:
        assert other.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    backups.as_listed(copy)
    found = backups.found(backups.revoked())
    assert backups.look(found).remaining == 1
    assert backups.debris() == []
    assert backups.erase(found) == Erased(erased=1)
    assert backups.rows(copy, "PRAGMA journal_mode") == [("delete",)]
    assert backups.debris() == []


def test_trigger_that_keeps_a_row_is_no_success(backups: Stage) -> None:
    copy = backups.take()
    found = backups.found(backups.revoked())
    with sql(backups.path(copy)) as changed:
        changed.execute("CREATE TRIGGER keep BEFORE DELETE ON facts BEGIN SELECT RAISE(IGNORE); END")
    backups.as_listed(copy)
    content = backups.path(copy).read_bytes()
    with pytest.raises(NotAsListed):
        backups.erase(found)
    assert backups.path(copy).read_bytes() == content
    assert backups.debris() == []


def test_manifest_names_what_a_refused_copy_holds_since_its_log_was_folded_into_it(backups: Stage) -> None:
    """Otherwise nothing could be taken out of it any more: the file would be no one's that the manifest names."""
    with sql(backups.folder / "memory.db") as live:
        live.execute("CREATE TRIGGER keep BEFORE DELETE ON facts BEGIN SELECT RAISE(IGNORE); END")
        bad = in_wal_mode(backups)
        live.execute("DROP TRIGGER keep")
    good = backups.take()
    found = backups.found(backups.revoked())
    assert [target.id for target in found.targets] == [bad.handle, good.handle], "the one that is refused comes first"
    with pytest.raises(NotAsListed):
        backups.erase(found)
    assert "acme/anna" not in backups.told(good)
    assert backups.is_as_listed(good)
    assert backups.listed(bad).sha256 != bad.sha256, "the log was folded in"
    assert backups.is_as_listed(bad)
    assert backups.debris() == []


def test_disk_that_is_full_says_nothing_of_the_copy_that_is_read(backups: Stage) -> None:
    copy = backups.take()
    with sql(backups.folder / "work.db") as work:
        work.execute("CREATE TABLE held (text TEXT)")
        work.execute("PRAGMA max_page_count = 2")
        with pytest.raises(sqlite3.OperationalError, match="full"), looking(backups.path(copy)):
            work.execute("INSERT INTO held VALUES (hex(zeroblob(65536)))")


def test_source_that_is_away_is_waited_for_before_anything_is_taken_out(backups: Stage) -> None:
    """Only the source says which records are meant where a request names nothing by itself."""
    copy = backups.take()
    found = backups.found(backups.revoked())
    before = backups.path(copy).read_bytes()
    backups.memory.close()
    away = (backups.folder / "memory.db").rename(backups.folder / "away.db")
    with pytest.raises(StoreUnreachable):
        backups.erase(found)
    assert backups.path(copy).read_bytes() == before
    away.rename(backups.folder / "memory.db")
    assert backups.erase(found) == Erased(erased=1)
