"""A process that dies between any two file operations: the copy is whole, and a repeat ends right."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import warnings
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from adapters.backup import Copy
from adapters.backup.manifest import Policy
from orchestrator import Erased, EraseOrder, Seen
from tests.integration.backup_harness import RENEWED, Stage, adapters_in, backups, in_wal_mode

__all__ = ["backups"]

OPERATIONS = ("open", "fsync", "replace", "unlink")
KILLED = 9


def dies_at(number: int, work: Callable[[], object]) -> bool:
    """Do some work in a process that is gone at its n-th file operation; False where it came to its end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads, which have none of our locks
        child = os.fork()
    if child == 0:
        left = number

        def dying(real: Callable[..., Any]) -> Callable[..., Any]:
            def operation(*parts: Any, **more: Any) -> Any:  # noqa: ANN401 - as the real one
                nonlocal left
                left -= 1
                if left == 0:
                    os._exit(KILLED)
                return real(*parts, **more)

            return operation

        for name in OPERATIONS:
            setattr(os, name, dying(getattr(os, name)))
        try:
            work()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in {0, KILLED}
    return code == KILLED


def every_death(backups: Stage, work: Callable[[], object], after: Callable[[], None]) -> int:
    """Let the work die at each of its file operations, each time from the same folder; give how many there are."""
    kept = backups.folder / "kept"
    shutil.copytree(backups.copies_folder, kept)
    number = 1
    while True:
        died = dies_at(number, work)
        after()
        shutil.rmtree(backups.copies_folder)
        shutil.copytree(kept, backups.copies_folder)
        if not died:
            return number - 1
        number += 1


def whole(path: Path) -> list[tuple[Any, ...]]:
    """Read the facts of a copy as whoever restores it now would, log included."""
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as copy:
        assert copy.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return copy.execute("SELECT * FROM facts ORDER BY tenant, fact_id, version").fetchall()


def known_by_its_bytes(backups: Stage, copy: Copy) -> bool:
    """Tell whether the manifest says what the file holds: as it was, or as it was about to be."""
    (entry,) = (entry for entry in backups.written()["copies"] if entry["handle"] == copy.handle)
    holds = hashlib.sha256(backups.path(copy).read_bytes()).hexdigest()
    return holds in {entry["sha256"], entry.get("pending", {}).get("sha256")}


def repeated(backups: Stage, order: EraseOrder, found: EraseOrder, copy: Copy) -> None:
    """Do it again, and hold that all is as if nobody had died."""
    answer = backups.erase(found)
    assert answer in (Erased(erased=1), Erased(already_absent=1))
    assert backups.look(backups.order(job=order.job, known=order.known)) == Seen()
    assert backups.is_as_listed(copy)
    assert backups.debris() == []


@pytest.mark.parametrize("with_log", [False, True])
def test_rewrite_that_dies_anywhere_leaves_the_old_copy_or_the_new_one(backups: Stage, with_log: bool) -> None:  # noqa: FBT001 - a parameter
    copy = in_wal_mode(backups) if with_log else backups.take()
    old = whole(backups.path(copy))
    new = [row for row in old if row[:2] != ("acme", "anna")]
    order = backups.revoked()
    found = backups.found(order)
    seen: list[bool] = []

    def after() -> None:
        told = whole(backups.path(copy))
        assert told in (old, new)
        assert known_by_its_bytes(backups, copy)
        if told == old:
            assert backups.look(found).remaining, "what is still there is never called clean"
        seen.append(told == new)
        repeated(backups, order, found, copy)
        assert whole(backups.path(copy)) == new

    deaths = every_death(backups, lambda: backups.erase(found), after)
    assert deaths > 10, "there were operations to die at"
    assert {*seen} == {False, True}
    assert seen == sorted(seen), "once the new copy is there it stays"


def test_taking_that_dies_anywhere_leaves_a_whole_copy_or_none(backups: Stage) -> None:
    backups.take()
    backups.tell(backups.order().scope, "late", RENEWED, "turn-7")
    before = backups.written()["copies"]
    at = backups.clock.at
    found: list[int] = []

    def after() -> None:
        backups.clock.at = at
        backups.take()  # whoever is alone puts right what the dead one has left
        copies = [copy for copy, _ in backups.backup.copies().copies]
        found.append(len(copies))
        assert backups.written()["copies"][:1] == before
        assert backups.debris() == []
        assert backups.backup.copies().unlisted == 0
        for copy in copies[1:]:
            assert backups.is_as_listed(copy)
            assert RENEWED in {row[6] for row in whole(backups.path(copy))}

    def take() -> None:
        backups.backup.take(Policy.REWRITE)

    assert every_death(backups, take, after) > 8
    assert {*found} == {2, 3}, "some died before their copy was there, and some after"


def test_process_that_dies_does_not_keep_the_folder(backups: Stage) -> None:
    backups.take()
    found = backups.found(backups.revoked())
    assert dies_at(6, lambda: backups.erase(found))
    assert backups.erase(found).erased == 1


def test_stage_of_another_process_sees_the_same_copies(backups: Stage) -> None:
    copy = backups.take()
    again = adapters_in(backups.folder)
    assert [seen.handle for seen, _ in again.backup.copies().copies] == [copy.handle]
    again.memory.close()
