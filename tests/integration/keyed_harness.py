"""A source database with events and candidates beside its facts, on either database, and the hands of a test on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
import sqlalchemy as sa
import structlog

from adapters.memory import MemoryAdapter, SourceKind
from adapters.memory.candidates import Candidates
from adapters.memory.preferences import PreferenceLog
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
    Target,
)
from tests.fakes import FakeClock

ANNA = Scope(tenant="acme", user="anna", project="trips")
AT_WORK = replace(ANNA, project="work")
EVERYWHERE = replace(ANNA, project=None)
BERTA = replace(ANNA, user="berta")
FOREIGN = replace(ANNA, tenant="other")
SUBJECT = Selector(kind=SelectorKind.SUBJECT)
PASSPORT = "The passport number is P1234567."


def by_key(key: str) -> Selector:
    return Selector(kind=SelectorKind.KEY, value=key)


def by_source(source: str) -> Selector:
    return Selector(kind=SelectorKind.SOURCE, value=source)


def by_memory(handle: str) -> Selector:
    return Selector(kind=SelectorKind.MEMORY, value=handle)


@dataclass
class Keyed:
    """An adapter over a database, its libraries, and that database seen from outside."""

    adapter: MemoryAdapter
    context: AdapterContext
    clock: FakeClock
    url: str

    @property
    def gate(self) -> Gate:
        return self.context.gate

    @property
    def preferences(self) -> PreferenceLog:
        return PreferenceLog(self.adapter._engine, self.gate, self.clock)

    @property
    def candidates(self) -> Candidates:
        return Candidates(self.adapter._engine, self.gate, self.clock)

    def register(self, scope: Scope, source: str, *behind: str) -> None:
        if not self.adapter.store.knows_source(scope, source):
            kind = SourceKind.MODEL if behind else SourceKind.USER_MESSAGE
            self.adapter.store.register_source(scope, source, kind=kind, derived_from=behind)

    def put(self, scope: Scope, key: str, value: str, source: str, *, stated: bool = False) -> Target:
        """Tell a fact, and give it as the source names it."""
        self.register(scope, source)
        version = self.adapter.store.put(scope, key, value, source, user_statement=stated)
        (fact,) = (fact for fact in self.adapter.store.current(scope) if fact.key == key)
        return Target(kind="fact", id=fact.id, version=version)

    def prefer(self, scope: Scope, key: str, value: str | None, source: str, *, stated: bool = False) -> Target:
        """Tell a preference that holds at once, and give its event as the source names it."""
        self.register(scope, source)
        event = self.preferences.prefer(scope, key, value, source, user_statement=stated)
        return Target(kind="event", id=event.id, version=event.sequence)

    def propose(self, scope: Scope, key: str, value: str, source: str) -> Target:
        self.register(scope, source)
        made = self.candidates.propose(scope, key, value, source, proposed_by="summariser")
        return Target(kind="candidate", id=made.id)

    def refused(self, scope: Scope, key: str, value: str, source: str, *, stated: bool = False) -> Refusal:
        with pytest.raises(GateRefused) as caught:
            self.prefer(scope, key, value, source, stated=stated)
        return caught.value.refusal

    def order(self, selector: Selector, scope: Scope = ANNA, *, job: UUID | None = None, **parts: Any) -> EraseOrder:  # noqa: ANN401 - as the fields are
        deadline = self.clock.now() + timedelta(seconds=60)
        made = EraseOrder(job=job or uuid4(), unit=uuid4(), key="k", scope=scope, selector=selector, deadline=deadline)
        return replace(made, **parts)

    def revoke(self, order: EraseOrder) -> Revocation:
        (answer,) = self.adapter.revoke([order])
        return answer

    def found(self, order: EraseOrder) -> tuple[Target, ...]:
        (holding,) = self.adapter.find([order])
        assert holding.cursor is None
        return holding.targets

    def erase(self, order: EraseOrder, *targets: Target) -> Erased:
        (answer,) = self.adapter.erase([replace(order, targets=targets)])
        return answer

    def look(self, order: EraseOrder, *targets: Target, known: tuple[Target, ...] = ()) -> Seen:
        (seen,) = self.adapter.verify([replace(order, targets=targets, known=known)])
        return seen

    def run(self, order: EraseOrder) -> tuple[Erased, Seen]:
        """Revoke one page, erase and look again."""
        targets = self.revoke(order).targets
        return self.erase(order, *targets), self.look(order, *targets, known=targets)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with self._raw() as connection:
            return [tuple(row) for row in connection.exec_driver_sql(query)]

    def change(self, *statements: str) -> None:
        with self._raw() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement)

    def told(self) -> dict[str, list[tuple[Any, ...]]]:
        """Read all that is kept of anybody, row by row."""
        tables = ("facts", "preference_events", "preferences", "fact_candidates")
        return {table: sorted(self.rows(f"SELECT * FROM {table}"), key=repr) for table in tables}  # noqa: S608 - ours

    def kept(self, *targets: Target) -> list[tuple[Any, ...]]:
        """Give state and value of events and candidates, as the tables have them."""
        found = []
        for target in targets:
            table = "preference_events" if target.kind == "event" else "fact_candidates"
            found += self.rows(f"SELECT state, value FROM {table} WHERE handle = '{target.id}'")  # noqa: S608 - ours
        return found

    def restore(self, order: EraseOrder, rows: dict[str, list[tuple[Any, ...]]], epoch: int = 2) -> int:
        """Put rows back that were there before a job, and bring the database up to date with its tombstones."""
        marks = [(order.scope.tenant, order.job, mark) for mark in self.revoke(order).tombstones]
        with self._raw() as connection:
            for table, some in rows.items():
                connection.exec_driver_sql(f"DELETE FROM {table}")  # noqa: S608 - names of ours
                for row in some:
                    names = ", ".join(f":v{n}" for n in range(len(row)))
                    values = {f"v{n}": value for n, value in enumerate(row)}
                    connection.execute(sa.text(f"INSERT INTO {table} VALUES ({names})"), values)  # noqa: S608 - as above
            connection.exec_driver_sql("DELETE FROM source_tombstones")
        return self.adapter.restore(None, marks, lambda: epoch).erased

    def _raw(self) -> Any:  # noqa: ANN401 - a transaction that commits at its end
        return sa.create_engine(self.url, poolclass=sa.NullPool).begin()


@pytest.fixture(params=["sqlite", "postgresql"])
def keyed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Keyed]:
    """Give an empty source database, on each kind of database."""
    url = f"sqlite:///{tmp_path / 'm.db'}"
    if request.param == "postgresql":
        url = str(request.getfixturevalue("postgres_url"))
    clock = FakeClock()
    context = AdapterContext(clock=clock, gate=Gate(Keyring.create()), log=structlog.get_logger(), state_dir=tmp_path)
    with closing(MemoryAdapter(context, url=url)) as adapter:
        yield Keyed(adapter, context, clock, url)


def kinds(answer: Revocation) -> list[str]:
    return sorted(tombstone.kind.value for tombstone in answer.tombstones)
