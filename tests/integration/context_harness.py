"""A source database with facts, memories and preferences, on either database, and people who have inputs assembled."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from adapters.context import Assembled, Assembler, Inspector, Ranked, Ranking, Record
from adapters.memory.chains import TaskScope
from adapters.memory.engine import writing
from adapters.memory.preferences import Event, Operation
from adapters.memory.preferences.event import insert
from adapters.memory.session import Session
from orchestrator import Scope, Target
from tests.integration.drafts_harness import A, Desk, name_of, opened

DATA: Final[Mapping[str, Any]] = json.loads((Path(__file__).parents[1] / "data" / "events.json").read_text("utf-8"))
EVENTS: Final[Mapping[int, Mapping[str, Any]]] = {row["sequence"]: row for row in DATA["events"]}
KEY: Final = "answer_detail"
TRIPS: Final = Scope(tenant="tenant-a", user="user-1", project="trips")
READER: Final = Scope(tenant="tenant-a", user="reader-A")
COMET: Final = Scope(tenant="tenant-a", user="reader-A", project="Comet")


def person(scope: Scope = A, projects: Collection[str] | None = None) -> Session:
    """Give a session of the person of a scope: a member of these projects, as they are then, or of all."""
    is_member = (lambda _: True) if projects is None else projects.__contains__
    return Session(tenant=scope.tenant, user=scope.user, is_member=is_member)


def everything(records: Iterable[Record]) -> Ranked:
    """Rank all that is eligible, in its own order."""
    return Ranked(order=tuple(record.target for record in records))


@dataclass
class Study(Desk):
    """A desk at which inputs are assembled."""

    def assembler(self, who: Session | None = None) -> Assembler:
        return Assembler(self.drafts, who or person())

    def inspector(self, scope: Scope = A) -> Inspector:
        return Inspector(self.memory, person(scope))

    def assemble(
        self,
        name: str = "turn-1",
        ranking: Ranking = everything,
        scope: Scope = A,
        **more: Any,  # noqa: ANN401 - what `assemble` takes
    ) -> Assembled:
        return self.assembler(person(scope)).assemble(name, ranking, project=scope.project, **more)

    def source(self, scope: Scope = A, source: str = "turn-1") -> str:
        """Register a message of a scope, where it is new, and give its name."""
        name = name_of(scope, source)
        if not self.memory.store.knows_source(scope, name):
            self.memory.store.register_source(scope, name)
        return name

    def prefer(self, key: str, value: str | None, scope: Scope = A, source: str = "turn-1") -> Event:
        return self.memory.preferences.prefer(scope, key, value, self.source(scope, source), user_statement=True)

    def remember(self, text: str, scope: Scope = TRIPS, *, level: str = "task", ttl_days: int | None = None) -> Target:
        name = self.source(scope)
        memory = self.memory.chains.remember(task_of(scope), level, text, name, ttl_days)
        return Target(kind="memory", id=str(memory), version=memory)

    def accept(self, *sequences: int, apply: bool = True) -> None:
        """Let events of the file be accepted, with their own sequences, and applied."""
        for row in (EVENTS[sequence] for sequence in sequences):
            project = None if row["scope"] == "global" else row["scope"].removeprefix("project:")
            scope = Scope(tenant=READER.tenant, user=row["user"], project=project)
            source = f"{row['user']}/said"
            if not self.memory.store.knows_source(scope, source):
                self.memory.store.register_source(Scope(tenant=scope.tenant, user=scope.user), source)
            event = Event(
                id=f"event-{row['sequence']}",
                sequence=row["sequence"],
                key=row["key"],
                operation=Operation(row["operation"]),
                value=row["value"],
                source=source,
                accepted_at_us=0,
            )
            with writing(self.memory._engine, [scope.tenant]) as connection:
                insert(connection, scope, event)
            if apply:
                self.memory.preferences.apply(scope, row["sequence"])

    def inputs(self, scope: Scope | None = None) -> list[str]:
        """Read the texts of all inputs, or of those of one scope, by hand."""
        rows = self.rows("SELECT tenant, user_id, project, text FROM drafts WHERE step = 'input' ORDER BY text")
        return [row[3] for row in rows if scope is None or tuple(row[:3]) == (scope.tenant, scope.user, scope.project)]


def task_of(scope: Scope) -> TaskScope:
    return TaskScope(scope.user, scope.project or "none", scope.tenant)


def told(made: Assembled) -> list[str]:
    """Give the texts that went in, in their order."""
    return [item.text for item in made.items]


def with_study(desk: Desk) -> Study:
    return Study(desk.memory, desk.drafts, desk.clock)


@pytest.fixture(params=["sqlite", "postgresql"])
def study(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Study]:
    """Give a study on each database."""
    url = f"sqlite:///{tmp_path / 'm.db'}" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    for desk in opened(tmp_path, url):
        yield with_study(desk)


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Study]:
    """Give a study on SQLite."""
    for desk in opened(tmp_path, f"sqlite:///{tmp_path / 'm.db'}"):
        yield with_study(desk)
