"""The events of tests/data/events.json in a preference log on either database, and the hands of a test on it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import structlog

from adapters.memory import MemoryAdapter, PreferenceLog
from adapters.memory.engine import writing
from adapters.memory.preferences import Event, Operation, Resolution, marks
from adapters.memory.preferences.event import insert
from adapters.memory.tables import metadata, source_epoch
from orchestrator import AdapterContext, Gate, Keyring, Scope
from tests.fakes import FakeClock
from tests.postgres import new_database

DATA: Mapping[str, Any] = json.loads(
    (Path(__file__).parents[1] / "data" / "events.json").read_text(encoding="utf-8"),
)
EVENTS: Mapping[int, Mapping[str, Any]] = {event["sequence"]: event for event in DATA["events"]}
LOOKUPS: Mapping[str, Mapping[str, Any]] = {each["id"]: each for each in (*DATA["lookups"], *DATA["derived_lookups"])}
TENANT, KEY = "tenant-a", "answer_detail"
READER_A = Scope(tenant=TENANT, user="reader-A")
COMET = Scope(tenant=TENANT, user="reader-A", project="Comet")
ORION = Scope(tenant=TENANT, user="reader-A", project="Orion")
READER_B = Scope(tenant=TENANT, user="reader-B")
GATE = Gate(Keyring(current="tk-1", keys={"tk-1": b"k" * 32}))


@dataclass
class Hands:
    """A log on one database; a process of its own can open the same one by `url`."""

    url: str
    adapter: MemoryAdapter
    clock: FakeClock

    @property
    def log(self) -> PreferenceLog:
        return self.adapter.preferences

    @property
    def engine(self) -> sa.Engine:
        return self.adapter._engine

    def say(self, scope: Scope, key: str, value: str | None, source: str = "said", *, stated: bool = False) -> Event:
        """Register the source, where it is new, and record."""
        self.adapter.store.register_source(scope, source)
        return self.log.record(scope, key, value, source, user_statement=stated)

    def accept(self, rows: Iterable[Mapping[str, Any]], tenant: str = TENANT) -> None:
        """Write events that were accepted elsewhere, with their sequences, in the order in which they are given."""
        rows = list(rows)
        for user in {row["user"] for row in rows}:
            self.adapter.store.register_source(Scope(tenant=tenant, user=user), f"{user}/said")
        with writing(self.engine, [tenant]) as connection:
            for row in rows:
                insert(connection, scope_of(row, tenant), event_of(row, tenant))

    def look_up(self, lookup: Mapping[str, Any], tenant: str = TENANT) -> Resolution:
        scope = Scope(tenant=tenant, user=lookup["user"], project=lookup["project"])
        return self.log.resolve(scope, lookup["key"], lookup["as_of"])

    def revoke(self, sequence: int, tenant: str = TENANT) -> None:
        """Do to one event by hand what the revocation of a job does."""
        self.execute("UPDATE preference_events SET value = NULL, state = 'revoked'", tenant, sequence)
        self.execute("UPDATE preferences SET value = NULL, operation = 'erased'", tenant, sequence)

    def erase(self, scope: Scope, key: str, sequence: int) -> None:
        """Do to one event by hand what the erasing of a job does."""
        place = {"tenant": scope.tenant, "mac": marks.key_mac(GATE, scope, key), "sequence": sequence}
        with writing(self.engine, [scope.tenant]) as connection:
            connection.execute(sa.text("INSERT INTO erased_events VALUES (:tenant, :mac, :sequence)"), place)
        self.execute("DELETE FROM preferences", scope.tenant, sequence)
        self.execute("DELETE FROM preference_events", scope.tenant, sequence)

    def execute(self, statement: str, tenant: str, sequence: int) -> None:
        with writing(self.engine, [tenant]) as connection:
            of_event = " WHERE tenant = :tenant AND sequence = :sequence"
            done = connection.execute(sa.text(statement + of_event), {"tenant": tenant, "sequence": sequence})
            assert done.rowcount in {0, 1}

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with self.engine.connect() as connection:
            return [tuple(row) for row in connection.execute(sa.text(query))]


@pytest.fixture(params=["sqlite", "postgresql"], scope="module")
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Give one database for the tests of a file: a server that has many of them takes long to stop."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path_factory.mktemp('log') / 'm.db'}"
    return new_database(request.getfixturevalue("postgres_server"))


@pytest.fixture
def hands(url: str) -> Iterator[Hands]:
    """Give an empty log."""
    clock = FakeClock()
    with closing(open_adapter(url, clock)) as adapter:
        with adapter._engine.begin() as connection:
            for table in reversed(metadata.sorted_tables):
                if table is not source_epoch:
                    connection.execute(table.delete())
        yield Hands(url, adapter, clock)


@pytest.fixture
def told(hands: Hands) -> Hands:
    """Give a log of the six events."""
    hands.accept(DATA["events"])
    return hands


def open_adapter(url: str, clock: FakeClock | None = None) -> MemoryAdapter:
    context = AdapterContext(clock=clock or FakeClock(), gate=GATE, log=structlog.get_logger(), state_dir=Path())
    return MemoryAdapter(context, url=url)


def scope_of(row: Mapping[str, Any], tenant: str = TENANT) -> Scope:
    """Read the scope of an event as the file names it: `global`, or `project:NAME`."""
    project = None if row["scope"] == "global" else row["scope"].removeprefix("project:")
    return Scope(tenant=tenant, user=row["user"], project=project)


def event_of(row: Mapping[str, Any], tenant: str = TENANT) -> Event:
    return Event(
        id=f"{tenant}/{row['sequence']}",
        sequence=row["sequence"],
        key=row["key"],
        operation=Operation(row["operation"]),
        value=row["value"],
        source=f"{row['user']}/said",
        accepted_at_us=row.get("accepted_at_us", 0),
    )


def answer(found: Resolution) -> dict[str, Any]:
    """Give an answer in the words of the file."""
    return {
        "state": found.state.value,
        "value": found.value,
        "source_sequence": found.sequence,
        "resolved_scope": found.resolved_scope,
    }
