"""The bytes of copies: which files are looked at, what a scrub does, and what becomes of a marker."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from adapters.backup import BackupAdapter, Policy
from orchestrator import PhysicalStore, Residual, Scrubbed, StoreLocked, StoreUnreachable
from tests.integration.backup_harness import PASSPORT, Stage, backups, in_wal_mode

__all__ = ["backups"]

MARKER, LATER = b"0123456789abcdef" * 2, b"fedcba9876543210" * 2


def names(backups: Stage) -> list[str]:
    with backups.backup.live_files() as files:
        return [path.relative_to(backups.copies_folder).as_posix() for path in files]


def hurried(backups: Stage) -> BackupAdapter:
    """Give an adapter that waits for nobody."""
    return BackupAdapter(replace(backups.backup._context, call_timeout=timedelta(milliseconds=30)))


def test_copies_that_may_be_edited_are_looked_at_with_their_logs_and_others_are_not(backups: Stage) -> None:
    copy = in_wal_mode(backups)
    backups.take(Policy.WINDOW, days=30)
    stray = backups.copies_folder / "older" / "stray.db"
    stray.parent.mkdir()
    stray.write_bytes(b"anything")
    backups.backup.plant(MARKER)
    assert isinstance(backups.backup, PhysicalStore)
    assert sorted(names(backups)) == sorted([copy.file, f"{copy.file}-wal", "older/stray.db", ".marker.db"])


def test_values_are_those_of_every_record_in_the_copies_that_may_be_edited(backups: Stage) -> None:
    backups.take()
    assert list(backups.backup.live_values()).count(PASSPORT.encode()) == 6, "a fact and a memory of each of three"
    backups.take(Policy.WINDOW, days=30)
    broken = backups.take()
    backups.path(broken).write_bytes(b"no database")
    assert list(backups.backup.live_values()).count(PASSPORT.encode()) == 6


def test_scrub_says_that_copies_with_a_window_are_kept(backups: Stage) -> None:
    backups.take()
    assert backups.backup.scrub().residuals == {Residual.FILE_SYSTEM}
    backups.take(Policy.WINDOW, days=30)
    assert backups.backup.scrub().residuals == {Residual.FILE_SYSTEM, Residual.PROVIDER_COPY}


def test_scrub_takes_away_what_a_dead_process_has_left(backups: Stage) -> None:
    copy = backups.take()
    left = backups.copies_folder / ".work-1.db"
    left.write_bytes(backups.path(copy).read_bytes())
    assert backups.look(backups.order()).remaining == 2, "it holds the same"
    assert ".work-1.db" in names(backups)
    assert backups.backup.scrub().outcome is Scrubbed.CLEAN
    assert backups.debris() == []
    assert backups.look(backups.order()).remaining == 1


def test_files_are_kept_still_while_they_are_looked_at(backups: Stage) -> None:
    backups.take()
    found = backups.found(backups.revoked())
    with backups.backup.live_files():
        assert hurried(backups).scrub().outcome is Scrubbed.BUSY
        with pytest.raises(StoreLocked):
            hurried(backups).erase([found])
    with backups.backup._folder.alone(0), ExitStack() as looking, pytest.raises(StoreLocked):
        looking.enter_context(hurried(backups).live_files())
    assert backups.erase(found).erased == 1


def test_marker_takes_the_place_of_an_earlier_one_and_goes_by_its_own_name_alone(backups: Stage) -> None:
    backups.take()
    marker = backups.copies_folder / ".marker.db"
    backups.backup.plant(MARKER)
    backups.backup.plant(LATER)
    assert (MARKER in marker.read_bytes(), LATER in marker.read_bytes()) == (False, True)
    backups.backup.uproot(MARKER)
    assert marker.exists(), "a later scan has put its own there"
    backups.backup.uproot(LATER)
    backups.backup.uproot(LATER)
    assert not marker.exists()


def test_marker_changes_no_copy_and_is_none(backups: Stage) -> None:
    copy = backups.take()
    order = backups.revoked()
    backups.backup.plant(MARKER)
    assert backups.is_as_listed(copy)
    found = backups.found(order)
    assert [target.id for target in found.targets] == [copy.handle]
    backups.erase(found)
    assert not backups.look(found).inconclusive
    assert backups.backup.copies().unlisted == 0


def test_disk_that_is_away_cannot_be_scrubbed_or_looked_at(tmp_path: Path, backups: Stage) -> None:
    backups.take()
    away = backups.copies_folder.rename(tmp_path / "away")
    backups.copies_folder.touch()
    for call in (backups.backup.scrub, lambda: backups.backup.plant(MARKER), lambda: backups.backup.uproot(MARKER)):
        with pytest.raises(StoreUnreachable):
            call()
    with ExitStack() as looking, pytest.raises(StoreUnreachable):
        looking.enter_context(backups.backup.live_files())
    backups.copies_folder.unlink()
    away.rename(backups.copies_folder)


def test_folders_have_names_of_their_own_that_say_nothing_of_where_they_lie(tmp_path: Path, backups: Stage) -> None:
    other = BackupAdapter(backups.backup._context, manifest="elsewhere/manifest.json")
    assert other.file_group != backups.backup.file_group == hurried(backups).file_group
    assert str(tmp_path) not in backups.backup.file_group
