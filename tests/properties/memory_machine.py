"""The memory libraries and plain lists under the same calls: whatever can be read has to be the same in both."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

import pytest
import structlog
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from adapters.memory import MemoryAdapter, SourceKind
from adapters.memory.candidates.errors import NotConfirmed
from adapters.memory.preferences import Applying, EventNotFound
from adapters.memory.versions import VersionConflict
from orchestrator import (
    AdapterContext,
    EraseOrder,
    Gate,
    GateRefused,
    Keyring,
    Refusal,
    Scope,
    Selector,
    SelectorKind,
    Target,
)
from tests.properties.plain_candidates import PlainCandidates, Proposed
from tests.properties.plain_facts import PlainFacts, Row
from tests.properties.plain_gate import Place, PlainGate
from tests.properties.plain_preferences import PlainPreferences, Said

TENANT = "acme"
PLACES: tuple[Place, ...] = (("anna", "trips"), ("anna", "home"), ("anna", None), ("berta", "trips"))
REACHES: tuple[Place, ...] = (*PLACES, ("berta", None))
KEYS = ("seat", "meal")
TEXTS = ("aisle", "at row 7", "aisle at row 7", "no nuts")
HEARD: tuple[tuple[str, Place, tuple[str, ...], SourceKind], ...] = (
    ("turn-1", ("anna", "trips"), (), SourceKind.USER_MESSAGE),
    ("summary-1", ("anna", "trips"), ("turn-1",), SourceKind.MODEL),
    ("turn-2", ("anna", "home"), (), SourceKind.USER_MESSAGE),
    ("turn-3", ("berta", "trips"), (), SourceKind.USER_MESSAGE),
)
"""What is accepted before anything else."""
LATER = ("turn-4", "summary-2", "turn-5")
TOLD = ("brief", "detailed", "in detail", None)
"""What is preferred: words that no fact has. None takes it back."""
STYLES = ("tone", "length")
NAMES = (*(name for name, *_ in HEARD), *LATER)
OWN = tuple((place, name) for name, (user, _), *_ in HEARD for place in PLACES if place[0] == user)
SAID = (*OWN, *OWN, *((place, name) for place in PLACES for name in LATER), (("berta", "trips"), "turn-1"))
"""Who writes from what: mostly from sources of their own."""
BEGIN = datetime(2026, 11, 1, tzinfo=UTC)
GATE = Gate(Keyring.create())


T = TypeVar("T")


@dataclass
class Hands:
    at: datetime = BEGIN

    def now(self) -> datetime:
        return self.at


@dataclass
class Job:
    """A job that has revoked and not yet erased."""

    order: EraseOrder
    targets: tuple[Target, ...]
    going: list[Row]
    said: list[Said]
    proposed: list[Proposed]


def scope_of(place: Place) -> Scope:
    return Scope(tenant=TENANT, user=place[0], project=place[1])


class MemoryMachine(RuleBasedStateMachine):
    """The libraries and the plain lists take the same calls; whatever can be read has to be the same."""

    url: Callable[[Path], str]

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        folder = Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        self.clock = Hands()
        context = AdapterContext(clock=self.clock, gate=GATE, log=structlog.get_logger(), state_dir=folder)
        self.adapter = MemoryAdapter(context, url=type(self).url(folder))
        self.stack.callback(self.adapter.close)
        self.gate = PlainGate()
        self.facts = PlainFacts(self.gate)
        self.preferences = PlainPreferences(self.gate)
        self.candidates = PlainCandidates(self.gate, self.facts)
        self.facts.others = self.candidates.texts_that_stand
        self.jobs: list[Job] = []
        self.seen: dict[Place, tuple[int, object]] = {}
        for name, place, parents, kind in HEARD:
            self.hear_of(name, place, set(parents), kind)

    def teardown(self) -> None:
        self.stack.close()

    @property
    def now(self) -> float:
        return self.clock.at.timestamp()

    def tried(self, call: Callable[[], T]) -> Refusal | T | None:
        """Give what a call gives, why the gate refused it, or None where somebody else was faster."""
        try:
            return call()
        except GateRefused as error:
            return error.refusal
        except VersionConflict:
            return None

    @rule(
        name=st.sampled_from(LATER),
        place=st.sampled_from(PLACES),
        parents=st.sets(st.sampled_from(NAMES), max_size=2),
        kind=st.sampled_from((SourceKind.USER_MESSAGE, SourceKind.MODEL)),
    )
    def hear(self, name: str, place: Place, parents: set[str], kind: SourceKind) -> None:
        if name not in self.gate.sources:  # with what it was accepted is told in tests of its own
            self.hear_of(name, place, {parent for parent in parents if parent in self.gate.sources}, kind)

    def hear_of(self, name: str, place: Place, parents: set[str], kind: SourceKind) -> None:
        store = self.adapter.store
        got = self.tried(lambda: store.register_source(scope_of(place), name, kind=kind, derived_from=parents))
        assert got == self.gate.accept(name, place, parents, is_message=kind is SourceKind.USER_MESSAGE)

    @rule(
        said=st.sampled_from(SAID),
        key=st.sampled_from(KEYS),
        text=st.sampled_from(TEXTS),
        lasts=st.sampled_from((math.inf, math.inf, 60.0)),
        stated=st.booleans(),
    )
    def put(self, said: tuple[Place, str], key: str, text: str, lasts: float, *, stated: bool) -> None:
        (place, source), expires = said, self.now + lasts
        store = self.adapter.store
        got = self.tried(lambda: store.put(scope_of(place), key, text, source, expires, user_statement=stated))
        assert got == self.facts.put(place, key, text, source, expires, stated=stated)

    @rule(
        said=st.sampled_from(SAID),
        key=st.sampled_from(KEYS),
        text=st.sampled_from(TEXTS),
        expected=st.integers(min_value=0, max_value=3),
        stated=st.booleans(),
    )
    def replace(self, said: tuple[Place, str], key: str, text: str, expected: int, *, stated: bool) -> None:
        (place, source), store = said, self.adapter.store
        got = self.tried(
            lambda: store.replace(scope_of(place), key, text, source, expected_version=expected, user_statement=stated)
        )
        assert got == self.facts.replace(place, key, text, source, expected, stated=stated)

    @rule(said=st.sampled_from(SAID), key=st.sampled_from(KEYS), text=st.sampled_from(TEXTS))
    def propose(self, said: tuple[Place, str], key: str, text: str) -> None:
        place, source = said
        library = self.adapter.candidates
        got = self.tried(lambda: library.propose(scope_of(place), key, text, source, proposed_by="extractor"))
        refusal = self.candidates.propose(place, key, text, source)
        if refusal is not None or isinstance(got, Refusal | None):
            assert got == refusal
        elif got.id not in {row.id for row in self.candidates.rows}:
            self.candidates.rows.append(Proposed(got.id, place, key, text, source))

    @precondition(lambda self: any(row.waits for row in self.candidates.rows))
    @rule(
        number=st.integers(min_value=0, max_value=9),
        source=st.sampled_from(NAMES),
        expected=st.integers(min_value=0, max_value=3),
    )
    def accept(self, number: int, source: str, expected: int) -> None:
        waiting = [row for row in self.candidates.rows if row.waits]
        row, library = waiting[number % len(waiting)], self.adapter.candidates
        told = self.gate.sources.get(source)
        if told is None or not told.is_message or told.place != row.place:
            with pytest.raises(NotConfirmed):
                library.accept(scope_of(row.place), row.id, source=source, expected_version=expected)
            return
        got = self.tried(lambda: library.accept(scope_of(row.place), row.id, source=source, expected_version=expected))
        assert got == self.candidates.accept(row, source, expected)

    @rule(
        said=st.sampled_from(SAID),
        key=st.sampled_from(STYLES),
        text=st.sampled_from(TOLD),
        stated=st.booleans(),
        at_once=st.booleans(),
    )
    def prefer(self, said: tuple[Place, str], key: str, text: str | None, *, stated: bool, at_once: bool) -> None:
        (place, source), log = said, self.adapter.preferences
        write = log.prefer if at_once else log.record
        got = self.tried(lambda: write(scope_of(place), key, text, source, user_statement=stated).sequence)
        told = self.preferences.record(place, key, text, source, stated=stated)
        assert got == (told if isinstance(told, Refusal) else told.sequence)
        if at_once and isinstance(told, Said):
            assert self.preferences.apply(told)

    @precondition(lambda self: self.preferences.log)
    @rule(number=st.integers(min_value=0, max_value=9))
    def apply_late(self, number: int) -> None:
        said = self.preferences.log[-1 - number % len(self.preferences.log)]
        scope, log = scope_of(said.place), self.adapter.preferences
        if said.erased:
            with pytest.raises(EventNotFound):
                log.apply(scope, said.sequence)
        else:
            assert (log.apply(scope, said.sequence) is Applying.APPLIED) == self.preferences.apply(said)

    @rule(place=st.sampled_from(PLACES), key=st.sampled_from(STYLES), back=st.integers(min_value=0, max_value=6))
    def resolve(self, place: Place, key: str, back: int) -> None:
        as_of = max(0, self.gate.position - back)
        got = self.adapter.preferences.resolve(scope_of(place), key, as_of)
        assert (got.state.value, got.value, got.sequence) == self.preferences.resolve(place, key, as_of)

    @rule(place=st.sampled_from(PLACES))
    def replay(self, place: Place) -> None:
        """Nothing but what is applied by then is late: afterwards all of it is."""
        self.adapter.preferences.replay(scope_of(place))
        for said in self.preferences.log:
            if said.place == place and not said.erased:
                self.preferences.apply(said)

    @rule(place=st.sampled_from(REACHES), key=st.sampled_from(KEYS))
    def forget(self, place: Place, key: str) -> None:
        assert self.adapter.store.forget(scope_of(place), key).versions == self.facts.forget(place, key)

    @rule(seconds=st.sampled_from((1, 30, 60)))
    def wait(self, seconds: int) -> None:
        self.clock.at += timedelta(seconds=seconds)

    @rule(place=st.sampled_from(REACHES), key=st.sampled_from((*KEYS, *STYLES)))
    def revoke_key(self, place: Place, key: str) -> None:
        self.revoke(place, Selector(kind=SelectorKind.KEY, value=key))

    @rule(said=st.sampled_from(SAID))
    def revoke_source(self, said: tuple[Place, str]) -> None:
        place, source = said
        self.revoke(place, Selector(kind=SelectorKind.SOURCE, value=source))

    @rule(place=st.sampled_from(REACHES))
    def revoke_subject(self, place: Place) -> None:
        self.revoke(place, Selector(kind=SelectorKind.SUBJECT))

    @rule(place=st.sampled_from(REACHES))
    def purge(self, place: Place) -> None:
        self.revoke(place, Selector(kind=SelectorKind.EXPIRED))

    def revoke(self, place: Place, selector: Selector) -> None:
        going = self.facts.name(place, selector, self.now)
        said, proposed = self.preferences.name(place, selector), self.candidates.name(place, selector)
        self.candidates.going = proposed
        order = EraseOrder(
            job=uuid4(),
            unit=uuid4(),
            key="k",
            scope=scope_of(place),
            selector=selector,
            deadline=self.clock.at + timedelta(seconds=20),
        )
        (answer,) = self.adapter.revoke([order])
        assert len(answer.targets) == len(going) + len(said) + len(proposed)
        self.facts.mark(place, selector, going, self.now)
        owner = self.gate.sources.get(selector.value or "")
        if selector.kind is SelectorKind.SOURCE and (owner is None or owner.place[0] == place[0]):
            self.gate.forget_source(str(selector.value))  # nobody blocks another user's
        elif selector.kind is SelectorKind.SUBJECT:
            self.gate.forget_subject(place)
        self.facts.revoke(going)
        self.preferences.mark(selector, said)
        self.candidates.mark(selector, proposed)
        self.preferences.revoke(said)
        self.candidates.revoke(proposed)
        self.jobs.append(Job(order, answer.targets, going, said, proposed))

    @precondition(lambda self: self.jobs)
    @rule(number=st.integers(min_value=0, max_value=9))
    def finish(self, number: int) -> None:
        job = self.jobs.pop(number % len(self.jobs))
        late = self.clock.at + timedelta(seconds=20)
        order = replace(job.order, targets=job.targets, known=job.targets, deadline=late)
        there = [row for row in job.going if any(row is each for each in self.facts.rows)]
        said = [each for each in job.said if not each.erased]
        proposed = [row for row in job.proposed if any(row is each for each in self.candidates.rows)]
        count = len(there) + len(said) + len(proposed)
        if job.targets:
            (erased,) = self.adapter.erase([order])
            assert (erased.erased, erased.already_absent) == (count, len(job.targets) - count)
        self.facts.erase(there)
        self.preferences.erase(said)
        self.candidates.rows = [row for row in self.candidates.rows if not any(row is each for each in proposed)]
        (seen,) = self.adapter.verify([order])
        assert seen.remaining == 0

    @invariant()
    def tells_the_same(self) -> None:
        for place in PLACES:
            scope = scope_of(place)
            facts = [(fact.key, fact.version, fact.value) for fact in self.adapter.store.current(scope)]
            assert facts == self.facts.current(place, self.now)
            for key in STYLES:
                state = self.adapter.preferences.state(scope, key)
                assert (state.sequence, state.value) == self.preferences.state(place, key)
            waiting = sorted((row.id, row.text) for row in self.candidates.rows if row.waits and row.place == place)
            assert [(c.id, c.value) for c in self.adapter.candidates.pending(scope)] == waiting
            told = self.facts.current(place, -math.inf)
            revision = self.adapter.store.revision(scope)
            before = self.seen.setdefault(place, (revision, told))
            # What can be read changes with its revision, which never falls.
            assert revision >= before[0]
            assert revision > before[0] or told == before[1]
            self.seen[place] = (revision, told)
