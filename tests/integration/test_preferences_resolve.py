"""What holds of a key: the look-ups of the file, and how they are told from what only looks like an answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from adapters.memory.preferences import State
from orchestrator import InvalidRequest, Scope
from tests.integration.preferences_harness import (
    COMET,
    DATA,
    EVENTS,
    KEY,
    LOOKUPS,
    ORION,
    READER_A,
    READER_B,
    TENANT,
    Hands,
    answer,
    hands,
    told,
    url,
)

__all__ = ["hands", "told", "url"]

STATED = [
    pytest.param("L1", State.VALUE, "detailed", 20, id="L1", marks=pytest.mark.req("R63")),
    pytest.param("L2", State.VALUE, "detailed", 20, id="L2", marks=pytest.mark.req("R64")),
    pytest.param("L3", State.VALUE, "brief", 25, id="L3", marks=pytest.mark.req("R65")),
    pytest.param("L4", State.VALUE, "detailed", 20, id="L4", marks=pytest.mark.req("R66")),
    pytest.param("L5", State.VALUE, "brief", 30, id="L5", marks=pytest.mark.req("R67")),
    pytest.param("L6", State.VALUE, "dark", 40, id="L6", marks=pytest.mark.req("R68")),
    pytest.param("L7", State.VALUE, "detailed", 20, id="L7", marks=pytest.mark.req("R69")),
    pytest.param("L8", State.DELETED, None, 45, id="L8", marks=pytest.mark.req("R70")),
    pytest.param("L9", State.VALUE, "brief", 25, id="L9", marks=pytest.mark.req("R71")),
    pytest.param("L10", State.VALUE, "dark", 40, id="L10", marks=pytest.mark.req("R72")),
]


@pytest.mark.parametrize(("lookup", "state", "value", "sequence"), STATED)
def test_ten_look_ups_answer_as_stated(
    told: Hands, lookup: str, state: State, value: str | None, sequence: int
) -> None:
    found = told.look_up(LOOKUPS[lookup])
    assert (found.state, found.value, found.sequence) == (state, value, sequence)
    assert answer(found) == LOOKUPS[lookup]["expected"]


@pytest.mark.parametrize("lookup", DATA["derived_lookups"], ids=[each["id"] for each in DATA["derived_lookups"]])
def test_derived_look_ups_answer_as_they_follow(told: Hands, lookup: Mapping[str, Any]) -> None:
    assert answer(told.look_up(lookup)) == lookup["expected"]


@pytest.mark.req("R73")
def test_historical_question_recovers_what_was_superseded_since(told: Hands) -> None:
    at_19, at_44 = (told.log.resolve(READER_A, KEY, as_of) for as_of in (19, 44))
    assert (at_19.value, at_19.sequence) == ("brief", 10)
    assert (at_44.value, at_44.sequence) == ("detailed", 20)


@pytest.mark.req("R74")
def test_sequence_equal_to_as_of_is_included(told: Hands) -> None:
    asked = [(READER_A, 10), (READER_A, 20), (COMET, 25), (READER_A, 45)]
    found = [told.log.resolve(scope, KEY, as_of) for scope, as_of in asked]
    assert [(each.value, each.sequence) for each in found] == [
        ("brief", 10),
        ("detailed", 20),
        ("brief", 25),
        (None, 45),
    ]
    assert found[-1].state is State.DELETED


@pytest.mark.req("R75")
def test_unset_deleted_and_a_value_are_three_results(told: Hands) -> None:
    found = [told.log.resolve(READER_A, KEY, as_of) for as_of in (9, 45, 44)]
    assert [each.state for each in found] == [State.UNSET, State.DELETED, State.VALUE]
    assert told.log.resolve(READER_A, KEY, 0).state is State.UNSET
    assert (found[0].sequence, found[0].resolved_scope) == (None, None)


@pytest.mark.req("R76")
def test_fallback_can_end_in_the_general_marker(told: Hands) -> None:
    found = told.log.resolve(ORION, KEY, 50)
    assert (found.state, found.sequence, found.resolved_scope, found.marker) == (State.DELETED, 45, "global", None)


@pytest.mark.req("R77")
def test_project_record_that_is_not_accepted_yet_does_not_apply(told: Hands) -> None:
    found = told.log.resolve(COMET, KEY, 24)
    assert (found.value, found.sequence) == ("detailed", 20)


@pytest.mark.req("R78")
def test_users_never_share(told: Hands) -> None:
    of_comet = told.log.resolve(Scope(tenant=TENANT, user="reader-B", project="Comet"), KEY, 50)
    assert (of_comet.value, of_comet.sequence) == ("brief", 30)
    assert told.log.resolve(READER_B, "theme", 50).state is State.UNSET


@pytest.mark.req("R4")
def test_another_tenant_with_the_same_names_sees_nothing(told: Hands) -> None:
    for user, project in (("reader-A", None), ("reader-A", "Comet"), ("reader-B", None)):
        foreign = Scope(tenant="tenant-b", user=user, project=project)
        assert told.log.resolve(foreign, KEY).state is State.UNSET
        assert told.log.state(foreign, KEY).operation is None


@pytest.mark.req("R79")
def test_precedence_is_per_key(told: Hands) -> None:
    found = told.log.resolve(COMET, "theme", 50)
    assert (found.value, found.sequence) == ("dark", 40)


@pytest.mark.req("R8")
@pytest.mark.case(56)
@pytest.mark.case(57)
@pytest.mark.case(59)
@pytest.mark.parametrize("project", ["Comet-2", "Come", "comet", "Comet ", "global", "project:Comet", "%", "C_met"])
def test_project_is_matched_by_its_exact_name(told: Hands, project: str) -> None:
    found = told.log.resolve(Scope(tenant=TENANT, user="reader-A", project=project), KEY, 30)
    assert (found.value, found.sequence, found.resolved_scope) == ("detailed", 20, "global")


@pytest.mark.case(56)
@pytest.mark.case(57)
@pytest.mark.case(59)
@pytest.mark.parametrize("key", ["answer", "answer_detail2", "ANSWER_DETAIL", "%", "answer-detail"])
def test_key_is_matched_as_it_is(told: Hands, key: str) -> None:
    assert told.log.resolve(READER_A, key).state is State.UNSET


def test_project_with_the_name_of_the_general_scope_is_told_apart(hands: Hands) -> None:
    hands.say(Scope(tenant=TENANT, user="reader-A", project="global"), KEY, "brief")
    hands.say(READER_A, KEY, "detailed", "said-2")
    own = hands.log.resolve(Scope(tenant=TENANT, user="reader-A", project="global"), KEY)
    assert (own.value, own.resolved_scope) == ("brief", "project:global")
    assert hands.log.resolve(READER_A, KEY).resolved_scope == "global"


@pytest.mark.req("R80")
def test_relevance_does_not_decide_what_is_current(told: Hands) -> None:
    compared = DATA["ranking_comparison"]
    assert [(c["assigned_score"], c["sequence"]) for c in compared["candidates"]] == [(0.94, 10), (0.88, 20)]
    ranked = max(compared["candidates"], key=lambda each: each["assigned_score"])
    assert (ranked["sequence"], ranked["value"]) == (10, "brief")
    assert (compared["by_score"]["sequence"], compared["by_score"]["value"]) == (10, "brief")
    found = told.log.resolve(READER_A, compared["key"], compared["as_of"])
    assert {"sequence": found.sequence, "value": found.value} == compared["current"] == compared["by_sequence"]
    assert (found.sequence, found.value) == (20, "detailed")


@pytest.mark.req("R70")
def test_reader_that_skips_delete_markers_would_revive_an_old_value(told: Hands) -> None:
    asked = DATA["without_deletion_markers"]
    sets = [e for e in EVENTS.values() if (e["user"], e["scope"], e["key"]) == (asked["user"], "global", asked["key"])]
    newest_set = max((e for e in sets if e["operation"] == "set"), key=lambda e: int(e["sequence"]))
    wrong = {"sequence": newest_set["sequence"], "value": newest_set["value"]}
    assert wrong == asked["wrong_answer"]
    found = told.look_up(asked)
    assert (found.state, found.value, found.sequence) == (State.DELETED, None, 45)


def test_delete_in_a_project_ends_the_exception_and_is_named(hands: Hands) -> None:
    hands.accept(DATA["events"])
    marker = hands.say(COMET, KEY, None, "comet-said").sequence
    assert marker > 45
    before = hands.log.resolve(COMET, KEY, marker - 1)
    assert (before.value, before.sequence, before.marker) == ("brief", 25, None)
    found = hands.log.resolve(COMET, KEY)
    assert (found.state, found.sequence, found.resolved_scope, found.marker) == (State.DELETED, 45, "global", marker)
    hands.say(READER_A, KEY, "long", "said-2")
    found = hands.log.resolve(COMET, KEY)
    assert (found.value, found.resolved_scope, found.marker) == ("long", "global", marker)
    hands.say(COMET, "theme", None, "comet-said")
    hands.say(ORION, "tone", None, "orion-said")
    theme, tone = hands.log.resolve(COMET, "theme"), hands.log.resolve(ORION, "tone")
    assert (theme.value, theme.marker) == ("dark", marker + 3)
    assert (tone.state, tone.sequence, tone.resolved_scope, tone.marker) == (State.UNSET, None, None, marker + 5)


@pytest.mark.parametrize("as_of", [-1, 2**63, True, 22.0, "22"])
def test_as_of_that_is_no_sequence_is_refused(told: Hands, as_of: Any) -> None:  # noqa: ANN401 - what a caller may send
    with pytest.raises(InvalidRequest, match="as_of must be a whole number from 0 on"):
        told.log.resolve(READER_A, KEY, as_of)


@pytest.mark.parametrize("key", ["", " ", "x" * 513, "a\0b"])
def test_key_that_nothing_could_be_stored_under_is_refused(told: Hands, key: str) -> None:
    for ask in (told.log.resolve, told.log.state):
        with pytest.raises(InvalidRequest):
            ask(READER_A, key)


def test_answers_show_no_value_where_they_are_printed(told: Hands) -> None:
    found = told.log.resolve(READER_A, KEY, 22)
    assert found.value == "detailed"
    assert "detailed" not in f"{found!r} {found}"
