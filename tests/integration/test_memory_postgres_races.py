"""Writers that race on PostgreSQL: one waits for the other, and decides by what the other has left."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
import sqlalchemy as sa
import structlog

from adapters.memory import MemoryAdapter
from adapters.memory.tables import SCHEMA_VERSION
from orchestrator import (
    AdapterContext,
    EraseOrder,
    Gate,
    GateRefused,
    Keyring,
    Refusal,
    Scope,
    Selector,
    SelectorKind,
)

GATE = Gate(Keyring(current="tk-1", keys={"tk-1": b"k" * 32}))
A = Scope(tenant="tenant-a", user="reader-A", project="trips")
B = Scope(tenant="tenant-b", user="reader-B", project="trips")
SUBJECT = Selector(kind=SelectorKind.SUBJECT)
BY_KEY = Selector(kind=SelectorKind.KEY, value="passport")
PASSPORT = "My passport number is P1234567"
PATIENCE = 20


class Now:
    def now(self) -> datetime:
        return datetime.now(UTC)


def open_adapter(url: str) -> MemoryAdapter:
    context = AdapterContext(clock=Now(), gate=GATE, log=structlog.get_logger(), state_dir=Path())
    return MemoryAdapter(context, url=url)


def order(selector: Selector, scope: Scope = A) -> EraseOrder:
    deadline = Now().now() + timedelta(seconds=PATIENCE)
    return EraseOrder(job=uuid4(), unit=uuid4(), key="k", scope=scope, selector=selector, deadline=deadline)


def rows(url: str, query: str) -> list[tuple[object, ...]]:
    with closing(psycopg.connect(url.replace("+psycopg", ""))) as connection:
        return connection.execute(query.encode()).fetchall()


@pytest.fixture
def adapter(postgres_url: str) -> Iterator[MemoryAdapter]:
    with closing(open_adapter(postgres_url)) as made:
        made.store.register_source(A, "turn-6")
        yield made


@pytest.fixture
def other(postgres_url: str) -> Iterator[MemoryAdapter]:
    """Give the adapter of another process: it shares nothing but the database."""
    with closing(open_adapter(postgres_url)) as made:
        assert made.store.current(A) == []
        yield made


def while_open(adapter: MemoryAdapter, first: Callable[[], object], second: Callable[[], object]) -> None:
    """Begin the second call when the first is about to commit, and let that go on once the second waits."""
    begun, goes_on = threading.Event(), threading.Event()

    def hold_open(_connection: sa.Connection) -> None:
        begun.set()
        assert goes_on.wait(PATIENCE)

    def call() -> None:
        assert begun.wait(PATIENCE)
        threading.Timer(0.3, goes_on.set).start()
        second()

    sa.event.listen(adapter._engine, "commit", hold_open)
    with ThreadPoolExecutor(1) as pool:
        called = pool.submit(call)
        first()
        called.result(PATIENCE)
    sa.event.remove(adapter._engine, "commit", hold_open)


@pytest.mark.req("R144")
def test_a_writer_that_waits_for_a_revocation_is_refused(adapter: MemoryAdapter, other: MemoryAdapter) -> None:
    adapter.store.put(A, "passport", PASSPORT, "turn-6")
    answers: list[int | Refusal] = []

    def extract() -> None:
        try:
            answers.append(other.store.put(A, "passport", PASSPORT, "turn-6"))
        except GateRefused as error:
            answers.append(error.refusal)

    while_open(adapter, lambda: adapter.revoke([order(BY_KEY)]), extract)
    assert answers == [Refusal.KEY_TOMBSTONED]
    assert other.store.current(A) == []


def test_a_revocation_that_waits_for_a_writer_takes_what_it_wrote(adapter: MemoryAdapter, other: MemoryAdapter) -> None:
    found: list[int] = []
    while_open(
        adapter,
        lambda: adapter.store.put(A, "passport", PASSPORT, "turn-6"),
        lambda: found.append(len(other.revoke([order(BY_KEY)])[0].targets)),
    )
    assert found == [1]
    assert adapter.store.current(A) == []


def test_a_source_that_waits_for_the_revocation_of_its_ancestor_is_refused(
    adapter: MemoryAdapter, other: MemoryAdapter
) -> None:
    def derive() -> None:
        with pytest.raises(GateRefused):
            other.store.register_source(A, "summary-9", kind="model", derived_from=["turn-6"])

    by_source = Selector(kind=SelectorKind.SOURCE, value="turn-6")
    while_open(adapter, lambda: adapter.revoke([order(by_source)]), derive)


def test_another_tenants_writer_does_not_wait(adapter: MemoryAdapter, other: MemoryAdapter) -> None:
    def work() -> None:
        other.store.register_source(B, "turn-1")
        assert other.store.put(B, "passport", PASSPORT, "turn-1") == 1

    def hold_open(_connection: sa.Connection) -> None:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(work).result(PATIENCE)

    sa.event.listen(adapter._engine, "commit", hold_open, once=True)
    assert adapter.store.put(A, "seat", "aisle", "turn-6") == 1


def keep_writing(url: str, ready: threading.Event, over: threading.Event) -> None:
    """Write the same facts from sources that were accepted before, until it is over."""
    with closing(open_adapter(url)) as adapter:
        ready.set()
        while not over.is_set():
            for n in range(5):
                with suppress(GateRefused):
                    adapter.store.put(A, f"key-{n}", f"{PASSPORT}{n}", "turn-6")


@pytest.mark.req("R144")
def test_a_process_that_writes_all_the_time_leaves_nothing_behind_a_revocation(
    adapter: MemoryAdapter, postgres_url: str
) -> None:
    spawn = multiprocessing.get_context("spawn")
    ready, over = spawn.Event(), spawn.Event()
    process = spawn.Process(target=keep_writing, args=(postgres_url, ready, over))
    process.start()
    try:
        assert ready.wait(PATIENCE)
        while len(adapter.store.current(A)) < 5:
            assert process.is_alive()
        named = [order(Selector(kind=SelectorKind.KEY, value=f"key-{n}")) for n in range(4)]
        for one in named:
            adapter.revoke([one])
        subject = order(SUBJECT)
        adapter.revoke([subject])
        revoked = rows(postgres_url, "SELECT count(*) FROM facts")
    finally:
        over.set()
        process.join(PATIENCE)
    assert process.exitcode == 0
    assert rows(postgres_url, "SELECT count(*) FROM facts") == revoked, "nothing was written after the revocation"
    assert rows(postgres_url, "SELECT count(*) FROM facts WHERE state <> 'revoked' OR active = 1") == [(0,)]
    assert rows(postgres_url, "SELECT DISTINCT value FROM facts") == [("[deleted]",)]


def test_sources_that_arrive_together_get_positions_of_their_own(adapter: MemoryAdapter, other: MemoryAdapter) -> None:
    def register(n: int) -> int:
        return (adapter, other)[n % 2].store.register_source(A, f"source-{n}")

    with ThreadPoolExecutor(6) as pool:
        positions = list(pool.map(register, range(40)))
    assert sorted(positions) == list(range(2, 42))


def test_versions_that_are_written_together_are_given_once(adapter: MemoryAdapter, other: MemoryAdapter) -> None:
    def put(n: int) -> int:
        return (adapter, other)[n % 2].store.put(A, "seat", f"row {n}", "turn-6")

    with ThreadPoolExecutor(6) as pool:
        versions = list(pool.map(put, range(30)))
    assert sorted(versions) == list(range(1, 31))
    assert adapter.store.revision(A) == 30
    assert [fact.version for fact in adapter.store.current(A)] == [30]


def test_an_erasure_and_a_writer_never_give_a_version_twice(adapter: MemoryAdapter, other: MemoryAdapter) -> None:
    adapter.store.put(A, "seat", "aisle", "turn-6")
    asked = order(SUBJECT)
    erase = replace(asked, targets=adapter.find([asked])[0].targets)
    written: list[int] = []
    while_open(
        adapter,
        lambda: adapter.erase([erase]),
        lambda: written.append(other.store.put(A, "seat", "window", "turn-6")),
    )
    assert written == [2]


def test_batches_that_name_tenants_in_opposite_order_wait_and_do_not_cross(
    adapter: MemoryAdapter, other: MemoryAdapter
) -> None:
    def revoke(which: MemoryAdapter, scopes: tuple[Scope, Scope]) -> int:
        return sum(len(which.revoke([order(SUBJECT, scope) for scope in scopes])) for _ in range(15))

    with ThreadPoolExecutor(2) as pool:
        there, back = pool.submit(revoke, adapter, (A, B)), pool.submit(revoke, other, (B, A))
        assert (there.result(PATIENCE), back.result(PATIENCE)) == (30, 30)


def test_processes_that_open_an_empty_database_together_make_its_tables_once(postgres_url: str) -> None:
    start = threading.Barrier(4)

    def first_call(_: int) -> int:
        with closing(open_adapter(postgres_url)) as adapter:
            start.wait(PATIENCE)
            return adapter.store.revision(A)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(first_call, range(4))) == [0] * 4
    assert rows(postgres_url, "SELECT version FROM memory_schema") == [(SCHEMA_VERSION,)]
