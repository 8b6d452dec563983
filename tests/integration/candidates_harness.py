"""A memory store on either database, opened as an application opens it, and the hands of a test on it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pytest
import sqlalchemy as sa
import structlog

from adapters.memory import MemoryAdapter, MemoryStore
from adapters.memory.candidates import Candidate, Candidates, Rule
from adapters.memory.tables import metadata, source_epoch
from orchestrator import AdapterContext, EraseOrder, Gate, Keyring, Scope, Selector, SelectorKind
from tests.postgres import Server, new_database

A: Final = Scope(tenant="tenant-a", user="user-1", project="agent-research")
USER_2: Final = Scope(tenant="tenant-a", user="user-2", project="agent-research")
TENANT_B: Final = Scope(tenant="tenant-b", user="user-1", project="agent-research")
NOW: Final = datetime(2026, 11, 1, tzinfo=UTC)
EXTRACTOR: Final = "extractor-7"
YES: Final = "user-message-43"
# One ring for every process of a test.
GATE: Final = Gate(Keyring(current="tk-1", keys={"tk-1": b"k" * 32}))
DATABASES: Final = ("sqlite", "postgresql")


@dataclass
class Hands:
    at: datetime = NOW

    def now(self) -> datetime:
        return self.at


@dataclass
class Place:
    """One source database. A second one that is opened on its URL is another process's."""

    url: str
    clock: Hands
    adapter: MemoryAdapter
    rules: Mapping[str, Rule] = field(default_factory=dict)

    @property
    def store(self) -> MemoryStore:
        return self.adapter.store

    @property
    def candidates(self) -> Candidates:
        return Candidates(self.adapter.store._engine, GATE, self.clock, self.rules)

    @property
    def engine(self) -> sa.Engine:
        return self.adapter.store._engine

    def hear(self, scope: Scope, source: str, kind: str = "user_message") -> str:
        """Register a source that is new."""
        if not self.store.knows_source(scope, source):
            self.store.register_source(scope, source, kind=kind)
        return source

    def tell(self, scope: Scope, key: str, value: str, source: str = "user-message-42") -> int:
        return self.store.put(scope, key, value, self.hear(scope, source), user_statement=True)

    def propose(
        self,
        scope: Scope = A,
        *,
        key: str = "language",
        value: str = "en",
        source: str = "user-message-42",
        by: str = EXTRACTOR,
        expires: float = math.inf,
    ) -> Candidate:
        named = source if scope == A else f"{scope.tenant}/{scope.user}/{source}"
        self.hear(scope, named)
        return self.candidates.propose(scope, key, value, named, proposed_by=by, expires=expires)

    def values(self, scope: Scope = A) -> dict[str, str]:
        return {fact.key: fact.value for fact in self.store.current(scope)}

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Read by hand, past all that the library does."""
        with closing(sa.create_engine(self.url, poolclass=sa.NullPool).connect()) as connection:
            return [tuple(row) for row in connection.exec_driver_sql(query)]

    def execute(self, *statements: str) -> None:
        with sa.create_engine(self.url, poolclass=sa.NullPool).begin() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement)

    def forget(self, kind: SelectorKind, value: str | None = None, scope: Scope = A) -> None:
        """Revoke and erase as a job does."""
        deadline = self.clock.now() + timedelta(seconds=60)
        selector = Selector(kind=kind, value=value)
        order = EraseOrder(job=uuid4(), unit=uuid4(), key="k", scope=scope, selector=selector, deadline=deadline)
        (answer,) = self.adapter.revoke([order])
        self.adapter.erase([replace(order, targets=answer.targets)])


def open_adapter(url: str, clock: Hands | None = None) -> MemoryAdapter:
    context = AdapterContext(clock=clock or Hands(), gate=GATE, log=structlog.get_logger(), state_dir=Path())
    return MemoryAdapter(context, url=url)


@pytest.fixture(scope="module")
def shared_url(postgres_server: Server) -> str:
    """Give one database of PostgreSQL for the tests of a file: making one takes longer than most of these."""
    return new_database(postgres_server)


@pytest.fixture(params=DATABASES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Give an empty database of either kind."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'm.db'}"
        return
    made = str(request.getfixturevalue("shared_url"))
    yield made
    with sa.create_engine(made, poolclass=sa.NullPool).begin() as connection:
        for table in reversed(metadata.sorted_tables):
            if table is not source_epoch:
                connection.execute(table.delete())


@pytest.fixture
def rules() -> Mapping[str, Rule]:
    """Give the rules of a test, which a file may say otherwise."""
    return {}


@pytest.fixture
def place(url: str, rules: Mapping[str, Rule]) -> Iterator[Place]:
    with opened(url, rules) as made:
        yield made


@contextmanager
def opened(url: str, rules: Mapping[str, Rule] | None = None) -> Iterator[Place]:
    clock = Hands()
    with closing(open_adapter(url, clock)) as adapter:
        assert adapter.store.current(A) == []
        yield Place(url, clock, adapter, rules or {})


def asked(place: Place) -> Candidate:
    """Tell zh-CN, let a program propose en, and let the user say yes in a message."""
    place.tell(A, "language", "zh-CN", "user-message-41")
    candidate = place.propose()
    place.hear(A, YES)
    return candidate
