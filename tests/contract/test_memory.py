"""The memory adapter under the contract, on each of its databases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa

from orchestrator import MAX_PAGE
from orchestrator.testing import AdapterContract, StoreUnderTest
from tests.contract.chained import ChainsUnderTest, chains_in
from tests.contract.keyed import CandidatesUnderTest, EventsUnderTest, candidates_in, events_in
from tests.contract.stores import MemoryUnderTest, memory_in


class MemoryOnPostgres(MemoryUnderTest):
    beside = MemoryUnderTest.beside | {"memory_schema"}
    row_id = "ctid::text"

    def __init__(self, folder: Path, url: str) -> None:
        super().__init__(folder, url)
        self._url = sa.make_url(url)

    def run(self, statement: str) -> Sequence[tuple[Any, ...]]:
        with closing(self._connect(str(self._url.database))) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def tables(self) -> set[str]:
        return {row[0] for row in self.run("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")}

    def insert(self, rows: Sequence[tuple[Any, ...]]) -> None:
        with closing(self._connect(str(self._url.database))) as connection, connection.cursor() as cursor:
            cursor.executemany("INSERT INTO facts VALUES (%s,%s,%s,%s,%s,%s,%s,%s,1,%s,1,'live')", rows)

    @contextmanager
    def unreachable(self) -> Iterator[None]:
        """Throw everybody out of the database, and let nobody in."""
        name = self._url.database
        with closing(self._connect("postgres")) as connection:
            connection.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false'.encode())
            connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,))
            try:
                yield
            finally:
                connection.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true'.encode())

    def _connect(self, database: str) -> psycopg.Connection[tuple[Any, ...]]:
        url = self._url.set(drivername="postgresql", database=database)
        return psycopg.connect(url.render_as_string(hide_password=False), autocommit=True)


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
        with closing(store.adapter):
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
        with closing(store.adapter):
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
        with closing(store.adapter):
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
        with closing(store.adapter):
            yield store
