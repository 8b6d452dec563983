"""Two corrections of one version at once, by real threads and by real processes, on each database: one of them wins."""

from __future__ import annotations

import multiprocessing
import sqlite3
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from multiprocessing.synchronize import Barrier as ProcessBarrier
from pathlib import Path
from threading import Barrier
from typing import Final, TypeAlias

import pytest
import sqlalchemy as sa

from adapters.memory import MemoryAdapter, VersionConflict
from tests.integration.candidates_harness import A, open_adapter, shared_url, url

__all__ = ["shared_url", "url"]

ROUNDS: Final = 40
PATIENCE: Final = 60
SOURCES: Final = ("user-message-42", "user-message-43")
Answer: TypeAlias = tuple[bool, int]


@pytest.fixture
def told(url: str) -> str:
    """Give a database in which version 1 of every key is told."""
    with closing(open_adapter(url)) as adapter:
        for source in ("user-message-41", *SOURCES):
            adapter.store.register_source(A, source)
        for number in range(ROUNDS):
            adapter.store.put(A, key(number), "en", "user-message-41")
    return url


def key(number: int) -> str:
    return f"language-{number}"


def correct(adapter: MemoryAdapter, barrier: Barrier | ProcessBarrier, source: str) -> list[Answer]:
    """Correct version 1 of every key, each together with the other; tell whether it won, and the version."""
    answers: list[Answer] = []
    for number in range(ROUNDS):
        barrier.wait(PATIENCE)
        try:
            version = adapter.store.replace(A, key(number), f"by {source}", source, expected_version=1)
            answers.append((True, version))
        except VersionConflict as conflict:
            answers.append((False, conflict.version))
    return answers


def in_a_process(url: str, barrier: ProcessBarrier, source: str, answers: multiprocessing.SimpleQueue[object]) -> None:
    with closing(open_adapter(url)) as adapter:
        answers.put((source, correct(adapter, barrier, source)))


def judge(url: str, answers: Mapping[str, Sequence[Answer]]) -> None:
    one, other = (answers[source] for source in SOURCES)
    assert all({a, b} == {(True, 2), (False, 2)} for a, b in zip(one, other, strict=True))
    with closing(open_adapter(url)) as adapter:
        assert adapter.store.revision(A) == 2 * ROUNDS
        facts = adapter.store.current(A)
    winner = {key(n): SOURCES[0] if one[n][0] else SOURCES[1] for n in range(ROUNDS)}
    assert {fact.key: (fact.version, fact.source, fact.value) for fact in facts} == {
        name: (2, source, f"by {source}") for name, source in winner.items()
    }
    with closing(sa.create_engine(url, poolclass=sa.NullPool).connect()) as connection:
        versions = connection.exec_driver_sql("SELECT version, active, count(*) FROM facts GROUP BY version, active")
        assert sorted(map(tuple, versions)) == [(1, 0, ROUNDS), (2, 1, ROUNDS)]


@pytest.mark.req("R20")
def test_one_of_two_threads_wins_and_the_revision_rises_once(told: str) -> None:
    barrier = Barrier(2)
    with closing(open_adapter(told)) as one, closing(open_adapter(told)) as other, ThreadPoolExecutor(2) as pool:
        called = {
            source: pool.submit(correct, adapter, barrier, source)
            for source, adapter in zip(SOURCES, (one, other), strict=True)
        }
        answers = {source: future.result(PATIENCE) for source, future in called.items()}
    judge(told, answers)


@pytest.mark.req("R20")
def test_one_of_two_threads_on_one_adapter_wins(told: str) -> None:
    barrier = Barrier(2)
    with closing(open_adapter(told)) as adapter, ThreadPoolExecutor(2) as pool:
        called = {source: pool.submit(correct, adapter, barrier, source) for source in SOURCES}
        answers = {source: future.result(PATIENCE) for source, future in called.items()}
    judge(told, answers)


@pytest.mark.req("R20")
def test_one_of_two_processes_wins_and_the_revision_rises_once(told: str) -> None:
    spawn = multiprocessing.get_context("spawn")
    barrier, queue = spawn.Barrier(2), spawn.SimpleQueue()
    processes = [spawn.Process(target=in_a_process, args=(told, barrier, source, queue)) for source in SOURCES]
    for process in processes:
        process.start()
    for process in processes:
        process.join(PATIENCE)
    assert [process.exitcode for process in processes] == [0, 0]
    judge(told, dict(queue.get() for _ in processes))


def test_database_refuses_a_second_version_of_one_number_whoever_writes_it(tmp_path: Path) -> None:
    file = tmp_path / "m.db"
    with closing(open_adapter(f"sqlite:///{file}")) as adapter:
        adapter.store.register_source(A, "user-message-41")
        adapter.store.put(A, "language", "en", "user-message-41")
    with closing(sqlite3.connect(file)) as connection, pytest.raises(sqlite3.IntegrityError):
        connection.execute("INSERT INTO facts SELECT * FROM facts")
