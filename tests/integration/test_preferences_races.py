"""Events that are accepted and completed at the same time, by threads and by processes of their own."""

from __future__ import annotations

import multiprocessing
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
import sqlalchemy as sa

from adapters.memory.preferences import Applying, Current, Operation
from adapters.memory.preferences import state as applied
from orchestrator import Scope
from tests.integration.preferences_harness import (
    DATA,
    EVENTS,
    GATE,
    KEY,
    READER_A,
    Hands,
    event_of,
    hands,
    open_adapter,
    url,
)

__all__ = ["hands", "url"]

DELETED = Current(sequence=45, operation=Operation.DELETE)
RUNS, PROCESS_RUNS, PATIENCE = 100, 12, 30
THREE = (10, 20, 45)


@pytest.mark.req("R87")
def test_events_that_arrive_together_get_sequences_of_their_own(hands: Hands) -> None:
    hands.adapter.store.register_source(READER_A, "said")

    def record(n: int) -> int:
        return hands.log.prefer(READER_A, KEY, f"answer {n}", "said").sequence

    with ThreadPoolExecutor(6) as pool:
        sequences = list(pool.map(record, range(30)))
    assert sorted(sequences) == list(range(2, 32))
    (last,) = hands.rows("SELECT value FROM preference_events WHERE sequence = 31")
    assert hands.log.state(READER_A, KEY) == Current(sequence=31, operation=Operation.SET, value=last[0])
    assert hands.log.replay(READER_A) == 0


@pytest.mark.req("R86")
def test_hundred_parallel_runs_end_at_the_newest(hands: Hands) -> None:
    scopes = prepare(hands, RUNS)
    barrier = threading.Barrier(len(THREE))

    def complete(sequence: int) -> list[Applying]:
        outcomes = []
        for scope in scopes:
            barrier.wait(PATIENCE)
            outcomes.append(hands.log.apply(scope, sequence))
        return outcomes

    with ThreadPoolExecutor(len(THREE)) as pool:
        outcomes = list(pool.map(complete, THREE))
    assert [hands.log.state(scope, KEY) for scope in scopes] == [DELETED] * RUNS
    assert set(outcomes[2]) == {Applying.APPLIED}
    assert {*outcomes[0], *outcomes[1]} <= {Applying.APPLIED, Applying.REJECTED}


def complete_in_a_process(url: str, sequence: int, barrier: threading.Barrier) -> None:
    """Apply one of the events in every run, together with the other processes."""
    with closing(open_adapter(url)) as adapter:
        for n in range(PROCESS_RUNS):
            barrier.wait(PATIENCE)
            adapter.preferences.apply(of_run(n), sequence)


@pytest.mark.req("R86")
def test_processes_that_complete_together_end_at_the_newest(hands: Hands) -> None:
    scopes = prepare(hands, PROCESS_RUNS)
    spawn = multiprocessing.get_context("spawn")
    barrier = spawn.Barrier(len(THREE))
    started = [spawn.Process(target=complete_in_a_process, args=(hands.url, sequence, barrier)) for sequence in THREE]
    for process in started:
        process.start()
    for process in started:
        process.join(PATIENCE)
    assert [process.exitcode for process in started] == [0, 0, 0]
    assert [hands.log.state(scope, KEY) for scope in scopes] == [DELETED] * PROCESS_RUNS


@pytest.mark.req("R86")
@pytest.mark.parametrize(("first", "second"), [(45, 20), (20, 45), (45, 10)])
def test_statement_itself_compares_and_writes_without_the_lock_of_the_tenant(
    hands: Hands, first: int, second: int
) -> None:
    """The second completion runs while the first is written and not committed yet."""
    hands.accept(DATA["events"])
    begun = threading.Event()

    def move(connection: sa.Connection, sequence: int) -> Applying:
        return applied.apply(connection, GATE, READER_A, event_of(EVENTS[sequence]))

    def late() -> Applying:
        with hands.engine.connect() as connection, connection.begin():
            begun.set()
            return move(connection, second)

    with ThreadPoolExecutor(1) as pool:
        with hands.engine.connect() as connection, connection.begin():
            assert move(connection, first) is Applying.APPLIED
            called = pool.submit(late)
            after_start(hands, begun)
            assert not called.done()
        outcome = called.result(PATIENCE)
    assert outcome is (Applying.APPLIED if second > first else Applying.REJECTED)
    assert hands.log.state(READER_A, KEY).sequence == max(first, second)


def after_start(hands: Hands, begun: threading.Event) -> None:
    """Wait until the other transaction waits: on SQLite for its beginning, on PostgreSQL for the row."""
    if hands.engine.dialect.name == "sqlite":
        assert not begun.wait(0.2)
        return
    assert begun.wait(PATIENCE)
    while not hands.rows("SELECT 1 FROM pg_locks WHERE NOT granted"):
        threading.Event().wait(0.01)


def prepare(hands: Hands, runs: int) -> list[Scope]:
    """Accept the events of the first reader once for each run, each in a tenant of its own."""
    events = [EVENTS[sequence] for sequence in THREE]
    for n in range(runs):
        hands.accept(events, of_run(n).tenant)
    return [of_run(n) for n in range(runs)]


def of_run(n: int) -> Scope:
    return Scope(tenant=f"run-{n}", user="reader-A")
