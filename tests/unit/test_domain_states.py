"""The table of states and moves, and the picture made from it."""

from __future__ import annotations

import re
from itertools import pairwise, product
from pathlib import Path

import pytest

from orchestrator.domain.states import NEEDS, TRANSITIONS, JobState, allowed, diagram

PAGE = Path(__file__).parents[2] / "docs" / "state-machine.md"

MOVES = {
    ("requested", "source_revoked"),
    ("requested", "cancelled"),
    ("source_revoked", "derived_cleanup"),
    ("derived_cleanup", "verified"),
    ("verified", "completed"),
}


@pytest.mark.req("R121")
@pytest.mark.parametrize(("old", "new"), list(product(JobState, JobState)))
def test_every_pair_of_states_is_allowed_or_refused_as_listed(old: JobState, new: JobState) -> None:
    assert allowed(old, new) is ((old.value, new.value) in MOVES)


@pytest.mark.req("R121")
def test_a_requested_job_cannot_jump_to_verified() -> None:
    assert not allowed(JobState.REQUESTED, JobState.VERIFIED)


@pytest.mark.req("R120")
def test_the_five_states_follow_each_other_in_order() -> None:
    path = [JobState(s) for s in ("requested", "source_revoked", "derived_cleanup", "verified", "completed")]
    assert all(allowed(old, new) for old, new in pairwise(path))
    for old, following in pairwise(path[1:]):
        assert TRANSITIONS[old] == {following}, "there is no other way on"


@pytest.mark.req("R120")
@pytest.mark.parametrize("start", list(JobState))
def test_no_state_can_be_reached_twice(start: JobState) -> None:
    reached: set[JobState] = set()
    ahead = set(TRANSITIONS[start])
    while ahead:
        state = ahead.pop()
        reached.add(state)
        ahead |= TRANSITIONS[state] - reached
    assert start not in reached


def test_every_state_has_a_row_and_every_move_says_what_it_needs() -> None:
    assert set(TRANSITIONS) == set(JobState)
    assert set(NEEDS) == {(old, new) for old, targets in TRANSITIONS.items() for new in targets}
    assert all(NEEDS.values())


@pytest.mark.parametrize("end", [JobState.COMPLETED, JobState.CANCELLED])
def test_an_ended_job_goes_nowhere(end: JobState) -> None:
    assert TRANSITIONS[end] == frozenset()


def test_the_diagram_draws_each_move_once() -> None:
    lines = diagram().splitlines()
    assert lines[0] == "stateDiagram-v2"
    drawn = [m.groups() for line in lines if (m := re.fullmatch(r"    (\w+) --> (\w+): .+", line))]
    assert sorted(drawn) == sorted(MOVES)
    assert [line for line in lines if line.endswith("[*]")] == ["    completed --> [*]", "    cancelled --> [*]"]


def test_the_page_shows_the_generated_diagram() -> None:
    blocks = re.findall(r"```mermaid\n(.*?)\n```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert blocks == [diagram()], "paste diagram() into docs/state-machine.md"
