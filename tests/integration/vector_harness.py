"""A memory store with an index made from it, on either database, and the hands of a test on both."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pytest
import sqlalchemy as sa
import structlog

from adapters.memory import MemoryAdapter
from adapters.memory.chains import TaskScope
from adapters.memory.masters import MemoryMasters
from adapters.vector import Point, Stored, VectorAdapter, VectorIndex
from orchestrator import (
    AdapterContext,
    Erased,
    EraseOrder,
    Gate,
    Keyring,
    Revocation,
    Scope,
    Seen,
    Selector,
    SelectorKind,
    Target,
)
from orchestrator.scan.fingerprints import Fingerprinter
from tests.fakes import FakeClock
from tests.postgres import Server, new_database

RING: Final = Keyring(current="tk-1", keys={"tk-1": b"k" * 32})
ANNA: Final = Scope(tenant="acme", user="anna", project="trips")
ELSEWHERE: Final = replace(ANNA, project="work")
EVERYWHERE: Final = replace(ANNA, project=None)
BERTA: Final = replace(ANNA, user="berta")
FOREIGN: Final = replace(ANNA, tenant="other")
PASSPORT: Final = "My passport number is P1234567."
SUBJECT: Final = Selector(kind=SelectorKind.SUBJECT)
EXPIRED: Final = Selector(kind=SelectorKind.EXPIRED)
DIMENSIONS: Final = 32
PATIENCE: Final = 20


def by_key(key: str = "passport") -> Selector:
    return Selector(kind=SelectorKind.KEY, value=key)


def by_source(source: str) -> Selector:
    return Selector(kind=SelectorKind.SOURCE, value=source)


def embed(text: str) -> list[float]:
    """Give a vector that is the same for the same text, and unlike that of any other."""
    return [byte - 127.5 for byte in hashlib.shake_256(text.encode()).digest(DIMENSIONS)]


@dataclass
class Everything:
    """A source that hands out whatever it is asked for, as one whose records the memory store does not know."""

    revision: int = 0

    def active(self, scope: Scope, records: Collection[Target]) -> Mapping[Target, int]:
        del scope
        return dict.fromkeys(records, self.revision)


@dataclass
class Shelf:
    memory: MemoryAdapter
    adapter: VectorAdapter
    index: VectorIndex
    clock: FakeClock
    url: str

    @property
    def masters(self) -> MemoryMasters:
        return MemoryMasters(self.memory.store._engine, self.clock)

    @property
    def unguarded(self) -> VectorIndex:
        """Give an index whose writers are not held back."""
        return self.adapter.index(Everything())

    def tell(self, scope: Scope, key: str, text: str, source: str | None = None, **options: Any) -> Target:  # noqa: ANN401 - those of `put`
        """Let a user state a fact, and give it as what things are made from."""
        name = source or f"{scope.user}/{key}"
        if not self.memory.store.knows_source(scope, name):
            self.memory.store.register_source(scope, name)
        version = self.memory.store.put(scope, key, text, name, user_statement=True, **options)
        rows = self.rows("SELECT tenant, user_id, project, key, fact_id FROM facts", self.memory)
        (fact,) = {row[4] for row in rows if row[:4] == (scope.tenant, scope.user, scope.project or "", key)}
        return Target(kind="fact", id=str(fact), version=version)

    def enter(self, scope: Scope, made_from: Target, text: str, source: str | None = None, part: int = 0) -> Stored:
        point = Point(made_from=made_from, source=source or f"{scope.user}/key", vector=embed(text), part=part)
        return self.index.put(scope, [point])

    def learn(self, scope: Scope, key: str, text: str, source: str | None = None) -> Target:
        """State a fact and enter it into the index."""
        fact = self.tell(scope, key, text, source)
        stored = self.enter(scope, fact, text, source or f"{scope.user}/{key}")
        assert (len(stored.ids), stored.refused) == (1, 0)
        return fact

    def remember(self, who: TaskScope, text: str, source: str, ttl_days: int | None = None) -> Target:
        scope = Scope(tenant=who.tenant, user=who.user, project=who.task)
        if not self.memory.store.knows_source(scope, source):
            self.memory.store.register_source(scope, source)
        memory = self.memory.chains.remember(who, "task", text, source, ttl_days)
        return Target(kind="memory", id=str(memory), version=memory)

    def shown(self, scope: Scope, text: str, limit: int = 10) -> list[Target]:
        return [hit.made_from for hit in self.index.search(scope, embed(text), limit).hits]

    def order(self, selector: Selector, scope: Scope = ANNA, **parts: Any) -> EraseOrder:  # noqa: ANN401 - as the fields
        deadline = self.clock.now() + timedelta(seconds=PATIENCE)
        order = EraseOrder(job=uuid4(), unit=uuid4(), key="k", scope=scope, selector=selector, deadline=deadline)
        return replace(order, **parts)

    def revoke(self, order: EraseOrder) -> tuple[Revocation, EraseOrder]:
        """Let the source revoke, and give the order that derived stores get from it."""
        (answer,) = self.memory.revoke([order])
        return answer, replace(order, known=answer.targets, revision=answer.revision)

    def found(self, order: EraseOrder) -> tuple[Target, ...]:
        (holding,) = self.adapter.find([order])
        return holding.targets

    def erase(self, order: EraseOrder) -> Erased:
        (answer,) = self.adapter.erase([order])
        return answer

    def seen(self, order: EraseOrder) -> Seen:
        (answer,) = self.adapter.verify([order])
        return answer

    def run(self, selector: Selector, scope: Scope = ANNA) -> tuple[Erased, Seen]:
        """Revoke in the source, then find, erase and look again in the index."""
        _, order = self.revoke(self.order(selector, scope))
        order = replace(order, targets=self.found(order))
        return self.erase(order), self.seen(order)

    def rows(self, query: str, of: MemoryAdapter | VectorAdapter | None = None) -> list[tuple[Any, ...]]:
        with self._engine(of).begin() as connection:
            return [tuple(row) for row in connection.exec_driver_sql(query)]

    def change(self, statement: str, of: MemoryAdapter | VectorAdapter | None = None) -> None:
        with self._engine(of).begin() as connection:
            connection.exec_driver_sql(statement)

    def points(self) -> list[tuple[Any, ...]]:
        return self.rows("SELECT * FROM vector_points ORDER BY tenant, id")

    def ids(self) -> set[str]:
        return {row[1] for row in self.points()}

    def _engine(self, of: MemoryAdapter | VectorAdapter | None) -> sa.Engine:
        return self.memory.store._engine if isinstance(of, MemoryAdapter) else self.adapter._engine


class Pausing:
    """A source that is asked, and whose answer then takes its time."""

    def __init__(self, masters: MemoryMasters) -> None:
        self._masters = masters
        self.asked, self.goes_on = threading.Event(), threading.Event()

    def active(self, scope: Scope, records: Collection[Target]) -> Mapping[Target, int]:
        answer = self._masters.active(scope, records)
        self.asked.set()
        assert self.goes_on.wait(PATIENCE)
        return answer


def open_shelf(folder: Path, memory_url: str, url: str, *, dimensions: int = DIMENSIONS) -> Shelf:
    clock = FakeClock()
    context = AdapterContext(
        clock=clock,
        gate=Gate(RING),
        log=structlog.get_logger(),
        state_dir=folder,
        fingerprinter=Fingerprinter.of(RING),
    )
    memory = MemoryAdapter(context, url=memory_url)
    adapter = VectorAdapter(context, url=url, dimensions=dimensions)
    index = adapter.index(MemoryMasters(memory.store._engine, clock))
    return Shelf(memory, adapter, index, clock, url)


@pytest.fixture(scope="module")
def index_url(postgres_server: Server) -> str:
    """Give a database of PostgreSQL that the tests of a module use one after the other."""
    return new_database(postgres_server)


@pytest.fixture(params=["sqlite", "postgresql"])
def shelf(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shelf]:
    """Give an empty index on either database, of a memory store in a file."""
    memory, index = (f"sqlite:///{tmp_path / name}" for name in ("memory.db", "vectors.db"))
    if request.param == "postgresql":
        index = str(request.getfixturevalue("index_url"))
    made = open_shelf(tmp_path, memory, index)
    with closing(made.memory), closing(made.adapter):
        if request.param == "postgresql":
            made.change("TRUNCATE vector_points, vector_probes")
        yield made


@pytest.fixture(params=["sqlite", "postgresql"])
def sourced(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shelf]:
    """Give an index in a file, of a memory store on either database."""
    memory, index = (f"sqlite:///{tmp_path / name}" for name in ("memory.db", "vectors.db"))
    if request.param == "postgresql":
        memory = str(request.getfixturevalue("postgres_url"))
    made = open_shelf(tmp_path, memory, index)
    with closing(made.memory), closing(made.adapter):
        yield made
