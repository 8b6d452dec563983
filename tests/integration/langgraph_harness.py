"""LangGraph's own store beside ours on both databases, asked by calls that wait and by calls that do not."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import structlog
from langgraph.store.base import BaseStore, Item, Op, SearchItem
from langgraph.store.memory import InMemoryStore

from adapters.langgraph import ScopedStore
from adapters.memory import MemoryAdapter
from adapters.memory.engine import reading
from adapters.memory.tables import facts
from orchestrator import AdapterContext, Gate, Keyring, Scope
from tests.fakes import FakeClock
from tests.postgres import Server, new_database

USER = Scope(tenant="tenant-a", user="user-1", project="agent-research")
START = datetime(2026, 11, 1, tzinfo=UTC)
TURN = "chat/turn-1"


@dataclass
class Asked:
    """A store, asked through the methods of the library, sync or async."""

    store: BaseStore
    waits: bool

    def put(self, namespace: tuple[str, ...], key: str, value: dict[str, Any]) -> None:
        asyncio.run(self.store.aput(namespace, key, value)) if self.waits else self.store.put(namespace, key, value)

    def get(self, namespace: tuple[str, ...], key: str) -> Item | None:
        return asyncio.run(self.store.aget(namespace, key)) if self.waits else self.store.get(namespace, key)

    def delete(self, namespace: tuple[str, ...], key: str) -> None:
        asyncio.run(self.store.adelete(namespace, key)) if self.waits else self.store.delete(namespace, key)

    def search(self, prefix: tuple[str, ...] = (), **how: Any) -> list[SearchItem]:  # noqa: ANN401 - handed on
        return asyncio.run(self.store.asearch(prefix, **how)) if self.waits else self.store.search(prefix, **how)

    def keys(self, prefix: tuple[str, ...] = (), **how: Any) -> list[str]:  # noqa: ANN401 - as above
        return sorted(item.key for item in self.search(prefix, **how))

    def namespaces(self, **how: Any) -> list[tuple[str, ...]]:  # noqa: ANN401 - as above
        if self.waits:
            return asyncio.run(self.store.alist_namespaces(**how))
        return self.store.list_namespaces(**how)

    def batch(self, *ops: Op) -> list[Any]:
        return list(asyncio.run(self.store.abatch(ops)) if self.waits else self.store.batch(ops))

    def value(self, namespace: tuple[str, ...], key: str) -> dict[str, Any] | None:
        item = self.get(namespace, key)
        return None if item is None else item.value


def open_memory(url: str, folder: Path, clock: FakeClock) -> MemoryAdapter:
    context = AdapterContext(clock=clock, gate=Gate(Keyring.create()), log=structlog.get_logger(), state_dir=folder)
    return MemoryAdapter(context, url=url)


def store_of(memory: MemoryAdapter, scope: Scope, turn: str = TURN) -> ScopedStore:
    """Bind a store to a scope whose turn has been accepted."""
    if not memory.store.knows_source(scope, turn):
        memory.store.register_source(scope, turn)
    return ScopedStore(memory.store, scope, lambda: turn)


@pytest.fixture(scope="session")
def sqlite_memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryAdapter]:
    folder = tmp_path_factory.mktemp("langgraph")
    with closing(open_memory(f"sqlite:///{folder / 'memory.db'}", folder, FakeClock(START))) as memory:
        yield memory


@pytest.fixture(scope="session")
def postgresql_memory(postgres_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryAdapter]:
    folder = tmp_path_factory.mktemp("langgraph")
    with closing(open_memory(new_database(postgres_server), folder, FakeClock(START))) as memory:
        yield memory


@pytest.fixture(params=["sqlite", "postgresql"])
def memory(request: pytest.FixtureRequest) -> MemoryAdapter:
    found = request.getfixturevalue(f"{request.param}_memory")
    assert isinstance(found, MemoryAdapter)
    return found


@pytest.fixture
def clock(memory: MemoryAdapter) -> Iterator[FakeClock]:
    """Give the clock of the memory, which is put right afterwards."""
    hands = memory.store._clock
    assert isinstance(hands, FakeClock)
    yield hands
    hands.at = START


@pytest.fixture
def user() -> Scope:
    """Name a user whom no other test knows."""
    return replace(USER, tenant=f"tenant-{uuid4()}")


@pytest.fixture(params=["library", "sqlite", "postgresql"])
def either(request: pytest.FixtureRequest, user: Scope) -> BaseStore:
    if request.param == "library":
        return InMemoryStore()
    return store_of(request.getfixturevalue(f"{request.param}_memory"), user)


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def asked(request: pytest.FixtureRequest, either: BaseStore) -> Asked:
    return Asked(either, waits=request.param)


def told(items: Sequence[Item]) -> list[tuple[tuple[str, ...], str, dict[str, Any]]]:
    return sorted(((item.namespace, item.key, item.value) for item in items), key=lambda one: one[:2])


def rows(memory: MemoryAdapter, scope: Scope) -> list[tuple[Any, ...]]:
    """Give key, version, value and activity of every fact of a tenant, as they are stored."""
    f = facts.c
    with reading(memory.store._engine, [scope.tenant]) as connection:
        query = facts.select().with_only_columns(f.key, f.version, f.value, f.active).where(f.tenant == scope.tenant)
        return [tuple(row) for row in connection.execute(query.order_by(f.key, f.version))]
