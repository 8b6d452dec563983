"""Two people who have told the same in all five stores, of one of whom something was forgotten by a job."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache, partial
from pathlib import Path
from typing import Final, TypeAlias

import pytest

from adapters.drafts import Fault, State
from adapters.memory import Constraint, Kept, Reach, SourceKind
from adapters.memory.candidates import CandidateState
from adapters.memory.chains import TaskScope
from orchestrator import Scope, Selector, SelectorKind, Target, bootstrap
from orchestrator.domain.job import Result
from orchestrator.domain.states import JobState
from tests.fakes import FakeClock
from tests.integration.five_stores import ANNA, BERTA, NOW, SECRET, TURN_6, Died, Five, five_in
from tests.servers import fake_redis

KEY, SOURCE, MEMORY, SUBJECT = SelectorKind.KEY, SelectorKind.SOURCE, SelectorKind.MEMORY, SelectorKind.SUBJECT
BEFORE: Final = "before.copy"
"""What was taken of the source database before anything was forgotten; no manifest names it."""
VISA: Final = "The visa number is V7654321."
MEAL: Final = "Eats neither nuts nor meat."


@dataclass(kw_only=True)
class Teller:
    """One person in all five stores, and what slow writers have read before anything was forgotten.

    `text` is what is going to be forgotten, `words` tells it in others.
    """

    five: Five
    who: Scope
    text: str
    words: str
    fact: Target | None = None
    visa: int = 0
    meal: int = 0
    revision: int = 0

    def tell(self) -> None:
        """Tell facts and memories, and begin what goes on after the forgetting."""
        store, chains, runtime = self.five.memory.store, self.five.memory.chains, self.five.drafts.runtime
        self.fact = self.five.learn(self.who)
        store.put(self.who, "seat", "aisle", self.told)
        self.new("summary-8", SourceKind.MODEL, self.told)
        self.visa = chains.remember(self.task, "task", VISA, self.told)
        self.meal = chains.remember(self.task, "task", MEAL, self.new("turn-7"))
        self.revision = store.revision(self.who)
        runtime.submit(self.who, "published")
        runtime.run(self.who, "published")
        runtime.submit(self.who, "begun")
        with pytest.raises(Died):
            runtime.run(self.who, "begun", fault=dying)
        runtime.submit(self.who, "waiting")

    @property
    def told(self) -> str:
        return self.name(TURN_6)

    @property
    def task(self) -> TaskScope:
        return TaskScope(self.who.user, "trips", self.who.tenant)

    def name(self, source: str) -> str:
        return f"{self.who.user}/{source}"

    def new(self, source: str, kind: SourceKind = SourceKind.USER_MESSAGE, *behind: str) -> str:
        """Register a source, and give its name."""
        name = self.name(source)
        self.five.memory.store.register_source(self.who, name, kind=kind, derived_from=behind)
        return name

    def exported(self, *behind: str) -> str:
        return self.new("export-2025", SourceKind.DOCUMENT, *behind)

    def summarised(self) -> str:
        return self.new("summary-9", SourceKind.MODEL, self.name("summary-8"))

    def enter(self) -> bool:
        assert self.fact is not None
        return self.five.enter(self.who, self.fact, self.told) == 0

    def fill(self) -> bool:
        assert self.fact is not None
        return self.five.fill(self.who, self.fact, self.revision)

    def put(self, source: str, text: str | None = None, key: str = "passport", **how: bool) -> bool:
        return self.five.memory.store.put(self.who, key, text or self.text, source, **how) > 0

    def replace(self, source: str, text: str | None = None, key: str = "passport") -> bool:
        store = self.five.memory.store
        read = {fact.key: fact.version for fact in store.current(self.who)}
        return store.replace(self.who, key, text or self.text, source, expected_version=read.get(key, 0)) > 0

    def records(self, source: str) -> bool:
        return self.five.memory.preferences.record(self.who, "passport", self.text, source).sequence > 0

    def prefers(self, source: str) -> bool:
        return self.five.memory.preferences.prefer(self.who, "passport", self.text, source).sequence > 0

    def propose(self, source: str, text: str | None = None, key: str = "passport") -> bool:
        candidates = self.five.memory.candidates
        made = candidates.propose(self.who, key, text or self.text, source, proposed_by="extractor-7")
        return made.state is CandidateState.PENDING

    def state(self, source: str, reach: Reach = Reach.PROJECT, key: str = "passport") -> bool:
        taken = self.five.memory.statements.take(self.who, key, self.text, source, reach=reach)
        return isinstance(taken, Kept | Constraint)

    def remember(self, source: str, text: str | None = None, level: str = "task") -> bool:
        return self.five.memory.chains.remember(self.task, level, text or self.text, source) > 0

    def correct(self, source: str, text: str | None = None) -> bool:
        return self.five.memory.chains.correct(self.task, self.meal, text or self.text, source) > 0

    def goes_on(self, job: str) -> bool:
        """Let another runner take over a draft job that was submitted before."""
        self.five.clock.at += timedelta(minutes=1)
        return self.five.drafts.runtime.run(self.who, job).state is State.PUBLISHED

    def writes(self, added: str) -> bool:
        """Let a writer make a report of what holds now, and add something."""
        runtime = self.five.drafts.runtime
        runtime.submit(self.who, "anew", keys=["seat"])
        return runtime.run(self.who, "anew", lambda given: f"{given}; {added}").state is State.PUBLISHED

    def builds_upon(self, report: str) -> bool:
        return self.five.drafts.runtime.submit(self.who, "upon", upon=[report]).state is State.OPEN

    def put_back(self) -> bool:
        """Put back the copy of before; tell whether what it holds is there again."""
        ledger, memory = self.five.control.ledger, self.five.memory
        memory.restore(
            self.five.control.settings.state_dir / BEFORE, ledger.tombstones(), partial(ledger.raise_epoch, "memory")
        )
        facts = {fact.key for fact in memory.store.current(self.who)}
        return "passport" in facts or bool(memory.chains.recall(self.task, "visa number"))


Open: TypeAlias = Callable[[SelectorKind], tuple[Teller, Teller]]


@pytest.fixture(scope="module")
def answers_url() -> Iterator[str]:
    """Give one Redis for many deployments: each has keys of its own in it, as it has a keyring of its own."""
    with fake_redis() as url:
        yield url


@pytest.fixture
def five(tmp_path: Path, answers_url: str) -> Iterator[Five]:
    """Give five new stores."""
    with five_in(tmp_path / "state", answers_url) as made:
        yield made


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory, answers_url: str) -> Iterator[Open]:
    """Give two people who have told the same, of one of whom a job has forgotten it; made once for each kind."""
    with ExitStack() as opened:

        @cache
        def prepare(kind: SelectorKind) -> tuple[Teller, Teller]:
            five = opened.enter_context(five_in(tmp_path_factory.mktemp(kind) / "state", answers_url))
            text, words = (VISA, "Travels on V7654321.") if kind is MEMORY else (SECRET, "Travels on P1234567.")
            anna, berta = (Teller(five=five, who=who, text=text, words=words) for who in (ANNA, BERTA))
            anna.tell()
            berta.tell()
            state = five.control.settings.state_dir
            with (
                closing(sqlite3.connect(state / "memory.db")) as live,
                closing(sqlite3.connect(state / BEFORE)) as copy,
            ):
                live.backup(copy)
            values = {KEY: "passport", SOURCE: anna.told, MEMORY: str(anna.visa), SUBJECT: None}
            job = five.request(Selector(kind=kind, value=values[kind]))
            five.run()
            assert (five.view(job).state, five.view(job).result) == (JobState.COMPLETED, Result.ERASED)
            return anna, berta

        yield prepare


@pytest.fixture
def forgotten(prepared: Open, tmp_path: Path) -> Iterator[Open]:
    """Give the same two people in a copy of that deployment, which the test may change."""
    with ExitStack() as opened:

        def open_copy(kind: SelectorKind) -> tuple[Teller, Teller]:
            anna, berta = prepared(kind)
            shutil.copytree(anna.five.control.settings.state_dir, tmp_path / "state")
            five = opened_again(tmp_path / "state", FakeClock(NOW))
            opened.callback(closed, five)
            return replace(anna, five=five), replace(berta, five=five)

        yield open_copy


def opened_again(state: Path, clock: FakeClock) -> Five:
    """Open the stores of a state directory as its processes do when they are started again."""
    control = bootstrap.open_control(state, clock)
    return Five(control, bootstrap.open_engine(control), clock)


def closed(five: Five) -> None:
    """Let every process of a deployment end."""
    for adapter in five.engine.adapters.values():
        adapter.close()
    five.control.close()


def dying(passed: Fault) -> None:
    if passed is Fault.AFTER_COLLECT:
        raise Died
