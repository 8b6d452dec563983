"""Looking again: every file in the folder is looked into, by a road of its own."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest

from adapters.backup import verify
from orchestrator import Erased, Seen, Selector, SelectorKind
from tests.integration.backup_harness import (
    ANNA,
    BERTA,
    EVERYWHERE,
    SEAT,
    SUBJECT,
    Stage,
    backups,
    sql,
)

__all__ = ["backups"]


@pytest.mark.case(125)
def test_copy_that_was_taken_between_find_and_erase_is_seen_and_goes_in_the_next_round(backups: Stage) -> None:
    """What is restored from it would bring back what was forgotten."""
    backups.take()
    order = backups.revoked()
    found = backups.found(order)
    backups.take()
    assert backups.erase(found).erased == 1
    looked = replace(found, known=order.known)
    assert backups.look(looked).remaining == 1
    again = backups.found(order)
    assert len(again.targets) == 1
    assert backups.erase(again).erased == 1
    assert backups.look(looked) == Seen()


def test_copy_from_before_the_source_erased_is_seen_by_what_the_source_named_alone(backups: Stage) -> None:
    """An order that names nothing by itself goes by what the source has revoked."""
    backups.take()
    order = backups.revoked()
    expired = replace(order, selector=Selector(kind=SelectorKind.EXPIRED), scope=EVERYWHERE)
    assert backups.look(expired).remaining == 1
    assert backups.look(replace(expired, known=())) == Seen()


def test_each_file_counts_once_for_each_order(backups: Stage) -> None:
    backups.tell(ANNA, "seat", SEAT, "turn-7")
    backups.take()
    backups.take()
    nobody = backups.order(SUBJECT, replace(ANNA, user="nobody"))
    orders = [backups.revoked(), nobody, backups.revoked(SUBJECT, BERTA)]
    assert backups.backup.verify(orders) == [Seen(remaining=2), Seen(), Seen(remaining=2)]


def test_file_without_an_entry_is_looked_into(backups: Stage) -> None:
    copy = backups.take()
    backups.write({**backups.written(), "copies": []})
    assert backups.look(backups.order()).remaining == 1
    deeper = backups.copies_folder / "a" / "b"
    deeper.mkdir(parents=True)
    backups.path(copy).rename(deeper / "c.sqlite")
    assert backups.look(backups.order()).remaining == 1


def test_file_that_is_no_copy_is_never_called_clean(backups: Stage) -> None:
    backups.take()
    backups.erase(backups.found(backups.revoked()))
    assert backups.look(backups.order()) == Seen()
    stray = backups.copies_folder / "older.tar.gz"
    stray.write_bytes(b"packed" * 99)
    assert backups.look(backups.order()) == Seen(inconclusive=True)
    stray.unlink()
    stray.symlink_to(backups.folder / "memory.db")
    assert backups.look(backups.order()) == Seen(inconclusive=True)
    stray.unlink()
    stray.symlink_to(backups.folder)
    assert backups.look(backups.order()) == Seen(inconclusive=True), "a link to a folder is not followed either"
    stray.unlink()
    assert backups.look(backups.order()) == Seen()


def test_what_is_seen_counts_however_much_cannot_be_looked_at(backups: Stage) -> None:
    backups.take()
    (backups.copies_folder / "older.tar.gz").write_bytes(b"packed" * 99)
    assert backups.look(backups.order()) == Seen(remaining=1)


def test_memory_that_names_no_tenant_counts_for_whoever_it_may_be_of(backups: Stage) -> None:
    copy = backups.take()
    found = backups.found(backups.revoked())
    with sql(backups.path(copy)) as changed:
        changed.execute("DELETE FROM memory_tenants")
        changed.execute("DELETE FROM facts WHERE user_id = 'anna'")
    assert backups.look(replace(found, targets=())).remaining == 1
    assert backups.look(backups.order(SUBJECT, replace(ANNA, user="nobody"))) == Seen()


def test_copy_in_which_the_owner_was_changed_is_seen_by_the_record_that_find_had_named(backups: Stage) -> None:
    copy = backups.take()
    found = backups.found(backups.revoked())
    with sql(backups.path(copy)) as changed:
        changed.execute("UPDATE facts SET user_id = 'nobody:' || user_id")
        changed.execute("DELETE FROM memory_tenants")
        changed.execute("DELETE FROM memories")
    assert backups.look(found).remaining == 1
    assert backups.look(replace(found, targets=())) == Seen(), "nothing else tells"


def test_order_under_another_owner_takes_nothing_and_does_not_say_that_it_was_absent(backups: Stage) -> None:
    copy = backups.take()
    found = backups.found(backups.revoked())
    wrong = replace(found, job=backups.order().job, scope=replace(ANNA, user="nobody"))
    before = backups.told(copy)
    assert backups.erase(wrong) == Erased()
    assert backups.told(copy) == before


def test_look_shares_no_statement_with_find_and_erase() -> None:
    tree = ast.parse(Path(verify.__file__).read_text())
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not modules & {f"adapters.backup.{name}" for name in ("named", "find", "erase", "looking", "revoked")}
