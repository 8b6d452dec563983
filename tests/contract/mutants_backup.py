"""Mutants of the backups: a copy holds others as well, and what is taken out of it may lie on elsewhere."""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

import pytest

from adapters.backup import erase as erasing
from adapters.backup.manifest import Manifest
from adapters.backup.named import Records
from orchestrator import Erased, EraseOrder, Gate, Seen, Target
from tests.contract.backups import BackupUnderTest
from tests.contract.mutation import Orders, opened, override

FEW: Final = 10
"""Copies that the mutant of a part of a page erases: each is a file that is written anew."""
_ONE: Final = "tenant = ? AND fact_id = ? AND version = ?"


def backup_soft_delete(store: BackupUnderTest) -> None:
    """Leave the record in the copy, under names that no path of the adapter looks for."""
    _in_place(store, f"UPDATE facts SET user_id = '~' || user_id, fact_id = '~' || fact_id WHERE {_ONE}")  # noqa: S608


def backup_edited_in_place(store: BackupUnderTest) -> None:
    """Delete in the copy itself, and do not write it anew: its bytes stay in the file."""
    _in_place(store, f"DELETE FROM facts WHERE {_ONE}")  # noqa: S608 - a condition of ours


def backup_wipe_everyone(store: BackupUnderTest) -> None:
    """Empty all copies with those of the targets."""
    erase = store.adapter.erase

    def mutant(orders: Orders) -> Sequence[Erased]:
        answers = erase(orders)
        if any(answer.erased for answer in answers):
            for path in store.copies():
                with opened(path) as copy:
                    copy.execute("DELETE FROM facts")
        return answers

    override(store.adapter, erase=mutant)


def backup_dropped(store: BackupUnderTest) -> None:
    """Take the whole copy away instead of the record, and with it everybody else's only copy."""

    def mutant(orders: Orders) -> Sequence[Erased]:
        return [_counted(o, {t for t in o.targets if _drop(store, t)}) for o in orders]

    override(store.adapter, erase=mutant)


def backup_prefix_delete(store: BackupUnderTest) -> None:
    """Erase by a pattern: everything of every user whose name begins the same."""
    _after_erase(store, "DELETE FROM facts WHERE tenant = :tenant AND user_id LIKE :user || '%'")


def backup_tenant_blind(store: BackupUnderTest) -> None:
    """Erase by id alone, whoever's tenant it is."""
    _after_erase(store, "DELETE FROM facts WHERE fact_id = :item AND version = :version")


def backup_kept_elsewhere(store: BackupUnderTest) -> None:
    """Keep the copy as it was in a folder beside, which no look walks through."""
    erase, trash = store.adapter.erase, store.disk.with_name("trash")

    def mutant(orders: Orders) -> Sequence[Erased]:
        trash.mkdir(exist_ok=True)
        for target in (target for order in orders for target in order.targets):
            if (path := store.copy_of(target)).exists():
                shutil.copy(path, trash)
        return erase(orders)

    override(store.adapter, erase=mutant)


def backup_kept_inside(store: BackupUnderTest) -> None:
    """Keep what was taken out in a table of another name, in the same copy."""
    _before_erase(store, f"CREATE TABLE IF NOT EXISTS facts_archive AS SELECT * FROM facts WHERE {_ONE}")  # noqa: S608 - as above


def backup_text_in_the_source(store: BackupUnderTest) -> None:
    """Say in the list of sources, which stays in the copy, what was taken out."""
    _before_erase(store, f"UPDATE accepted_sources SET kind = (SELECT value FROM facts WHERE {_ONE})")  # noqa: S608


def backup_not_offered(store: BackupUnderTest) -> None:
    """Take the copy out of the manifest, so that nobody is offered it, and leave the file."""

    def mutant(orders: Orders) -> Sequence[Erased]:
        answers = []
        for order in orders:
            with _alone(store) as known:
                listed = {copy.handle for copy in known.copies}
                store.adapter._folder.save(known.without(target.id for target in order.targets))
            answers.append(_counted(order, {target for target in order.targets if target.id in listed}))
        return answers

    override(store.adapter, erase=mutant)


def backup_looks_by_the_manifest(store: BackupUnderTest) -> None:
    """Look into the copies that the manifest names, as an erase does, and into no other file."""

    def listed(_orders: Orders) -> Iterable[str]:
        with _alone(store) as known:
            return [copy.file for copy in known.copies]

    _looking_into(store, listed)


def backup_late_copies_unseen(store: BackupUnderTest) -> None:
    """Look into the copies that were found, and into none that was taken since."""
    _looking_into(store, lambda orders: [store.copy_of(target).name for order in orders for target in order.targets])


def backup_lose(store: BackupUnderTest) -> None:
    """Take a neighbour's records out of all copies."""
    for path in store.copies():
        with opened(path) as copy:
            copy.execute("PRAGMA secure_delete = ON")
            copy.execute("DELETE FROM facts WHERE tenant = 't-2'")


def _before_erase(store: BackupUnderTest, statement: str) -> None:
    """Let a statement take part in the transaction that deletes from a copy."""
    erase, delete = store.adapter.erase, erasing._delete

    def deleting(new: sqlite3.Connection, gate: Gate, tenant: str, records: Records) -> None:
        new.executemany(statement, [(tenant, *fact) for fact in records.facts])
        delete(new, gate, tenant, records)

    def mutant(orders: Orders) -> Sequence[Erased]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(erasing, "_delete", deleting)
            return erase(orders)

    override(store.adapter, erase=mutant)


def _in_place(store: BackupUnderTest, statement: str) -> None:
    """Run a statement in each copy for the record by which it was found, and count what it has changed as erased."""

    def changed(order: EraseOrder, target: Target) -> bool:
        path, item = store.copy_of(target), _record(target)
        if not path.exists() or item is None:
            return False
        with opened(path) as copy:
            copy.execute("PRAGMA secure_delete = OFF")
            return copy.execute(statement, (order.scope.tenant, *item)).rowcount > 0

    def mutant(orders: Orders) -> Sequence[Erased]:
        return [_counted(o, {t for t in o.targets if changed(o, t)}) for o in orders]

    override(store.adapter, erase=mutant)


def _after_erase(store: BackupUnderTest, statement: str) -> None:
    """Erase, run a statement in each copy of an order as well, and count where it has changed something."""
    erase = store.adapter.erase

    def more(order: EraseOrder, target: Target) -> bool:
        path, item = store.copy_of(target), _record(target)
        if not path.exists() or item is None:
            return False
        given = {"tenant": order.scope.tenant, "user": order.scope.user, "item": item[0], "version": item[1]}
        with opened(path) as copy:
            return copy.execute(statement, given).rowcount > 0

    def mutant(orders: Orders) -> Sequence[Erased]:
        answers = []
        for order, answer in zip(orders, erase(orders), strict=True):
            also = sum(more(order, target) for target in order.targets)
            found = min(also, answer.already_absent)
            answers.append(replace(answer, erased=answer.erased + found, already_absent=answer.already_absent - found))
        return answers

    override(store.adapter, erase=mutant)


def _looking_into(store: BackupUnderTest, chosen: Callable[[Orders], Iterable[str]]) -> None:
    verify, folder = store.adapter.verify, store.adapter._folder

    def mutant(orders: Orders) -> Sequence[Seen]:
        some = set(chosen(orders)).intersection(folder.files())
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(folder, "files", lambda: sorted(some))
            return verify(orders)

    override(store.adapter, verify=mutant)


def _drop(store: BackupUnderTest, target: Target) -> bool:
    with _alone(store) as known:
        store.adapter._folder.save(known.without([target.id]))
    there = store.copy_of(target).exists()
    store.copy_of(target).unlink(missing_ok=True)
    return there


@contextmanager
def _alone(store: BackupUnderTest) -> Iterator[Manifest]:
    with store.adapter._folder.alone(time.monotonic() + 5) as known:
        yield known


def _counted(order: EraseOrder, erased: set[Target]) -> Erased:
    return Erased(erased=len(erased), already_absent=len(order.targets) - len(erased))


def _record(target: Target) -> tuple[str, int] | None:
    """Give id and version of the fact by which a copy was found."""
    item, _, version = (target.derived_of or "").removeprefix("fact:").rpartition("@")
    return (item, int(version)) if version else None
