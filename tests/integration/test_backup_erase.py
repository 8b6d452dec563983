"""Taking things out of copies: what was named goes from every copy that may be edited, and all else stays as it was."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from adapters.backup import Policy
from adapters.backup import rewrite as rewriting
from orchestrator import DeadlinePassed, Erased, StoreLocked
from tests.integration.backup_harness import (
    ANNA,
    BERTA,
    ELSEWHERE,
    PASSPORT,
    RENEWED,
    SUBJECT,
    Stage,
    backups,
    sql,
)

__all__ = ["backups"]

PROTECTING = (
    "source_tombstones",
    "source_revocations",
    "revocation_targets",
    "tenant_positions",
    "accepted_sources",
    "source_ancestry",
    "fact_high_water",
    "confirmations",
)


def test_person_goes_from_every_copy_and_nobody_else_notices(backups: Stage) -> None:
    copies = [backups.take(), backups.take()]
    before = [backups.told(copy) for copy in copies]
    found = backups.found(backups.revoked())
    assert backups.erase(found) == Erased(erased=2)
    for copy, told in zip(copies, before, strict=True):
        gone = told.pop("acme/anna")
        assert len(gone) == 2
        assert backups.told(copy) == told
        assert PASSPORT.encode() in backups.path(copy).read_bytes(), "the neighbours' own words are there"
        assert backups.is_as_listed(copy)
        assert backups.listed(copy).taken_at == copy.taken_at
    assert backups.debris() == []


def test_bytes_go_with_the_rows(backups: Stage) -> None:
    backups.tell(ANNA, "secret", RENEWED, "turn-7")
    copy = backups.take()
    assert RENEWED.encode() in backups.path(copy).read_bytes()
    backups.erase(backups.found(backups.revoked()))
    left = [
        path for path in backups.copies_folder.rglob("*") if path.is_file() and RENEWED.encode() in path.read_bytes()
    ]
    assert left == []


def test_bytes_that_a_copy_holds_beside_its_rows_go_as_well(backups: Stage) -> None:
    """A copy that another tool has made holds what was deleted in the source, where no row is."""
    backups.tell(ANNA, "secret", RENEWED * 40, "turn-7")
    copy = backups.take()
    with sql(backups.path(copy)) as other:
        other.execute("PRAGMA secure_delete = OFF")
        other.execute("CREATE TABLE scratch AS SELECT value FROM facts")
        other.execute("DROP TABLE scratch")
    backups.as_listed(copy)
    assert backups.path(copy).read_bytes().count(RENEWED.encode()) > 40, "the positive control"
    assert backups.erase(backups.found(backups.revoked())).erased == 1
    assert RENEWED.encode() not in backups.path(copy).read_bytes()


def test_what_protects_stays_in_the_copy(backups: Stage) -> None:
    first = backups.revoked(SUBJECT, BERTA)
    copy = backups.take()
    before = {table: backups.rows(copy, f"SELECT * FROM {table}") for table in PROTECTING}  # noqa: S608 - ours
    assert before["source_tombstones"]
    assert backups.erase(backups.found(first)).erased == 1, "what was revoked and not yet erased lies there as well"
    assert backups.erase(backups.found(backups.revoked())).erased == 1
    assert {table: backups.rows(copy, f"SELECT * FROM {table}") for table in PROTECTING} == before  # noqa: S608 - ours


def test_fingerprints_of_what_goes_go_with_it(backups: Stage) -> None:
    order = backups.revoked()
    with sql(backups.folder / "memory.db") as live:
        for target in order.known:
            live.execute(
                "INSERT INTO record_prints VALUES ('acme', ?, ?, ?, 7, 'mac')", (target.kind, target.id, target.version)
            )
        live.execute("INSERT INTO record_prints VALUES ('other', 'fact', 'another', 1, 7, 'mac')")
    copy = backups.take()
    backups.erase(backups.found(order))
    assert backups.rows(copy, "SELECT tenant, handle FROM record_prints") == [("other", "another")]


def test_copy_is_opened_and_written_once_for_all_orders_of_a_batch(
    backups: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies = [backups.take(), backups.take()]
    orders = [backups.found(backups.revoked(SUBJECT, scope)) for scope in (ANNA, BERTA, ELSEWHERE)]
    moves: list[str] = []
    real = rewriting.put_in_place

    def counting(*parts: object) -> object:
        moves.append("moved")
        return real(*parts)  # type: ignore[arg-type]  # handed on as they came

    monkeypatch.setattr(rewriting, "put_in_place", counting)
    assert backups.backup.erase(orders) == [Erased(erased=2)] * 3
    assert len(moves) == len(copies)
    assert [backups.told(copy) for copy in copies] == [{}, {}]


def test_of_two_orders_that_name_one_record_the_first_erased_it(backups: Stage) -> None:
    backups.take()
    orders = [backups.found(backups.revoked()), backups.found(backups.revoked())]
    assert backups.backup.erase(orders) == [Erased(erased=1), Erased(already_absent=1)]


def test_repeat_says_absent_and_writes_nothing(backups: Stage) -> None:
    copy = backups.take()
    found = backups.found(backups.revoked())
    backups.erase(found)
    paths = (backups.path(copy), backups.manifest)
    before = [(path.stat().st_ino, path.stat().st_mtime_ns) for path in paths]
    assert backups.erase(found) == Erased(already_absent=1)
    assert [(path.stat().st_ino, path.stat().st_mtime_ns) for path in paths] == before


def test_another_tenant_takes_nothing_and_learns_nothing(backups: Stage) -> None:
    copy = backups.take()
    found = backups.found(backups.revoked())
    stranger = replace(found, job=backups.order().job, scope=replace(ANNA, tenant="stranger"))
    before = backups.told(copy)
    assert backups.erase(stranger) == Erased(already_absent=1)
    assert backups.told(copy) == before


def test_nothing_is_moved_into_place_after_the_deadline(backups: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = backups.take()
    found = backups.found(backups.revoked())
    before = backups.path(copy).read_bytes(), backups.manifest.read_bytes()
    real = rewriting.vacuum

    def slow(work: Path) -> None:
        real(work)
        backups.clock.at = found.deadline + timedelta(seconds=1)

    monkeypatch.setattr(rewriting, "vacuum", slow)
    with pytest.raises(DeadlinePassed):
        backups.erase(found)
    assert (backups.path(copy).read_bytes(), backups.manifest.read_bytes()) == before
    assert backups.debris() == []
    for call in (backups.found, backups.erase, backups.look):
        with pytest.raises(DeadlinePassed):
            call(found)


def test_call_after_its_deadline_is_not_begun_where_there_is_no_copy_either(backups: Stage) -> None:
    late = backups.order(deadline=backups.clock.now() - timedelta(seconds=1))
    for call in (backups.found, backups.erase, backups.look):
        with pytest.raises(DeadlinePassed):
            call(late)


def test_folder_that_somebody_else_changes_is_waited_for_and_not_for_ever(backups: Stage) -> None:
    backups.take()
    order = backups.revoked()
    found = backups.found(order)
    hurried = replace(found, deadline=backups.clock.now() + timedelta(milliseconds=50))
    with backups.backup._folder.alone(0):
        for call in (backups.erase, backups.look, backups.found):
            with pytest.raises(StoreLocked):
                call(hurried)
    with backups.backup._folder.shared(0):
        assert backups.look(found).remaining == 1, "readers do not wait for one another"
        with pytest.raises(StoreLocked):
            backups.erase(hurried)


def test_copies_are_for_their_owner_alone(backups: Stage) -> None:
    old = os.umask(0)
    try:
        copy = backups.take()
        backups.erase(backups.found(backups.revoked()))
    finally:
        os.umask(old)
    modes = {path.name: path.stat().st_mode & 0o777 for path in backups.copies_folder.iterdir()}
    assert modes == {copy.file: 0o600, "manifest.json": 0o600}
    assert backups.copies_folder.stat().st_mode & 0o777 == 0o700
    assert Policy.REWRITE is copy.policy
