"""Mutants of the memory store."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace

from orchestrator import Erased, EraseOrder, Target
from tests.contract.mutation import Orders, override
from tests.contract.stores import MemoryUnderTest


@contextmanager
def _rows(store: MemoryUnderTest) -> Iterator[sqlite3.Connection]:
    with closing(store.sql()) as connection:
        yield connection


def memory_soft_delete(store: MemoryUnderTest) -> None:
    """Keep the rows where no path of the adapter looks."""

    def mutant(orders: Orders) -> Sequence[Erased]:
        store.adapter.find([])  # the file's settings
        answers = []
        with _rows(store) as connection:
            for order in orders:
                hidden = sum(_hide(connection, order, target) for target in order.targets)
                answers.append(Erased(erased=hidden, already_absent=len(order.targets) - hidden))
        return answers

    override(store.adapter, erase=mutant)


def _hide(connection: sqlite3.Connection, order: EraseOrder, target: Target) -> int:
    statement = """UPDATE facts SET active = 0, state = 'deleted', user_id = '~' || user_id, fact_id = '~' || fact_id
        WHERE tenant = ? AND fact_id = ? AND version = ?"""
    return connection.execute(statement, (order.scope.tenant, target.id, target.version)).rowcount


def memory_wipe_everyone(store: MemoryUnderTest) -> None:
    """Erase the table with the targets."""
    _after_erase(store, lambda connection, _: connection.execute("DELETE FROM facts"))


def memory_prefix_delete(store: MemoryUnderTest) -> None:
    """Erase by a pattern: everything of every user whose name begins the same."""
    _after_erase(
        store,
        lambda connection, order: connection.execute(
            "DELETE FROM facts WHERE tenant = ? AND user_id LIKE ? || '%'", (order.scope.tenant, order.scope.user)
        ),
    )


def memory_tenant_blind(store: MemoryUnderTest) -> None:
    """Erase by id alone, whoever's tenant it is."""
    erase = store.adapter.erase

    def mutant(orders: Orders) -> Sequence[Erased]:
        answers = []
        for order, answer in zip(orders, erase(orders), strict=True):
            with _rows(store) as connection:
                more = sum(
                    connection.execute("DELETE FROM facts WHERE fact_id = ?", (target.id,)).rowcount
                    for target in order.targets
                )
            answers.append(replace(answer, erased=answer.erased + more, already_absent=answer.already_absent - more))
        return answers

    override(store.adapter, erase=mutant)


def memory_derived_copy(store: MemoryUnderTest) -> None:
    """Keep a copy in a table of another name."""
    erase = store.adapter.erase

    def mutant(orders: Orders) -> Sequence[Erased]:
        with _rows(store) as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS facts_archive AS SELECT * FROM facts WHERE 0")
            for order in orders:
                for target in order.targets:
                    connection.execute(
                        "INSERT INTO facts_archive SELECT * FROM facts WHERE tenant = ? AND fact_id = ?",
                        (order.scope.tenant, target.id),
                    )
        return erase(orders)

    override(store.adapter, erase=mutant)


def _after_erase(store: MemoryUnderTest, more: Callable[[sqlite3.Connection, EraseOrder], object]) -> None:
    erase = store.adapter.erase

    def mutant(orders: Orders) -> Sequence[Erased]:
        answers = erase(orders)
        with _rows(store) as connection:
            for order, answer in zip(orders, answers, strict=True):
                if answer.erased:
                    more(connection, order)
        return answers

    override(store.adapter, erase=mutant)
