"""Mutants of a store whose records are the rows of one table, in one SQLite file."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from orchestrator import Erased, EraseOrder
from tests.contract.mutants_bytes import scrubs_a_neighbour_away
from tests.contract.mutation import FilesUnderTest, Mutation, Orders, opened, override


class Rows(NamedTuple):
    """The table of the records, its column for a target's id, and all columns that a look goes by: names of ours."""

    table: str
    handle: str
    looked_for: tuple[str, ...]


def mutants_of(rows: Rows) -> dict[str, Mutation]:
    """Name the mutants of a store with such rows."""
    return {
        "soft delete": partial(soft_delete, rows),
        "wipe-everyone": partial(wipe_everyone, rows),
        "prefix delete": partial(prefix_delete, rows),
        "tenant-blind": partial(tenant_blind, rows),
        "copy under a derived key": partial(derived_copy, rows),
        "scrubs a neighbour away": partial(scrubs_a_neighbour_away, lose=partial(_lose, rows)),
    }


def soft_delete(rows: Rows, store: FilesUnderTest) -> None:
    """Keep the rows where no path of the adapter looks."""
    hidden = ", ".join(f"{column} = '~' || {column}" for column in rows.looked_for)
    hide = f"UPDATE {rows.table} SET {hidden} WHERE tenant = ? AND {rows.handle} = ?"  # noqa: S608 - names of ours
    instead_of_erasing(store, hide)


def wipe_everyone(rows: Rows, store: FilesUnderTest) -> None:
    """Erase the table with the targets."""
    _after_erase(store, lambda connection, _: connection.execute(f"DELETE FROM {rows.table}"))  # noqa: S608 - ours


def prefix_delete(rows: Rows, store: FilesUnderTest) -> None:
    """Erase by a pattern: everything of every user whose name begins the same."""
    delete = f"DELETE FROM {rows.table} WHERE tenant = ? AND user_id LIKE ? || '%'"  # noqa: S608 - as above
    _after_erase(store, lambda connection, o: connection.execute(delete, (o.scope.tenant, o.scope.user)))


def tenant_blind(rows: Rows, store: FilesUnderTest) -> None:
    """Erase by id alone, whoever's tenant it is."""
    erase = store.adapter.erase
    delete = f"DELETE FROM {rows.table} WHERE {rows.handle} = ?"  # noqa: S608 - as above

    def mutant(orders: Orders) -> Sequence[Erased]:
        answers = []
        for order, answer in zip(orders, erase(orders), strict=True):
            with opened(store.file) as connection:
                more = sum(connection.execute(delete, (target.id,)).rowcount for target in order.targets)
            answers.append(replace(answer, erased=answer.erased + more, already_absent=answer.already_absent - more))
        return answers

    override(store.adapter, erase=mutant)


def derived_copy(rows: Rows, store: FilesUnderTest) -> None:
    """Keep a copy in a table of another name."""
    erase = store.adapter.erase
    copy = f"""INSERT INTO {rows.table}_archive
        SELECT * FROM {rows.table} WHERE tenant = ? AND {rows.handle} = ?"""  # noqa: S608 - as above

    def mutant(orders: Orders) -> Sequence[Erased]:
        with opened(store.file) as connection:
            connection.execute(
                f"CREATE TABLE IF NOT EXISTS {rows.table}_archive AS SELECT * FROM {rows.table} WHERE 0"  # noqa: S608
            )
            connection.executemany(copy, [(o.scope.tenant, target.id) for o in orders for target in o.targets])
        answers: Sequence[Erased] = erase(orders)
        return answers

    override(store.adapter, erase=mutant)


def instead_of_erasing(store: FilesUnderTest, statement: str) -> None:
    """Run a statement for each target, given tenant and id, and count what it has changed as erased."""

    def mutant(orders: Orders) -> Sequence[Erased]:
        answers = []
        with opened(store.file) as connection:
            for order in orders:
                handles = [(order.scope.tenant, target.id) for target in order.targets]
                changed = sum(connection.execute(statement, handle).rowcount for handle in handles)
                answers.append(Erased(erased=changed, already_absent=len(order.targets) - changed))
        return answers

    override(store.adapter, erase=mutant)


def _after_erase(store: FilesUnderTest, more: Callable[[sqlite3.Connection, EraseOrder], object]) -> None:
    erase = store.adapter.erase

    def mutant(orders: Orders) -> Sequence[Erased]:
        answers: Sequence[Erased] = erase(orders)
        with opened(store.file) as connection:
            for order, answer in zip(orders, answers, strict=True):
                if answer.erased:
                    more(connection, order)
        return answers

    override(store.adapter, erase=mutant)


def _lose(rows: Rows, store: FilesUnderTest) -> None:
    with opened(store.file) as connection:
        connection.execute(f"DELETE FROM {rows.table} WHERE tenant = 't-2'")  # noqa: S608 - as above
