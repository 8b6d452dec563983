"""Corrections that run while chains are forgotten or purged: a chain goes as a whole, or is longer by one."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from threading import Barrier

import pytest
import sqlalchemy as sa

from adapters.memory.chains import MemoryNotFound, ProvenanceStore
from adapters.memory.chains.file import engine_of
from orchestrator import ErasureError
from tests.integration.chains_harness import (
    ALICE,
    BOB,
    BOOKING,
    DAY,
    EVERYWHERE,
    TURN_5,
    TURN_12,
    Chains,
    chains_in,
)

chains = chains_in(*EVERYWHERE)
on_sqlite = chains_in("file", "source")
ROUNDS = 12
NEW_BOOKING = "The Lisbon hotel booking code is 9K2M."
REASON = "user request at trip-planning/turn-20"


def at_once(*calls: Callable[[], object]) -> list[Future[object]]:
    barrier = Barrier(len(calls))

    def run(call: Callable[[], object]) -> object:
        barrier.wait()
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return [pool.submit(run, call) for call in calls]


def left(chains: Chains) -> list[int]:
    return [memory_id for (memory_id,) in chains.rows("SELECT id FROM memories ORDER BY id")]


@pytest.mark.req("R116")
def test_correction_during_a_forget_is_refused_or_goes_with_its_chain(chains: Chains) -> None:
    for _ in range(ROUNDS):
        old = chains.store.remember(ALICE, "task", BOOKING, TURN_5)
        corrected, forgotten = at_once(
            lambda: chains.store.correct(ALICE, old, NEW_BOOKING, TURN_12),  # noqa: B023 - done within the round
            lambda: chains.store.forget(ALICE, old, REASON),  # noqa: B023
        )
        gone = [old]
        if corrected.exception() is None:
            gone.append(corrected.result())  # type: ignore[arg-type]  # an id
        else:
            assert isinstance(corrected.exception(), MemoryNotFound)
        assert forgotten.result() == gone
        assert chains.store.deletions(ALICE)[-1].memory_ids == tuple(gone)
        assert left(chains) == []


@pytest.mark.req("R116")
def test_correction_during_a_purge_is_refused_or_keeps_its_chain_and_another_user_is_purged(chains: Chains) -> None:
    for _ in range(ROUNDS):
        old = chains.store.remember(ALICE, "task", BOOKING, TURN_5, 1)
        other = chains.store.remember(BOB, "task", BOOKING, TURN_5, 1)
        chains.clock.advance(2 * DAY)
        corrected, purged = at_once(
            lambda: chains.store.correct(ALICE, old, NEW_BOOKING, TURN_12),  # noqa: B023 - done within the round
            chains.store.purge_expired,
        )
        if corrected.exception() is None:
            assert purged.result() == 1
            assert [v.id for v in chains.store.history(ALICE, old)] == [old, corrected.result()]
            chains.store.forget(ALICE, old, REASON)
        else:
            assert isinstance(corrected.exception(), MemoryNotFound)
            assert purged.result() == 2
        assert chains.store.deletions(BOB)[-1].memory_ids == (other,)
        assert left(chains) == []


@pytest.mark.req("R116")
def test_forget_keeps_writers_out_from_its_reading_to_its_end(on_sqlite: Chains) -> None:
    old = on_sqlite.store.remember(ALICE, "task", BOOKING, TURN_5)
    seen = []

    def try_to_write() -> None:
        with closing(sqlite3.connect(on_sqlite.file, timeout=0, isolation_level=None)) as other:
            with pytest.raises(sqlite3.OperationalError, match="locked") as caught:
                other.execute("BEGIN IMMEDIATE")
            seen.append(caught.value)

    on_sqlite.clock.on_reading = try_to_write
    assert on_sqlite.store.forget(ALICE, old, REASON) == [old]
    assert len(seen) == 1


@contextmanager
def before_the_second_transaction(engine: sa.Engine, do: Callable[[], object]) -> Iterator[None]:
    """Do something between the look for what is due and the first deletion."""
    opened = []

    def note(_connection: sa.Connection) -> None:
        opened.append(1)
        if len(opened) == 2:
            do()

    sa.event.listen(engine, "engine_connect", note)
    try:
        yield
    finally:
        sa.event.remove(engine, "engine_connect", note)


@pytest.fixture
def meanwhile(on_sqlite: Chains) -> Iterator[ProvenanceStore]:
    """Give a store of another process."""
    store = ProvenanceStore(engine_of(on_sqlite.file, secure_delete=True), on_sqlite.clock)
    yield store
    store.close()


@pytest.mark.req("R116")
def test_chain_that_is_corrected_after_it_was_seen_to_be_due_stays_and_others_go(
    on_sqlite: Chains, meanwhile: ProvenanceStore
) -> None:
    old = on_sqlite.store.remember(ALICE, "task", BOOKING, TURN_5, 1)
    other = on_sqlite.store.remember(BOB, "task", BOOKING, TURN_5, 1)
    on_sqlite.clock.advance(2 * DAY)

    correct = partial(meanwhile.correct, ALICE, old, NEW_BOOKING, TURN_12)
    with before_the_second_transaction(on_sqlite.store._engine, correct):
        assert on_sqlite.store.purge_expired() == 1
    assert [v.text for v in on_sqlite.store.history(ALICE, old)] == [BOOKING, NEW_BOOKING]
    assert on_sqlite.store.deletions(ALICE) == []
    assert [record.memory_ids for record in on_sqlite.store.deletions(BOB)] == [(other,)]


@pytest.mark.req("R116")
def test_chain_that_is_forgotten_after_it_was_seen_to_be_due_is_not_recorded_twice(
    on_sqlite: Chains, meanwhile: ProvenanceStore
) -> None:
    old = on_sqlite.store.remember(ALICE, "task", BOOKING, TURN_5, 1)
    on_sqlite.clock.advance(2 * DAY)
    with before_the_second_transaction(on_sqlite.store._engine, lambda: meanwhile.forget(ALICE, old, REASON)):
        assert on_sqlite.store.purge_expired() == 0
    assert [record.reason for record in on_sqlite.store.deletions(ALICE)] == [REASON]


@pytest.mark.req("R116")
def test_chain_that_cannot_be_deleted_keeps_no_other_user_from_being_purged(on_sqlite: Chains) -> None:
    first = on_sqlite.store.remember(ALICE, "task", BOOKING, TURN_5, 1)
    last = on_sqlite.store.correct(ALICE, first, NEW_BOOKING, TURN_12, 1)
    other = on_sqlite.store.remember(BOB, "task", BOOKING, TURN_5, 1)
    on_sqlite.clock.advance(2 * DAY)
    on_sqlite.change(
        f"""CREATE TRIGGER keeps BEFORE DELETE ON memories WHEN old.id = {first}
        BEGIN SELECT RAISE(ABORT, 'no'); END"""
    )
    with pytest.raises(ErasureError):
        on_sqlite.store.purge_expired()
    assert left(on_sqlite) == [first, last], "the whole chain"
    assert on_sqlite.store.deletions(ALICE) == []
    assert [record.memory_ids for record in on_sqlite.store.deletions(BOB)] == [(other,)]
    on_sqlite.change("DROP TRIGGER keeps")
    assert on_sqlite.store.purge_expired() == 2
    assert left(on_sqlite) == []
