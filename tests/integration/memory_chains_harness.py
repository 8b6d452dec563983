"""A source database with chains beside its facts, on either database, and the hands of a test on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
from adapters.memory.chains import TaskScope
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
from tests.integration.rows_harness import emptied

TENANT = "acme"
ALICE = TaskScope("alice", "trips", TENANT)
AT_WORK = TaskScope("alice", "work", TENANT)
BOB = TaskScope("bob", "trips", TENANT)
FOREIGN = TaskScope("alice", "trips", "other")
PASSPORT = "The passport number is P1234567."
RENEWED = "The passport number is P7654321 by now."
SUBJECT = Selector(kind=SelectorKind.SUBJECT)


def by_memory(memory_id: int) -> Selector:
    return Selector(kind=SelectorKind.MEMORY, value=str(memory_id))


def by_source(source: str) -> Selector:
    return Selector(kind=SelectorKind.SOURCE, value=source)


def place(scope: TaskScope) -> Scope:
    return Scope(tenant=scope.tenant, user=scope.user, project=scope.task)


def everything(scope: TaskScope) -> Scope:
    return Scope(tenant=scope.tenant, user=scope.user)


def target(chain: int, memory: int) -> Target:
    return Target(kind="memory", id=str(chain), version=memory)


@dataclass
class Source:
    """An adapter over a database, that of an application, perhaps under its role, and the database from outside."""

    adapter: MemoryAdapter
    application: MemoryAdapter
    clock: FakeClock
    url: str

    def register(self, scope: TaskScope, source: str, *behind: str, kind: SourceKind = SourceKind.USER_MESSAGE) -> None:
        store = self.application.store
        if not store.knows_source(place(scope), source):
            store.register_source(place(scope), source, kind=kind, derived_from=behind)

    def tell(self, scope: TaskScope, text: str, source: str, *, level: str = "task", stated: bool = False) -> int:
        self.register(scope, source)
        return self.application.chains.remember(scope, level, text, source, user_statement=stated)

    def correct(self, scope: TaskScope, memory_id: int, text: str, source: str, *, stated: bool = False) -> int:
        self.register(scope, source)
        return self.application.chains.correct(scope, memory_id, text, source, user_statement=stated)

    def refused(
        self, scope: TaskScope, text: str, source: str, *, level: str = "task", stated: bool = False
    ) -> Refusal:
        with pytest.raises(GateRefused) as caught:
            self.tell(scope, text, source, level=level, stated=stated)
        assert text not in str(caught.value)
        return caught.value.refusal

    def order(
        self,
        selector: Selector,
        scope: Scope,
        *,
        job: UUID | None = None,
        **parts: Any,  # noqa: ANN401 - named as the fields of an order are
    ) -> EraseOrder:
        deadline = self.clock.now() + timedelta(seconds=60)
        order = EraseOrder(job=job or uuid4(), unit=uuid4(), key="k", scope=scope, selector=selector, deadline=deadline)
        return replace(order, **parts)

    def revoke(self, order: EraseOrder) -> Revocation:
        (answer,) = self.adapter.revoke([order])
        return answer

    def run(self, order: EraseOrder) -> tuple[Erased, Seen]:
        """Revoke one page, erase and look again."""
        targets = self.revoke(order).targets
        erase = replace(order, targets=targets)
        return self.adapter.erase([erase])[0], self.adapter.verify([replace(erase, known=targets)])[0]

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with self._raw() as connection:
            return [tuple(row) for row in connection.exec_driver_sql(query)]

    def change(self, *statements: str) -> None:
        with self._raw() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement)

    def memories(self) -> list[tuple[Any, ...]]:
        """Read every memory with its tenant, whole."""
        joined = "memories AS m LEFT JOIN memory_tenants AS t ON t.memory_id = m.id"
        return self.rows(f"SELECT m.*, t.tenant, t.revoked FROM {joined} ORDER BY m.id")  # noqa: S608 - names of ours

    def ids(self) -> list[int]:
        return [row[0] for row in self.memories()]

    def recalled(self, scope: TaskScope, question: str = "What is the passport number?") -> list[int]:
        return [memory.id for memory in self.application.chains.recall(scope, question, 20)]

    def bulk(self, scope: TaskScope, versions: int, source: str) -> list[int]:
        """Write one long chain as the rows that the library writes."""
        first = self.tell(scope, "Line 0.", source)
        ids = range(first, first + versions)
        memories = [
            {"i": n, "u": scope.user, "t": scope.task, "x": f"Line {n}.", "s": source, "p": n - 1} for n in ids[1:]
        ]
        now = "'2026-11-01T00:00:00+00:00'"
        with self._raw() as connection:
            insert = f"INSERT INTO memories VALUES (:i, :u, :t, :x, :s, {now}, NULL, :p)"  # noqa: S608 - as above
            connection.execute(sa.text(insert), memories)
            connection.execute(sa.text("INSERT INTO memory_tenants VALUES (:i, 'acme', 0)"), memories)
            if connection.dialect.name == "postgresql":
                connection.execute(sa.text("SELECT setval(pg_get_serial_sequence('memories', 'id'), :i)"), memories[-1])
        return list(ids)

    def _raw(self) -> Any:  # noqa: ANN401 - a transaction that commits at its end
        return sa.create_engine(self.url, poolclass=sa.NullPool).begin()


def open_source(folder: Path, url: str, role: str | None = None) -> Source:
    """Open a source database as its owner, and for an application by the URL of its role, where it has one."""
    clock = FakeClock()
    context = AdapterContext(clock=clock, gate=Gate(Keyring.create()), log=structlog.get_logger(), state_dir=folder)
    adapter = MemoryAdapter(context, url=url)
    return Source(adapter, adapter if role is None else MemoryAdapter(context, url=role), clock, url)


def source_in(*places: str) -> Any:  # noqa: ANN401 - pytest gives its fixtures no public type
    """Give a fixture that opens an empty source database in each of these places: sqlite, postgresql, role."""

    @pytest.fixture(params=places)
    def source(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Source]:
        url, role = f"sqlite:///{tmp_path / 'm.db'}", None
        if request.param == "postgresql":
            url = str(request.getfixturevalue("postgres_url"))
        if request.param == "role":
            url, role = emptied(request.getfixturevalue("postgres_server"))
        made = open_source(tmp_path, url, role)
        with closing(made.adapter), closing(made.application):
            yield made

    return source


source = source_in("sqlite", "postgresql")


def kinds(answer: Revocation) -> Sequence[str]:
    return sorted({tombstone.kind.value for tombstone in answer.tombstones})
