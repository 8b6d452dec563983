"""Chains in a file of their own, in a source database, and the hands of a test on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from adapters.memory import open_engine
from adapters.memory.chains import ProvenanceStore, Recalled, TaskScope, open_file
from adapters.memory.chains.schema import bring_up_shared
from adapters.memory.engine import writing
from tests.integration.rows_harness import emptied

ALICE = TaskScope("alice", "trip-planning")
OTHER_TASK = TaskScope("alice", "other-task")
BOB = TaskScope("bob", "trip-planning")
DAY, SECOND = timedelta(days=1), timedelta(seconds=1)
START = datetime(2026, 10, 20, 9, 0, tzinfo=UTC)
DIET, TURN_3, TURN_12 = "Alice is vegetarian.", "trip-planning/turn-3", "trip-planning/turn-12"
EATS_FISH = "Alice eats fish but no meat, so she is not vegetarian."
BOOKING, TURN_5 = "The Lisbon hotel booking code is 4F7Q.", "trip-planning/turn-5"
PASSPORT, TURN_6 = "Alice's passport number is P1234567.", "trip-planning/turn-6"
FOOD_QUESTION = "What food does Alice eat? Is she vegetarian?"
BOOKING_QUESTION = "What is the hotel booking code?"
PASSPORT_QUESTION = "What is Alice's passport number?"


@dataclass
class StepClock:
    """Each reading moves it on by a minute, a look does not."""

    at: datetime = START
    on_reading: Callable[[], None] = lambda: None

    def now(self) -> datetime:
        self.on_reading()
        reading, self.at = self.at, self.at + timedelta(minutes=1)
        return reading

    def peek(self) -> datetime:
        return self.at

    def advance(self, by: timedelta) -> None:
        self.at += by


@dataclass
class Chains:
    """A store, its clock, and its database seen from outside."""

    store: ProvenanceStore
    url: sa.URL
    clock: StepClock = field(default_factory=StepClock)

    @property
    def file(self) -> Path:
        return Path(str(self.url.database))

    def ids(self, scope: TaskScope, question: str) -> list[int]:
        return [memory.id for memory in self.recalled(scope, question)]

    def recalled(self, scope: TaskScope, question: str) -> list[Recalled]:
        return self.store.recall(scope, question)

    def rows(self, query: str, **values: object) -> list[tuple[Any, ...]]:
        with self._raw() as connection:
            return [tuple(row) for row in connection.execute(sa.text(query), values)]

    def change(self, statement: str, **values: object) -> None:
        with self._raw() as connection:
            connection.execute(sa.text(statement), values)

    @contextmanager
    def _raw(self) -> Iterator[sa.Connection]:
        engine = sa.create_engine(self.url, poolclass=sa.NullPool)
        with engine.begin() as connection:
            yield connection


@contextmanager
def in_file(path: Path, *, secure_delete: bool = True, clock: StepClock | None = None) -> Iterator[Chains]:
    """Open a provenance file, and close it at the end."""
    clock = clock or StepClock()
    store = open_file(path, clock, secure_delete=secure_delete)
    try:
        yield Chains(store, sa.URL.create("sqlite", database=str(path)), clock)
    finally:
        store.close()


@contextmanager
def in_source(url: str) -> Iterator[Chains]:
    """Make the chains' tables in a source database, and close it at the end.

    The store is that of a file: what it promises of reads, corrections and deletions holds on either database.
    """
    engine, clock = open_engine(url), StepClock()
    try:
        with writing(engine, ()) as connection:
            bring_up_shared(connection)
        yield Chains(ProvenanceStore(engine, clock), engine.url, clock)
    finally:
        engine.dispose()


class UnderRole(ProvenanceStore):
    """A store that reads and writes under a role that policies bind; what is deleted is deleted by the owner's."""

    def __init__(self, url: str, owner: ProvenanceStore, clock: StepClock) -> None:
        super().__init__(open_engine(url), clock)
        self._owner = owner

    def forget(self, scope: TaskScope, memory_id: int, reason: str) -> list[int]:
        return self._owner.forget(scope, memory_id, reason)

    def purge_expired(self) -> int:
        return self._owner.purge_expired()


@contextmanager
def under_role(url: str, role: str) -> Iterator[Chains]:
    """Open chains in a source database under a role that policies bind; a test looks from outside as the owner."""
    with in_source(url) as owned, closing(UnderRole(role, owned.store, owned.clock)) as store:
        yield Chains(store, owned.url, owned.clock)


def chains_in(*places: str) -> Any:  # noqa: ANN401 - pytest gives its fixtures no public type
    """Give a fixture that opens an empty store in each of these places: file, source, postgresql, role."""

    @pytest.fixture(params=places)
    def chains(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Chains]:
        if request.param == "file":
            opened = in_file(tmp_path / "chains.db")
        elif request.param == "source":
            opened = in_source(f"sqlite:///{tmp_path / 'm.db'}")
        elif request.param == "role":
            opened = under_role(*emptied(request.getfixturevalue("postgres_server")))
        else:
            opened = in_source(request.getfixturevalue("postgres_url"))
        with opened as made:
            yield made

    return chains


EVERYWHERE = ("file", "source", "postgresql", "role")
IN_A_FILE = ("file",)


def holds(file: Path, text: str) -> bool:
    """Tell whether the bytes of a text are in a file or in what lies beside it."""
    names = (file.name, *(file.name + end for end in ("-wal", "-shm", "-journal")))
    parts = (file.with_name(name) for name in names)
    return any(text.encode() in part.read_bytes() for part in parts if part.exists())
