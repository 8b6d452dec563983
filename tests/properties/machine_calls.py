"""The calls of applications: the memory libraries and plain lists take the same ones, and answer alike."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypeVar
from uuid import uuid4

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from adapters.memory import MemoryAdapter, SourceKind
from adapters.memory.candidates.errors import NotConfirmed
from adapters.memory.preferences import Applying, EventNotFound
from adapters.memory.versions import VersionConflict
from orchestrator import (
    GateRefused,
    Refusal,
    Scope,
)
from tests.properties.machine_people import (
    HEARD,
    KEYS,
    LATER,
    NAMES,
    PLACES,
    REACHES,
    SAID,
    STYLES,
    TEXTS,
    TOLD,
)
from tests.properties.plain_candidates import PlainCandidates, Proposed
from tests.properties.plain_facts import PlainFacts
from tests.properties.plain_gate import Place, PlainGate
from tests.properties.plain_preferences import PlainPreferences, Said

BEGIN = datetime(2026, 11, 1, tzinfo=UTC)


T = TypeVar("T")


@dataclass
class Hands:
    at: datetime = BEGIN

    def now(self) -> datetime:
        return self.at


class Libraries(RuleBasedStateMachine):
    """The libraries and the plain lists take the same calls."""

    adapter: MemoryAdapter
    clock: Hands

    def __init__(self) -> None:
        super().__init__()
        # One database for all runs: each has a tenant of its own, and what the others left concerns it not.
        self.tenant = f"tenant-{uuid4()}"
        self.clock.at = BEGIN
        self.gate = PlainGate()
        self.facts = PlainFacts(self.gate)
        self.preferences = PlainPreferences(self.gate)
        self.candidates = PlainCandidates(self.gate, self.facts)
        self.facts.others = self.candidates.texts_that_stand
        for name, place, parents, kind in HEARD:
            self.hear_of(name, place, set(parents), kind)

    def scope_of(self, place: Place) -> Scope:
        return Scope(tenant=self.tenant, user=place[0], project=place[1])

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
        got = self.tried(lambda: store.register_source(self.scope_of(place), name, kind=kind, derived_from=parents))
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
        got = self.tried(lambda: store.put(self.scope_of(place), key, text, source, expires, user_statement=stated))
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
            lambda: store.replace(
                self.scope_of(place), key, text, source, expected_version=expected, user_statement=stated
            )
        )
        assert got == self.facts.replace(place, key, text, source, expected, stated=stated)

    @rule(said=st.sampled_from(SAID), key=st.sampled_from(KEYS), text=st.sampled_from(TEXTS))
    def propose(self, said: tuple[Place, str], key: str, text: str) -> None:
        place, source = said
        library = self.adapter.candidates
        got = self.tried(lambda: library.propose(self.scope_of(place), key, text, source, proposed_by="extractor"))
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
        scope, told = self.scope_of(row.place), self.gate.sources.get(source)
        if told is None or not told.is_message or told.place != row.place:
            with pytest.raises(NotConfirmed):
                library.accept(scope, row.id, source=source, expected_version=expected)
            return
        got = self.tried(lambda: library.accept(scope, row.id, source=source, expected_version=expected))
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
        got = self.tried(lambda: write(self.scope_of(place), key, text, source, user_statement=stated).sequence)
        told = self.preferences.record(place, key, text, source, stated=stated)
        assert got == (told if isinstance(told, Refusal) else told.sequence)
        if at_once and isinstance(told, Said):
            assert self.preferences.apply(told)

    @precondition(lambda self: self.preferences.log)
    @rule(number=st.integers(min_value=0, max_value=9))
    def apply_late(self, number: int) -> None:
        said = self.preferences.log[-1 - number % len(self.preferences.log)]
        scope, log = self.scope_of(said.place), self.adapter.preferences
        if said.erased:
            with pytest.raises(EventNotFound):
                log.apply(scope, said.sequence)
        else:
            assert (log.apply(scope, said.sequence) is Applying.APPLIED) == self.preferences.apply(said)

    @rule(place=st.sampled_from(PLACES), key=st.sampled_from(STYLES), back=st.integers(min_value=0, max_value=6))
    def resolve(self, place: Place, key: str, back: int) -> None:
        as_of = max(0, self.gate.position - back)
        got = self.adapter.preferences.resolve(self.scope_of(place), key, as_of)
        assert (got.state.value, got.value, got.sequence) == self.preferences.resolve(place, key, as_of)

    @rule(place=st.sampled_from(PLACES))
    def replay(self, place: Place) -> None:
        """Nothing but what is applied by then is late: afterwards all of it is."""
        self.adapter.preferences.replay(self.scope_of(place))
        for said in self.preferences.log:
            if said.place == place and not said.erased:
                self.preferences.apply(said)

    @rule(place=st.sampled_from(REACHES), key=st.sampled_from(KEYS))
    def forget(self, place: Place, key: str) -> None:
        assert self.adapter.store.forget(self.scope_of(place), key).versions == self.facts.forget(place, key)

    @rule(seconds=st.sampled_from((1, 30, 60)))
    def wait(self, seconds: int) -> None:
        self.clock.at += timedelta(seconds=seconds)
