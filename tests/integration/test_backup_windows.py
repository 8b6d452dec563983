"""Copies that cannot be edited: left to their time, looked at all the same, and closed when seen to be gone."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from adapters.backup import Copy, Policy
from adapters.backup.standing import State
from orchestrator import Erased, Seen, WindowStore
from tests.integration.backup_harness import BERTA, DAY, SUBJECT, Stage, backups

__all__ = ["backups"]

SECOND = timedelta(seconds=1)


def scheduled(copy: Copy) -> Erased:
    """Give the answer that leaves a copy to its time."""
    assert copy.keep_until is not None
    return Erased(windows={copy.handle: copy.keep_until})


def test_copy_with_a_window_is_scheduled_and_its_file_stays(backups: Stage) -> None:
    copy = backups.take(Policy.WINDOW, days=30)
    before = backups.path(copy).read_bytes()
    found = backups.found(backups.revoked())
    for _ in range(2):
        assert backups.erase(found) == scheduled(copy)
    assert backups.path(copy).read_bytes() == before


@pytest.mark.req("R132")
def test_window_is_closed_at_its_end_if_the_copy_is_seen_gone_and_not_a_second_before(backups: Stage) -> None:
    copy = backups.take(Policy.WINDOW, days=30)
    assert copy.keep_until is not None
    assert isinstance(backups.backup, WindowStore)
    backups.erase(backups.found(backups.revoked()))
    assert backups.backup.closed([copy.handle]) == [Seen(remaining=1)]
    backups.path(copy).unlink()
    backups.clock.at = copy.keep_until - SECOND
    assert backups.backup.closed([copy.handle]) == [Seen(remaining=1)], "its time is not over"
    backups.clock.at = copy.keep_until
    assert backups.backup.closed([copy.handle]) == [Seen()]


@pytest.mark.req("R132")
@pytest.mark.case(128)
def test_copy_whose_time_is_over_and_that_is_still_there_stays_a_problem(backups: Stage) -> None:
    copy = backups.take(Policy.WINDOW, days=30)
    found = backups.found(backups.revoked())
    backups.clock.at += 31 * DAY
    found = backups.found(backups.revoked())
    assert backups.erase(found) == Erased(), "neither scheduled nor gone"
    assert backups.look(found).remaining == 1
    assert backups.backup.closed([copy.handle]) == [Seen(remaining=1)]
    ((_, state),) = backups.backup.copies().copies
    assert state is State.OVERDUE
    backups.path(copy).unlink()
    assert backups.erase(found) == Erased(already_absent=1)
    assert backups.backup.closed([copy.handle]) == [Seen()]
    ((_, state),) = backups.backup.copies().copies
    assert state is State.GONE


def test_entry_that_was_taken_out_does_not_close_a_copy_whose_file_is_there(backups: Stage) -> None:
    copy = backups.take(Policy.WINDOW, days=30)
    backups.erase(backups.found(backups.revoked()))
    backups.clock.at += 31 * DAY
    backups.write({**backups.written(), "copies": []})
    assert backups.backup.closed([copy.handle]) == [Seen(remaining=1)]
    moved = backups.path(copy).rename(backups.copies_folder / "renamed.db")
    assert backups.backup.closed([copy.handle]) == [Seen(remaining=1)], "another name is not gone"
    moved.unlink()
    assert backups.backup.closed([copy.handle]) == [Seen()]


def test_copy_that_nobody_has_heard_of_is_not_told_to_be_gone(backups: Stage) -> None:
    copy = backups.take()
    assert backups.backup.closed(["unknown", copy.handle]) == [Seen(inconclusive=True), Seen(remaining=1)]
    assert backups.backup.closed([]) == []


def test_open_window_is_left_out_of_a_look_for_the_job_that_scheduled_it_alone(backups: Stage) -> None:
    backups.take(Policy.WINDOW, days=30)
    mine, theirs = backups.found(backups.revoked()), backups.found(backups.revoked(SUBJECT, BERTA))
    assert backups.look(mine).remaining == 1, "it is not scheduled yet"
    backups.erase(mine)
    assert backups.look(mine) == Seen()
    assert backups.backup.verify([mine, theirs]) == [Seen(), Seen(remaining=1)], "another job has scheduled nothing"
    backups.erase(theirs)
    assert backups.look(theirs) == Seen()


def test_copy_beside_an_open_window_is_looked_at(backups: Stage) -> None:
    copies = [backups.take(Policy.WINDOW, days=30), backups.take()]
    found = backups.found(backups.revoked())
    backups.erase(backups.order(targets=found.targets[:1], job=found.job))
    assert backups.look(found).remaining == 1
    answer = backups.erase(found)
    assert (answer.erased, list(answer.windows)) == (1, [copies[0].handle])
    assert backups.look(found) == Seen()


def test_copy_with_a_window_that_came_after_find_is_seen_and_scheduled_in_the_next_round(backups: Stage) -> None:
    backups.take(Policy.WINDOW, days=30)
    order = backups.revoked()
    found = backups.found(order)
    late = backups.take(Policy.WINDOW, days=30)
    backups.erase(found)
    assert backups.look(found).remaining == 1
    again = backups.found(order)
    assert backups.erase(again).windows.keys() == {target.id for target in again.targets} >= {late.handle}
    assert backups.look(again) == Seen()


def test_window_that_has_ended_before_the_look_is_looked_at(backups: Stage) -> None:
    backups.take(Policy.WINDOW, days=30)
    found = backups.found(backups.revoked())
    backups.erase(found)
    backups.clock.at += 31 * DAY
    late = backups.order(targets=found.targets, job=found.job)
    assert backups.look(late).remaining == 1


def test_unreadable_copy_with_an_open_window_goes_with_its_time(backups: Stage) -> None:
    copy = backups.take(Policy.WINDOW, days=30)
    order = backups.revoked()
    backups.path(copy).write_bytes(b"encrypted by the vault " * 99)
    found = backups.found(order)
    assert backups.erase(found) == scheduled(copy)
    assert backups.look(found) == Seen()


def test_book_holds_ids_and_times_alone(backups: Stage) -> None:
    backups.take(Policy.WINDOW, days=30)
    found = backups.found(backups.revoked())
    backups.erase(found)
    book = (backups.copies_folder / ".windows.db").read_bytes()
    assert str(found.job).encode() in book
    assert not [name for name in (b"anna", b"acme", b"passport") if name in book]


def test_what_is_over_is_noted_for_no_job_any_more(backups: Stage) -> None:
    backups.take(Policy.WINDOW, days=1)
    backups.take(Policy.WINDOW, days=90)
    backups.erase(backups.found(backups.revoked()))
    assert len(backups.rows(backups.copies_folder / ".windows.db", "SELECT * FROM scheduled")) == 2
    backups.clock.at += 2 * DAY
    backups.erase(backups.found(backups.revoked(SUBJECT, BERTA)))
    assert len(backups.rows(backups.copies_folder / ".windows.db", "SELECT * FROM scheduled")) == 2


@pytest.mark.parametrize("begun", [b"", None])
def test_book_that_was_never_written_says_nothing(backups: Stage, begun: bytes | None) -> None:
    """Who dies between making the file and filling it leaves it empty."""
    copy = backups.take(Policy.WINDOW, days=30)
    if begun is not None:
        (backups.copies_folder / ".windows.db").write_bytes(begun)
    found = backups.found(backups.revoked())
    assert backups.look(found).remaining == 1
    assert backups.backup.closed([copy.handle]) == [Seen(remaining=1)]
    backups.erase(found)
    assert backups.look(found) == Seen()
    assert json.loads(backups.manifest.read_text())["copies"][0]["policy"] == "window"
