"""Chains are revoked and erased as a whole or not at all, and whoever waited for that is refused afterwards."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa

from orchestrator import EraseOrder, GateRefused, Refusal
from tests.integration.memory_chains_harness import (
    ALICE,
    PASSPORT,
    RENEWED,
    SUBJECT,
    Source,
    by_memory,
    everything,
    place,
    source,
)

__all__ = ["source"]
TABLES = ("memories", "memory_tenants", "facts", "fact_revisions", "source_revocations", "revocation_targets")
MORE = ("revocation_left", "source_tombstones", "deletions", "deletion_tenants")


def told(source: Source) -> int:
    first = source.tell(ALICE, PASSPORT, "turn-1")
    source.correct(ALICE, first, RENEWED, "turn-2")
    source.tell(ALICE, "Eats fish.", "turn-1")
    source.adapter.store.put(place(ALICE), "seat", "aisle", "turn-1")
    return first


def everything_in(source: Source) -> list[list[tuple[Any, ...]]]:
    return [sorted(source.rows(f"SELECT * FROM {table}"), key=repr) for table in (*TABLES, *MORE)]  # noqa: S608


def breaking_off(source: Source, at: int, call: Callable[[], object]) -> bool:
    """Run a call that breaks off at its `at`-th statement or commit; tell whether it came so far."""
    passed = [0]

    def step(*_: object) -> None:
        passed[0] += 1
        if passed[0] == at:
            raise ConnectionResetError

    engine = source.adapter._engine
    for name in ("before_cursor_execute", "commit"):
        sa.event.listen(engine, name, step)
    try:
        with suppress(ConnectionResetError):
            call()
    finally:
        for name in ("before_cursor_execute", "commit"):
            sa.event.remove(engine, name, step)
    return passed[0] >= at


@pytest.mark.parametrize("verb", ["revoke", "erase"])
def test_fault_at_any_statement_leaves_nothing_and_a_repeat_does_it_all(source: Source, verb: str) -> None:
    first = told(source)
    orders = [source.order(by_memory(first), everything(ALICE)), source.order(SUBJECT, everything(ALICE))]
    if verb == "erase":
        orders = [replace(order, targets=source.revoke(order).targets) for order in orders]
    call: Callable[[Sequence[EraseOrder]], object] = getattr(source.adapter, verb)
    before, at = everything_in(source), 1
    while breaking_off(source, at, lambda: call(orders)):
        assert everything_in(source) == before, f"what was done by statement {at} is undone"
        at += 1
    assert at > 8
    assert everything_in(source) != before
    done = everything_in(source)
    call(orders)
    assert everything_in(source) == done


def test_memory_that_waits_for_the_revocation_is_refused(source: Source) -> None:
    first = told(source)
    revoked, waiting = threading.Event(), threading.Event()
    answers: list[int | Refusal] = []

    def hold_open(_connection: sa.Connection) -> None:
        if not revoked.is_set():
            revoked.set()
            assert waiting.wait(10)

    def remember() -> None:
        assert revoked.wait(10)
        threading.Timer(0.3, waiting.set).start()  # the revocation commits while the other waits for its lock
        try:
            answers.append(source.adapter.chains.remember(ALICE, "user", PASSPORT, "turn-1"))
        except GateRefused as error:
            answers.append(error.refusal)

    sa.event.listen(source.adapter._engine, "commit", hold_open)
    thread = threading.Thread(target=remember)
    thread.start()
    source.revoke(source.order(by_memory(first), everything(ALICE)))
    thread.join()
    assert answers == [Refusal.TOKEN_TOMBSTONED]


def test_revocation_that_waits_for_a_correction_takes_it_with_the_chain(source: Source) -> None:
    first = told(source)
    written, waiting = threading.Event(), threading.Event()

    def hold_open(_connection: sa.Connection) -> None:
        if not written.is_set():
            written.set()
            assert waiting.wait(10)

    def correct() -> None:
        source.adapter.chains.correct(ALICE, first + 1, "None any more.", "turn-2")

    sa.event.listen(source.adapter._engine, "commit", hold_open)
    thread = threading.Thread(target=correct)
    thread.start()
    assert written.wait(10)
    threading.Timer(0.3, waiting.set).start()
    answer = source.revoke(source.order(by_memory(first), everything(ALICE)))
    thread.join()
    assert [t.version for t in answer.targets] == [first, first + 1, first + 3]
