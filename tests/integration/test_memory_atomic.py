"""A revocation in the memory store happens as a whole or not at all, wherever it breaks off, on each database."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

import pytest
import sqlalchemy as sa
import structlog

from adapters.memory import MemoryAdapter
from orchestrator import AdapterContext, EraseOrder, Gate, Keyring, Revocation, Scope, Selector, SelectorKind
from orchestrator.domain.states import JobState
from tests.fakes import ANNA, Bench, FakeClock, bench

NEIGHBOUR = Scope(tenant=ANNA.tenant, user="berta", project=ANNA.project)
COMMIT = "COMMIT"
WRITES = re.compile(r"\s*(WITH\b.*)?\b(INSERT INTO|UPDATE|DELETE FROM)\s+(\w+)", re.DOTALL)
# What a revocation leaves behind, and the tables in which it lies.
PARTS = {
    "targets": "SELECT * FROM revocation_targets ORDER BY job, ordinal",
    "answer": "SELECT * FROM source_revocations ORDER BY job",
    "values": "SELECT * FROM facts ORDER BY tenant, user_id, project, key, version",
    "tombstones": "SELECT * FROM source_tombstones ORDER BY tenant, key_id, mac, kind, job",
    "revision": "SELECT * FROM fact_revisions ORDER BY tenant, user_id, project",
}
TABLES = {query.split()[3] for query in PARTS.values()}
Strikes = Callable[[int, str], bool]


@dataclass
class Watch:
    """Notes each statement and commit of an engine, and breaks off at the one that `strikes` chooses."""

    engine: sa.Engine
    strikes: Strikes = lambda _number, _text: False
    passed: list[str] = field(default_factory=list)
    open: set[str] = field(default_factory=set)
    written: list[set[str]] = field(default_factory=list)
    struck: str | None = None

    def __enter__(self) -> Self:
        for name, hear in self._heard.items():
            sa.event.listen(self.engine, name, hear)
        return self

    def __exit__(self, *_: object) -> None:
        for name, hear in self._heard.items():
            sa.event.remove(self.engine, name, hear)

    def __post_init__(self) -> None:
        self._heard: dict[str, Callable[..., None]] = {
            "before_cursor_execute": self._execute,
            "commit": self._commit,
            "rollback": self._rollback,
        }

    def _execute(self, _connection: object, _cursor: object, statement: str, *_: object) -> None:
        self._pass(statement)
        if found := WRITES.match(statement):
            self.open.add(found[3])

    def _commit(self, _connection: object) -> None:
        self._pass(COMMIT)
        if self.open:
            self.written.append(self.open)
        self.open = set()

    def _rollback(self, _connection: object) -> None:
        self.open = set()

    def _pass(self, text: str) -> None:
        self.passed.append(text)
        if self.struck is None and self.strikes(len(self.passed), text):
            self.struck = text
            raise ConnectionResetError


@dataclass
class Source:
    """A memory store with facts of two users, and a look at its tables from outside."""

    adapter: MemoryAdapter
    url: str

    def order(self) -> EraseOrder:
        asked = Selector(kind=SelectorKind.KEY, value="passport")
        deadline = datetime.now(UTC) + timedelta(seconds=20)
        return EraseOrder(job=uuid4(), unit=uuid4(), key="k", scope=ANNA, selector=asked, deadline=deadline)

    def revoke(self, order: EraseOrder) -> Revocation:
        (answer,) = self.adapter.revoke([order])
        return answer

    def watched(self, strikes: Strikes = lambda _number, _text: False) -> Watch:
        return Watch(self.adapter.store._engine, strikes)

    def parts(self) -> dict[str, list[tuple[Any, ...]]]:
        engine = sa.create_engine(self.url, poolclass=sa.NullPool)
        with engine.begin() as connection:
            return {name: [tuple(r) for r in connection.exec_driver_sql(query)] for name, query in PARTS.items()}


@pytest.fixture(params=["sqlite", "postgresql"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Source]:
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres_url")
    context = AdapterContext(
        clock=FakeClock(), gate=Gate(Keyring.create()), log=structlog.get_logger(), state_dir=tmp_path
    )
    with closing(MemoryAdapter(context, url=url)) as adapter:
        for scope in (ANNA, NEIGHBOUR):
            adapter.store.register_source(scope, f"{scope.user}/turn-6")
            adapter.store.put(scope, "passport", "My passport number is P1234567", f"{scope.user}/turn-6")
            adapter.store.put(scope, "seat", "aisle seat", f"{scope.user}/turn-6")
        yield Source(adapter, url)


@pytest.fixture
def stage(tmp_path: Path, source: Source) -> Iterator[Bench]:
    """Give an engine whose source is the memory store."""
    made = bench(tmp_path)
    made.engine = replace(made.engine, adapters={"source": source.adapter, "copies": made.copies})
    yield made
    made.ledger.engine.dispose()


@pytest.mark.req("R123")
def test_fault_at_any_statement_or_commit_of_a_revoke_leaves_nothing(source: Source) -> None:
    order, before, struck = source.order(), source.parts(), list[str]()
    while True:
        watch = source.watched(lambda number, _text: number == len(struck) + 1)
        with watch, suppress(ConnectionResetError):
            source.revoke(order)
        if watch.struck is None or watch.written:  # nothing is left that could break off before the commit
            break
        struck.append(watch.struck)
        assert source.parts() == before, f"fault {len(struck)}: {watch.struck}"
    answer = source.revoke(order)
    after = source.parts()
    assert [name for name in PARTS if after[name] == before[name]] == []
    assert (len(answer.targets), len(answer.tombstones)) == (len(after["targets"]), len(after["tombstones"]))
    assert COMMIT in struck
    assert {found[3] for text in struck if (found := WRITES.match(text))} >= TABLES


@pytest.mark.req("R123")
def test_revoke_commits_all_that_it_writes_once(source: Source) -> None:
    with source.watched() as watch:
        source.revoke(source.order())
    assert len(watch.written) == 1
    assert watch.written[0] >= TABLES


@pytest.mark.req("R123")
def test_neighbour_is_as_before_after_a_revoke(source: Source) -> None:
    def others() -> list[tuple[Any, ...]]:
        return [row for row in source.parts()["values"] if row[1] != ANNA.user or row[3] != "passport"]

    before = others()
    source.revoke(source.order())
    assert others() == before
    assert [fact.key for fact in source.adapter.store.current(ANNA)] == ["seat"]


@pytest.mark.req("R123")
@pytest.mark.parametrize("place", ["first statement", COMMIT])
def test_job_stays_requested_while_its_source_fails(stage: Bench, source: Source, place: str) -> None:
    assert stage.ledger.may_look("source"), "the fault is for the revoke, not for the look for what has expired"
    job, before = stage.file(), source.parts()
    with source.watched(lambda _number, text: text == COMMIT or place != COMMIT) as watch:
        stage.run()
    assert watch.struck is not None
    assert stage.view(job).state is JobState.REQUESTED
    assert source.parts() == before
    for table in ("deletion_targets", "tombstones", "deletion_receipts"):
        assert stage.rows(f"SELECT * FROM {table}") == []  # noqa: S608 - tables of this test
    stage.skip_pauses()
    stage.run()
    assert stage.view(job).state is JobState.COMPLETED
    assert {row[3] for row in source.parts()["values"] if row[1] == ANNA.user} == {"seat"}
