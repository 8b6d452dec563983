"""The memory adapter under the contract, on each of its databases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from orchestrator import MAX_PAGE
from orchestrator.testing import AdapterContract, StoreUnderTest
from tests.contract.chained import ChainsUnderTest, chains_in
from tests.contract.keyed import CandidatesUnderTest, EventsUnderTest, candidates_in, events_in
from tests.contract.on_postgres import OnPostgres
from tests.contract.stores import MemoryUnderTest, memory_in


class MemoryOnPostgres(OnPostgres, MemoryUnderTest):
    beside = MemoryUnderTest.beside | {"memory_schema"}

    def __init__(self, folder: Path, url: str) -> None:
        self.database = sa.make_url(url)
        super().__init__(folder, url)

    def insert(self, rows: Sequence[tuple[Any, ...]]) -> None:
        with self.eyes().cursor() as cursor:
            cursor.executemany("INSERT INTO facts VALUES (%s,%s,%s,%s,%s,%s,%s,%s,1,%s,1,'live')", rows)


class ChainsOnPostgres(ChainsUnderTest, MemoryOnPostgres):
    beside = ChainsUnderTest.beside | MemoryOnPostgres.beside


class TestMemory(AdapterContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[StoreUnderTest]:
        with memory_in(tmp_path / "memory") as store:
            yield store


class TestMemoryOnPostgres(AdapterContract):
    @pytest.fixture
    def store(self, tmp_path: Path, postgres_url: str) -> Iterator[StoreUnderTest]:
        store = MemoryOnPostgres(tmp_path / "memory", postgres_url)
        with closing(store.adapter), closing(store):
            yield store


class TestMemoryWithChains(AdapterContract):
    """Of law 5 a chain of a page and one version more: a longer one lies on more pages of the same kind."""

    sizes = (MAX_PAGE + 1,)

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[StoreUnderTest]:
        with chains_in(tmp_path / "memory") as store:
            yield store


class TestMemoryWithChainsOnPostgres(AdapterContract):
    sizes = (MAX_PAGE + 1,)

    @pytest.fixture
    def store(self, tmp_path: Path, postgres_url: str) -> Iterator[StoreUnderTest]:
        store = ChainsOnPostgres(tmp_path / "memory", postgres_url)
        with closing(store.adapter), closing(store):
            yield store


class EventsOnPostgres(EventsUnderTest, MemoryOnPostgres):
    """The same records in the other database."""


class CandidatesOnPostgres(CandidatesUnderTest, MemoryOnPostgres):
    """As above."""


class TestMemoryWithEvents(AdapterContract):
    """Of law 5 a page and one more, as with chains."""

    sizes = (MAX_PAGE + 1,)

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[StoreUnderTest]:
        with events_in(tmp_path / "memory") as store:
            yield store


class TestMemoryWithEventsOnPostgres(AdapterContract):
    sizes = (MAX_PAGE + 1,)

    @pytest.fixture
    def store(self, tmp_path: Path, postgres_url: str) -> Iterator[StoreUnderTest]:
        store = EventsOnPostgres(tmp_path / "memory", postgres_url)
        with closing(store.adapter), closing(store):
            yield store


class TestMemoryWithCandidates(AdapterContract):
    sizes = (MAX_PAGE + 1,)

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[StoreUnderTest]:
        with candidates_in(tmp_path / "memory") as store:
            yield store


class TestMemoryWithCandidatesOnPostgres(AdapterContract):
    sizes = (MAX_PAGE + 1,)

    @pytest.fixture
    def store(self, tmp_path: Path, postgres_url: str) -> Iterator[StoreUnderTest]:
        store = CandidatesOnPostgres(tmp_path / "memory", postgres_url)
        with closing(store.adapter), closing(store):
            yield store
