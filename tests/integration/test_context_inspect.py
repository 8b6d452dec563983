"""What decides a preference, whether an input is behind it, and the first stage at which one got lost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adapters.context import InputUnknown, Inspection, Inspector, Ranked, Stage, Stale
from adapters.memory.preferences import State
from adapters.memory.session import NoAccess
from orchestrator import InvalidRequest, Selector, SelectorKind, Target
from tests.integration.context_harness import COMET, DATA, KEY, READER, Study, person, study, told
from tests.integration.drafts_harness import FOREIGN, A, B

__all__ = ["study"]


@pytest.mark.req("R91")
def test_inspection_record_is_complete(study: Study) -> None:
    study.accept(10, 20, 25, 30, 40, 45)
    assert study.inspector(READER).inspect(KEY, as_of=22) == Inspection(
        user="reader-A",
        scope="global",
        key="answer_detail",
        state=State.VALUE,
        value="detailed",
        sequence=20,
        as_of=22,
        superseded=(10,),
        marker=None,
    )


@pytest.mark.req("R91")
def test_inspection_tells_each_state_and_where_it_lies(study: Study) -> None:
    study.accept(10, 20, 25, 30, 40, 45)
    ask = study.inspector(READER).inspect
    found = [
        ask(KEY, project=project, as_of=at) for project, at in ((None, 50), ("Comet", 50), ("Orion", 30), (None, 9))
    ]
    assert [(told.scope, told.state, told.value, told.sequence, told.superseded) for told in found] == [
        ("global", State.DELETED, None, 45, (10, 20)),
        ("project:Comet", State.VALUE, "brief", 25, ()),
        ("global", State.VALUE, "detailed", 20, (10,)),
        ("global", State.UNSET, None, None, ()),
    ]
    assert ask(KEY).as_of == 45, "the latest accepted position"
    assert "detailed" not in repr(found)
    for wrong in (-1, True, 1.0):
        with pytest.raises(InvalidRequest, match="as_of"):
            ask(KEY, as_of=wrong)  # type: ignore[arg-type]
    stranger = Inspector(study.memory, person(READER, ["Comet"]))
    with pytest.raises(NoAccess):
        stranger.inspect(KEY, project="secret")


@pytest.mark.req("R93")
def test_inspection_names_an_erased_event_by_its_sequence_alone(study: Study) -> None:
    study.accept(10, 20)
    study.execute("UPDATE preference_events SET value = NULL, state = 'revoked' WHERE sequence = 20")
    told = study.inspector(READER).inspect(KEY, as_of=22)
    assert (told.state, told.value, told.sequence, told.superseded) == (State.ERASED, None, 20, (10,))


@pytest.mark.req("R80")
def test_ranking_gives_event_10_and_resolution_event_20(study: Study) -> None:
    compared = DATA["ranking_comparison"]
    study.accept(10, 20)
    best = max(compared["candidates"], key=lambda each: each["assigned_score"])
    assert best["sequence"] == compared["by_score"]["sequence"] == 10
    asked: list[int] = []

    def by_score(records: object) -> Ranked:
        del records
        asked.append(best["sequence"])
        return Ranked(order=(Target(kind="event", id="event-10", version=10),))

    made = study.assemble(ranking=by_score, scope=READER, preferences=[KEY])
    assert [(item.position, item.text) for item in made.items] == [(20, "detailed")]
    assert (asked, made.dropped) == ([10], 1), "the nearest one is not what holds, and goes in nowhere"
    historical = study.inspector(READER).inspect(KEY, as_of=19)
    assert (historical.sequence, historical.value) == (10, "brief"), "a question about then has its own as_of"


@pytest.mark.req("R90")
def test_input_that_was_built_before_a_write_stays_as_it_is_and_is_told_as_stale(study: Study) -> None:
    study.accept(10)
    made = study.assemble(scope=READER, preferences=[KEY, "theme"])
    ask = study.inspector(READER)
    assert (told(made), ask.stale("turn-1")) == (["brief"], ())
    study.accept(20)
    assert ask.stale("turn-1") == (Stale(kind="event", id="event-10", key=KEY, in_input=10, now=20),)
    assert "brief" in study.inputs()[0], "it is a snapshot"
    study.accept(40, 45)
    assert {(one.key, one.in_input, one.now) for one in ask.stale("turn-1")} == {(KEY, 10, 45), ("theme", 0, 40)}


@pytest.mark.req("R90")
def test_project_record_makes_an_input_with_the_general_one_stale_and_another_users_does_not(study: Study) -> None:
    study.accept(10, 20)
    study.assemble(scope=COMET, preferences=[KEY])
    study.accept(30)
    assert study.inspector(COMET).stale("turn-1", project="Comet") == ()
    study.accept(25)
    (one,) = study.inspector(COMET).stale("turn-1", project="Comet")
    assert (one.in_input, one.now) == (20, 25)


def test_facts_that_changed_or_went_are_stale_by_version(study: Study) -> None:
    old = study.tell("language", "zh-CN")
    theme = study.tell("theme", "dark")
    study.tell("seat", "aisle")
    study.assemble()
    study.tell("language", "en")
    study.revoke(study.order(Selector(kind=SelectorKind.KEY, value="theme")))
    told = study.inspector().stale("turn-1", project=A.project)
    assert told == (
        Stale(kind="fact", id=old.id, key="language", in_input=1, now=2),
        Stale(kind="fact", id=theme.id, key="theme", in_input=1, now=None),
    )


def test_foreign_and_missing_inputs_answer_alike(study: Study) -> None:
    with pytest.raises(InputUnknown):
        study.inspector().stale("turn-1", project=A.project)
    study.assemble()
    assert study.inspector().stale("turn-1", project=A.project) == ()
    for scope in (B, replace(A, project=None), replace(A, user="user-2"), FOREIGN):
        with pytest.raises(InputUnknown):
            study.inspector(scope).stale("turn-1", project=scope.project)
        with pytest.raises(InputUnknown):
            study.inspector(scope).diagnose(KEY, project=scope.project, name="turn-1")


def stage(study: Study, name: str | None = None, project: str | None = None, as_of: int | None = None) -> Stage | None:
    return study.inspector(READER).diagnose(KEY, project=project, name=name, as_of=as_of).failed


@pytest.mark.req("R92")
def test_stage_p_is_named_where_h_has_20_and_p_has_10_even_if_c_is_wrong_too(study: Study) -> None:
    study.accept(10)
    study.accept(20, apply=False)
    study.assemble(scope=READER, preferences=[KEY])
    assert stage(study) is stage(study, "turn-1") is Stage.APPLIED
    assert "brief" in study.inputs()[0], "the input is wrong too"
    study.memory.preferences.apply(READER, 20)
    assert stage(study) is None
    assert stage(study, "turn-1") is Stage.SELECTED, "when the input was made, 20 was in the log"
    study.assemble("turn-2", scope=READER, preferences=[KEY])
    assert stage(study, "turn-2") is None


@pytest.mark.req("R92")
def test_each_stage_is_named_where_it_is_the_first_to_fail(study: Study) -> None:
    study.accept(30)
    assert stage(study) is Stage.CAPTURED, "another user's is none of theirs"
    study.accept(25)
    assert stage(study) is Stage.INTERPRETED, "it was taken to hold in Comet alone"
    assert stage(study, project="Comet") is None
    assert stage(study, project="Comet", as_of=24) is Stage.CAPTURED
    study.accept(20)
    assert stage(study) is None
    study.assemble("without", scope=READER)
    assert stage(study, "without") is Stage.SELECTED
    study.assemble("outranked", scope=READER, preferences=[KEY], constraints={KEY: "brief"})
    assert stage(study, "outranked") is Stage.INCLUDED
    study.assemble("with", scope=READER, preferences=[KEY])
    assert stage(study, "with") is None
    study.accept(45)
    assert stage(study, "with") is Stage.INCLUDED, "said after it was made"
    study.assemble("after", scope=READER, preferences=[KEY])
    assert stage(study, "after") is None, "what was taken back is rightly not in it"
    assert all(len(each.failure.splitlines()) == 1 for each in Stage)


@pytest.mark.req("R92")
def test_lost_damaged_and_shadowing_rows_of_p_are_stage_p(study: Study) -> None:
    study.accept(10, 20, 25)
    for damage in (
        "DELETE FROM preferences WHERE sequence = 20",
        "UPDATE preferences SET value = 'brief' WHERE sequence = 20",
        "UPDATE preferences SET operation = 'delete', value = NULL WHERE sequence = 20",
    ):
        study.execute(damage)
        assert stage(study) is Stage.APPLIED
        assert stage(study, project="Comet") is Stage.APPLIED, "what it would fall back to is wrong"
        study.memory.preferences.replay(READER)
        assert stage(study) is None
    study.execute("DELETE FROM preferences WHERE sequence = 25")
    assert (stage(study), stage(study, project="Comet")) == (None, Stage.APPLIED)


@pytest.mark.req("R92")
def test_later_event_that_was_applied_is_no_fault_of_an_earlier_question(study: Study) -> None:
    study.accept(10, 20)
    assert stage(study, as_of=19) is None


def test_what_the_project_took_back_gives_way_to_the_general_and_what_was_erased_there_does_not(study: Study) -> None:
    study.accept(20, 25)
    assert told(study.assemble("before", scope=COMET, preferences=[KEY])) == ["brief"]
    marker = study.prefer(KEY, None, COMET)
    assert told(study.assemble("deleted", scope=COMET, preferences=[KEY])) == ["detailed"]
    assert study.inspector(COMET).inspect(KEY, project="Comet").marker == marker.sequence
    fresh = study.prefer(KEY, "short", COMET)
    order = study.order(Selector(kind=SelectorKind.MEMORY, value=fresh.id), COMET)
    (revoked,) = study.memory.revoke([order])
    assert told(study.assemble("revoked", scope=COMET, preferences=[KEY])) == []
    study.memory.erase([replace(order, targets=revoked.targets)])
    assert told(study.assemble("erased", scope=COMET, preferences=[KEY])) == [], "no older one stands in for it"
    diagnosis = study.inspector(COMET).diagnose(KEY, project="Comet", name="erased")
    assert (diagnosis.failed, diagnosis.known.state, diagnosis.known.sequence) == (None, State.ERASED, fresh.sequence)
