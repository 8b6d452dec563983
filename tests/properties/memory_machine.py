"""Jobs beside the calls of applications: whatever can be read afterwards has to be the same as in plain lists."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import uuid4

from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from orchestrator import (
    EraseOrder,
    Selector,
    SelectorKind,
    Target,
)
from tests.properties.machine_calls import Libraries
from tests.properties.machine_people import (
    KEYS,
    PLACES,
    REACHES,
    SAID,
    STYLES,
)
from tests.properties.plain_candidates import Proposed
from tests.properties.plain_facts import Row
from tests.properties.plain_gate import Place
from tests.properties.plain_preferences import Said


@dataclass
class Job:
    """A job that has revoked and not yet erased."""

    order: EraseOrder
    targets: tuple[Target, ...]
    going: list[Row]
    said: list[Said]
    proposed: list[Proposed]


class MemoryMachine(Libraries):
    """The libraries and the plain lists see the same calls and jobs; whatever can be read has to be the same."""

    def __init__(self) -> None:
        super().__init__()
        self.jobs: list[Job] = []
        self.seen: dict[Place, tuple[int, object]] = {}
        self.turn = 0

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
            scope=self.scope_of(place),
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
        """Look at one place after another, and at all of them in the end."""
        self.turn = (self.turn + 1) % len(PLACES)
        self.look(PLACES[self.turn])

    def teardown(self) -> None:
        for place in PLACES:
            self.look(place)

    def look(self, place: Place) -> None:
        scope = self.scope_of(place)
        facts = [(fact.key, fact.version, fact.value) for fact in self.adapter.store.current(scope)]
        assert facts == self.facts.current(place, self.now)
        for key in STYLES:
            state = self.adapter.preferences.state(scope, key)
            assert (state.sequence, state.value) == self.preferences.state(place, key)
        waiting = sorted((row.id, row.text) for row in self.candidates.rows if row.waits and row.place == place)
        assert [(c.id, c.value) for c in self.adapter.candidates.pending(scope)] == waiting
        told = self.facts.lasting(place)
        revision = self.adapter.store.revision(scope)
        before = self.seen.setdefault(place, (revision, told))
        # What can be read changes with its revision, which never falls.
        assert revision >= before[0]
        assert revision > before[0] or told == before[1]
        self.seen[place] = (revision, told)
