"""Mutants of the chains: what can go wrong with a record of several versions, and with one that is hidden first."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

from orchestrator import Erased, EraseOrder, Seen
from tests.contract.chained import ChainsUnderTest
from tests.contract.mutation import Orders, override


def half_a_chain(store: ChainsUnderTest) -> None:
    """Delete the newer half of each chain, and answer for all of it."""
    erase = store.adapter.erase

    def mutant(orders: Orders) -> Sequence[Erased]:
        with closing(store.sql()) as connection:
            kept = [row for order in orders for row in _older_half(connection, order)]
            answers = erase(orders)
            connection.executemany("INSERT INTO memories VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (row[:8] for row in kept))
            connection.executemany("INSERT INTO memory_tenants VALUES (?, ?, 1)", ((row[0], row[8]) for row in kept))
        return answers

    override(store.adapter, erase=mutant)


def hidden_is_gone(store: ChainsUnderTest) -> None:
    """Look for what is still handed out, and not for what is still there."""
    verify = store.adapter.verify

    def mutant(orders: Orders) -> Sequence[Seen]:
        with closing(store.sql()) as connection:
            (hidden,) = connection.execute(
                "SELECT count(*) FROM memories WHERE id NOT IN (SELECT memory_id FROM memory_tenants WHERE revoked = 0)"
            ).fetchone()
        return [replace(seen, remaining=max(0, seen.remaining - hidden)) for seen in verify(orders)]

    override(store.adapter, verify=mutant)


def tenant_blind_chain(store: ChainsUnderTest) -> None:
    """Erase by the id of the memory alone, as no two have the same, whoever's tenant it is."""
    erase = store.adapter.erase

    def mutant(orders: Orders) -> Sequence[Erased]:
        answers = []
        for order, answer in zip(orders, erase(orders), strict=True):
            ids = [(target.version,) for target in order.targets if target.kind == "memory"]
            with closing(store.sql()) as connection:
                connection.executemany("DELETE FROM memory_tenants WHERE memory_id = ?", ids)
                more = connection.executemany("DELETE FROM memories WHERE id = ?", ids).rowcount
            answers.append(replace(answer, erased=answer.erased + more, already_absent=answer.already_absent - more))
        return answers

    override(store.adapter, erase=mutant)


def record_with_text(store: ChainsUnderTest) -> None:
    """Say in the record of a deletion what was deleted."""
    erase = store.adapter.erase

    def mutant(orders: Orders) -> Sequence[Erased]:
        with closing(store.sql()) as connection:
            texts = " ".join(row[3] for order in orders for row in _rows(connection, order))
            answers = erase(orders)
            connection.execute("UPDATE deletions SET reason = reason || ?", (texts,))
        return answers

    override(store.adapter, erase=mutant)


def _rows(connection: sqlite3.Connection, order: EraseOrder) -> list[tuple[Any, ...]]:
    ids = [target.version for target in order.targets if target.kind == "memory"]
    marks = ", ".join("?" * len(ids))
    joined = "memories JOIN memory_tenants ON memory_id = id"
    return connection.execute(
        f"SELECT memories.*, tenant FROM {joined} WHERE id IN ({marks}) AND tenant = ? ORDER BY id",  # noqa: S608
        (*ids, order.scope.tenant),
    ).fetchall()


def _older_half(connection: sqlite3.Connection, order: EraseOrder) -> list[tuple[Any, ...]]:
    rows = _rows(connection, order)
    return rows[: len(rows) // 2] if len({target.id for target in order.targets}) < len(rows) else []
