"""The log against a plain model of it, in any order of arrival and with anything erased, and the file in any order."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters.memory.preferences import Applying, Current, Operation, State
from orchestrator import Scope
from tests.integration.preferences_harness import DATA, LOOKUPS, TENANT, Hands, answer, hands, url

__all__ = ["hands", "url"]

SHARED = [HealthCheck.function_scoped_fixture]  # each example has a tenant of its own
_tenants = (f"{TENANT}-{n}" for n in itertools.count(1))
USERS, PROJECTS, KEYS = ("ann", "bert"), (None, "Comet", "Comet-2"), ("detail", "theme")
PLACES = [(user, project) for user in USERS for project in PROJECTS]


@pytest.mark.req("R89")
@settings(max_examples=12, deadline=None, suppress_health_check=SHARED)
@given(
    order=st.permutations(DATA["events"]),
    times=st.lists(st.integers(0, 2**50), min_size=6, max_size=6),
)
def test_order_of_arrival_and_times_change_none_of_the_answers(
    hands: Hands, order: Sequence[Mapping[str, Any]], times: Sequence[int]
) -> None:
    tenant = next(_tenants)
    for event, time in zip(order, times, strict=True):
        hands.accept([{**event, "accepted_at_us": time}], tenant)
        hands.log.apply(scope_in(tenant, event["user"], project_of(event)), event["sequence"])
    for lookup in LOOKUPS.values():
        assert answer(hands.look_up(lookup, tenant)) == lookup["expected"]
    reader = Scope(tenant=tenant, user="reader-A")
    assert hands.log.state(reader, "answer_detail") == Current(sequence=45, operation=Operation.DELETE)
    assert hands.log.state(reader, "theme") == Current(sequence=40, operation=Operation.SET, value="dark")


@dataclass
class Said:
    """An event as the model knows it."""

    sequence: int
    user: str
    project: str | None
    key: str
    value: str | None
    erased: bool = False


Answer = tuple[State, str | None, int | None, str | None, int | None]


def plain(said: Sequence[Said], user: str, project: str | None, key: str, as_of: int) -> Answer:
    """Resolve by reading the rules aloud."""
    own = [e for e in said if (e.user, e.project, e.key) == (user, project, key) and e.sequence <= as_of]
    last = max(own, key=lambda e: e.sequence, default=None)
    where = "global" if project is None else f"project:{project}"
    if last is not None and last.erased:
        return State.ERASED, None, last.sequence, where, None
    if last is not None and last.value is not None:
        return State.VALUE, last.value, last.sequence, where, None
    if project is not None:
        state, value, sequence, found_in, _ = plain(said, user, None, key, as_of)
        return state, value, sequence, found_in, None if last is None else last.sequence
    if last is not None:
        return State.DELETED, None, last.sequence, where, None
    return State.UNSET, None, None, None, None


def held(said: Sequence[Said], user: str, project: str | None, key: str) -> Current:
    """Tell what holds when all was applied."""
    own = [e for e in said if (e.user, e.project, e.key) == (user, project, key)]
    last = max(own, key=lambda e: e.sequence, default=None)
    if last is None:
        return Current()
    if last.erased:
        return Current(sequence=last.sequence, operation=Operation.ERASED)
    operation = Operation.DELETE if last.value is None else Operation.SET
    return Current(sequence=last.sequence, operation=operation, value=last.value)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(PLACES),
        st.sampled_from(KEYS),
        st.sampled_from([None, "brief", "detailed"]),
        st.sampled_from(["stays", "stays", "revoked", "erased", "revoked and erased"]),
        st.sampled_from(["before", "after"]),
    ),
    min_size=1,
    max_size=10,
)


@settings(max_examples=20, deadline=None, suppress_health_check=SHARED)
@given(steps=STEPS, data=st.data())
def test_log_answers_as_a_plain_model_does(hands: Hands, steps: Sequence[Any], data: st.DataObject) -> None:
    tenant = next(_tenants)
    said = [Said(10 * n, place[0], place[1], key, value) for n, (place, key, value, _, _) in enumerate(steps, 1)]
    arriving = data.draw(st.permutations(range(len(said))), label="order of arrival")
    for n in arriving:
        hands.accept([row_of(said[n])], tenant)
    for n in data.draw(st.permutations(range(len(said))), label="order of completion"):
        fate, when = steps[n][3:]
        if when == "before":
            end(hands, tenant, said[n], fate)
        if not (when == "before" and "erased" in fate):
            scope = scope_in(tenant, said[n].user, said[n].project)
            before = hands.log.state(scope, said[n].key).sequence
            outcome = hands.log.apply(scope, said[n].sequence)
            assert outcome is (Applying.APPLIED if said[n].sequence > before else Applying.REJECTED)
        if when == "after":
            end(hands, tenant, said[n], fate)
    for (user, project), key in itertools.product([*PLACES, ("cara", None)], KEYS):
        scope = scope_in(tenant, user, project)
        assert hands.log.state(scope, key) == held(said, user, project, key)
        for as_of in data.draw(st.lists(st.integers(0, 10 * len(said) + 5), min_size=2, max_size=2), label="as of"):
            found = hands.log.resolve(scope, key, as_of)
            told = (found.state, found.value, found.sequence, found.resolved_scope, found.marker)
            assert told == plain(said, user, project, key, as_of)
    for user, project in PLACES:
        scope = scope_in(tenant, user, project)
        hands.log.replay(scope)
        assert hands.log.replay(scope) == 0
        assert [hands.log.state(scope, key) for key in KEYS] == [held(said, user, project, key) for key in KEYS]


def end(hands: Hands, tenant: str, said: Said, fate: str) -> None:
    """Do to an event what a forget request does, and tell the model."""
    if "revoked" in fate:
        hands.revoke(said.sequence, tenant)
    if "erased" in fate:
        hands.erase(scope_in(tenant, said.user, said.project), said.key, said.sequence)
    said.erased = said.erased or fate != "stays"


def row_of(said: Said) -> dict[str, Any]:
    scope = "global" if said.project is None else f"project:{said.project}"
    operation = "delete" if said.value is None else "set"
    asked = {"sequence": said.sequence, "user": said.user, "scope": scope, "key": said.key}
    return {**asked, "operation": operation, "value": said.value}


def scope_in(tenant: str, user: str, project: str | None) -> Scope:
    return Scope(tenant=tenant, user=user, project=project)


def project_of(event: Mapping[str, Any]) -> str | None:
    return None if event["scope"] == "global" else event["scope"].removeprefix("project:")
