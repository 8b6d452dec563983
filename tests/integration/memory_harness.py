"""A memory store in which three users told the same facts, on each kind of database, and the hands of a test on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast
from uuid import UUID, uuid4

import pytest
import sqlalchemy as sa
import structlog

from adapters.memory import MemoryAdapter, MemoryStore
from orchestrator import (
    AdapterContext,
    Erased,
    EraseOrder,
    Gate,
    GateRefused,
    Keyring,
    Refusal,
    Revocation,
    Scope,
    Seen,
    Selector,
    SelectorKind,
)
from tests.integration.rows_harness import emptied

A = Scope(tenant="tenant-a", user="reader-A", project="trip-planning")
OTHER_PROJECT = Scope(tenant="tenant-a", user="reader-A", project="project-B")
ALL = Scope(tenant="tenant-a", user="reader-A")
NEIGHBOUR = Scope(tenant="tenant-a", user="reader-B", project="trip-planning")
FOREIGN = Scope(tenant="tenant-b", user="reader-A", project="trip-planning")
TURN_6, PASSPORT = "trip-planning/turn-6", "My passport number is P1234567"
BY_KEY = Selector(kind=SelectorKind.KEY, value="passport")
BY_SOURCE = Selector(kind=SelectorKind.SOURCE, value=TURN_6)
SUBJECT = Selector(kind=SelectorKind.SUBJECT)


@dataclass
class Hands:
    at: datetime = datetime(2026, 11, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self.at


@dataclass
class World:
    """`adapter` opens the database as its owner; `store` is the library of an application, perhaps under its role."""

    file: Path
    url: str
    adapter: MemoryAdapter
    store: MemoryStore
    clock: Hands
    context: AdapterContext

    def tell(self, scope: Scope, key: str, value: str, source: str, *, user_statement: bool = False) -> int:
        if not self.store.knows_source(scope, source):
            self.store.register_source(scope, source)
        return self.store.put(scope, key, value, source, user_statement=user_statement)

    def order(self, selector: Selector = BY_KEY, scope: Scope = A, *, job: UUID | None = None) -> EraseOrder:
        deadline = self.clock.now() + timedelta(seconds=20)
        return EraseOrder(job=job or uuid4(), unit=uuid4(), key="k", scope=scope, selector=selector, deadline=deadline)

    def revoke(self, order: EraseOrder) -> Revocation:
        return self.adapter.revoke([order])[0]

    def run(self, order: EraseOrder) -> tuple[Erased, Seen]:
        targets = self.revoke(order).targets
        erase = replace(order, targets=targets)
        return self.adapter.erase([erase])[0], self.adapter.verify([replace(erase, known=targets)])[0]

    def rows(self, query: str) -> list[tuple[object, ...]]:
        """Read the database from outside, as its owner."""
        with sa.create_engine(self.url, poolclass=sa.NullPool).begin() as connection:
            return [tuple(row) for row in connection.exec_driver_sql(query)]

    def refused(self, scope: Scope, key: str, value: str, source: str, *, user_statement: bool = False) -> Refusal:
        with pytest.raises(GateRefused) as caught:
            self.tell(scope, key, value, source, user_statement=user_statement)
        assert value not in str(caught.value)
        return caught.value.refusal


def world_in(*places: str) -> Any:  # noqa: ANN401 - pytest gives its fixtures no public type
    """Give a fixture that opens a store in each of these places: sqlite, postgresql, and there under a bound role."""

    @pytest.fixture(params=places)
    def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
        url = of_application = f"sqlite:///{tmp_path / 'm.db'}"
        if request.param != "sqlite":
            url, role = emptied(request.getfixturevalue("postgres_server"))
            of_application = role if request.param == "role" else url
        yield from _opened(tmp_path, url, of_application)

    return world


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    url = f"sqlite:///{tmp_path / 'm.db'}"
    yield from _opened(tmp_path, url, url)


def _opened(folder: Path, url: str, url_of_application: str) -> Iterator[World]:
    clock = Hands()
    context = AdapterContext(clock=clock, gate=Gate(Keyring.create()), log=structlog.get_logger(), state_dir=folder)
    with closing(MemoryAdapter(context, url=url)) as adapter:
        application = adapter if url == url_of_application else MemoryAdapter(context, url=url_of_application)
        with closing(application):
            made = World(folder / "m.db", url, adapter, application.store, clock, context)
            for scope in (A, NEIGHBOUR, FOREIGN):
                source = TURN_6 if scope is not NEIGHBOUR else "reader-B/turn-6"
                made.tell(scope, "passport", PASSPORT, source)
                made.tell(scope, "seat", "aisle seat", source)
            yield made


def kinds(answer: Revocation) -> Sequence[str]:
    return sorted(t.kind.value for t in answer.tombstones)


def counted(world: World) -> tuple[int, int, int, int]:
    tables = ("source_revocations", "revocation_targets", "source_tombstones")
    counts = [cast("int", world.rows(f"SELECT count(*) FROM {name}")[0][0]) for name in tables]  # noqa: S608
    return counts[0], counts[1], counts[2], world.store.revision(A)
