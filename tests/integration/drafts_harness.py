"""A source database with facts and draft jobs in it, on either database, and the hands of a test on both."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
import sqlalchemy as sa
import structlog

from adapters.drafts import DraftRuntime, DraftsAdapter, Fault, MemoryChanged, State
from adapters.memory import MemoryAdapter, SourceKind
from orchestrator import (
    AdapterContext,
    Erased,
    EraseOrder,
    Gate,
    Keyring,
    Scope,
    Seen,
    Selector,
    SelectorKind,
    Target,
)
from tests.fakes import FakeClock

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
A = Scope(tenant="tenant-a", user="user-1", project="project-A")
B = replace(A, project="project-B")
ALL = replace(A, project=None)
NEIGHBOUR = replace(A, user="user-2")
FOREIGN = replace(A, tenant="tenant-b")
SUBJECT = Selector(kind=SelectorKind.SUBJECT)
LANGUAGE = Selector(kind=SelectorKind.KEY, value="language")
EXPIRED = Selector(kind=SelectorKind.EXPIRED)
SECRET = "zh-CN, from Harbin"
EXACTLY = r"^memory_changed_or_expired: submit a new job id$"


class Died(BaseException):
    """The process has died."""


def name_of(scope: Scope, source: str) -> str:
    """Name a source of a scope: two scopes of a tenant share none."""
    return f"{hashlib.sha256(scope.canonical().encode()).hexdigest()[:8]}/{source}"


def dying(at: Fault) -> Callable[[Fault], None]:
    def die(passed: Fault) -> None:
        if passed is at:
            raise Died

    return die


@dataclass
class Desk:
    memory: MemoryAdapter
    drafts: DraftsAdapter
    clock: FakeClock

    @property
    def runtime(self) -> DraftRuntime:
        return self.drafts.runtime

    def at(self, seconds: float) -> None:
        self.clock.at = EPOCH + timedelta(seconds=seconds)

    def tell(
        self, key: str, value: str, scope: Scope = A, *, source: str = "turn-1", expires: float = math.inf
    ) -> Target:
        """Let a user tell a fact, and give the record."""
        name, store = name_of(scope, source), self.memory.store
        if not store.knows_source(scope, name):
            store.register_source(scope, name)
        version = store.put(scope, key, value, name, expires, confirmed=True, user_statement=True)
        (fact,) = [f.id for f in store.current(scope, 0.0) if f.key == key]
        return Target(kind="fact", id=fact, version=version)

    def summarise(self, source: str, *behind: str, scope: Scope = A) -> str:
        """Register a source that a model has made from others, and give its name."""
        name = name_of(scope, source)
        parents = [name_of(scope, parent) for parent in behind]
        self.memory.store.register_source(scope, name, kind=SourceKind.MODEL, derived_from=parents)
        return name

    def die(self, job: str, at: Fault, scope: Scope = A) -> None:
        """Let a runner die at that point."""
        with pytest.raises(Died):
            self.runtime.run(scope, job, fault=dying(at))

    def publish(self, job: str, scope: Scope = A, **more: Any) -> str:  # noqa: ANN401 - what `submit` takes
        """Submit and run a job; give its report."""
        self.runtime.submit(scope, job, **more)
        report = self.runtime.run(scope, job).report
        assert report is not None
        return report.text

    def texts(self, scope: Scope | None = None) -> list[str]:
        """Read the texts of all drafts, or those of one scope, by hand."""
        rows = self.rows("SELECT tenant, user_id, project, text FROM drafts ORDER BY text")
        return [row[3] for row in rows if scope is None or tuple(row[:3]) == (scope.tenant, scope.user, scope.project)]

    def states(self) -> list[tuple[str, str]]:
        return [(name, state) for name, state in self.rows("SELECT name, state FROM draft_jobs ORDER BY name")]

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with self.memory.store._engine.begin() as connection:
            return [tuple(row) for row in connection.execute(sa.text(query))]

    def execute(self, statement: str) -> None:
        with self.memory.store._engine.begin() as connection:
            connection.execute(sa.text(statement))

    def order(self, selector: Selector = LANGUAGE, scope: Scope = A, *, job: UUID | None = None) -> EraseOrder:
        deadline = self.clock.now() + timedelta(seconds=20)
        return EraseOrder(job=job or uuid4(), unit=uuid4(), key="k", scope=scope, selector=selector, deadline=deadline)

    def revoke(self, order: EraseOrder) -> EraseOrder:
        """Let the source revoke; give the order with what it named."""
        (answer,) = self.memory.revoke([order])
        return replace(order, known=answer.targets, revision=answer.revision)

    def find(self, order: EraseOrder) -> tuple[Target, ...]:
        """Find in two passes, as the engine does."""
        found: dict[Target, None] = {}
        known = order.known
        for _ in range(2):
            (holding,) = self.drafts.find([replace(order, known=known)])
            found |= dict.fromkeys(holding.targets)
            known = (*order.known, *found)
        return tuple(found)

    def clean_up(self, order: EraseOrder) -> tuple[Erased, Seen]:
        """Find, erase and look again, with what the source named."""
        order = replace(order, targets=self.find(order))
        return self.drafts.erase([order])[0], self.drafts.verify([order])[0]


def ends(desk: Desk, job: str = "report-001") -> None:
    """See a job fail for good, with nothing published."""
    with pytest.raises(MemoryChanged, match=EXACTLY):
        desk.runtime.run(A, job)
    told = desk.runtime.inspect(A, job)
    failure = "memory_changed_or_expired: submit a new job id"
    assert (told.state, told.failure, told.report) == (State.FAILED, failure, None)


def opened(folder: Path, url: str) -> Iterator[Desk]:
    """Open both adapters on one database; the clock stands at second 0."""
    clock = FakeClock(EPOCH)
    gate = Gate(Keyring.create())
    context = AdapterContext(clock=clock, gate=gate, log=structlog.get_logger(), state_dir=folder)
    with closing(MemoryAdapter(context, url=url)) as memory, closing(DraftsAdapter(context, url=url)) as drafts:
        yield Desk(memory, drafts, clock)


@pytest.fixture(params=["sqlite", "postgresql"])
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Desk]:
    """Give a desk on each database."""
    url = f"sqlite:///{tmp_path / 'm.db'}" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    yield from opened(tmp_path, url)


@pytest.fixture
def lone(tmp_path: Path) -> Iterator[Desk]:
    """Give a desk on SQLite."""
    yield from opened(tmp_path, f"sqlite:///{tmp_path / 'm.db'}")


def published(desk: Desk, *scopes: Scope) -> None:
    """Let a report be made of the language in each scope, and one of the theme."""
    for scope in scopes:
        desk.tell("language", SECRET, scope)
        desk.tell("theme", "dark", scope)
        desk.publish("report-001", scope, keys=["language"])
        desk.publish("report-002", scope, keys=["theme"])


def with_drafts(state: Path, require: str = "logical", url: str = "sqlite:///memory.db") -> None:
    """Enable the drafts in the configuration of a state directory, in the database of the facts."""
    file = state / "expunge.toml"
    text = file.read_text().partition("\n[adapters.drafts]")[0]
    file.write_text(f'{text}\n[adapters.drafts]\nrequired = true\nrequire = "{require}"\nurl = "{url}"\n')
