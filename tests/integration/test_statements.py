"""The four statements of which the qualifier decides: what each writes, where, and what it leaves alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from adapters.memory import Constraint, Kept, Reach
from adapters.memory.statements import NotSaid, ReachTaken
from orchestrator import GateRefused, InvalidRequest, Refusal, Scope, SelectorKind
from tests.integration.candidates_harness import USER_2, A, Place, place, rules, shared_url, url

__all__ = ["place", "rules", "shared_url", "url"]

IN_GENERAL: Final = replace(A, project=None)
ELSEWHERE: Final = replace(A, project="project-B")
# What the user says, and how the application reads it: key, value and reach.
THIS_TIME: Final = ("Use English this time", "language", "English", Reach.TASK)
IN_PROJECT: Final = ("Use English for all future reports in this project", "language", "English", Reach.PROJECT)
USUALLY: Final = ("I usually prefer Chinese explanations", "explanations", "Chinese", Reach.USER)
ONE_ANSWER: Final = ("Keep this one answer short", "answer_length", "short", Reach.ANSWER)


def take(place: Place, statement: tuple[str, str, str, Reach], source: str = "turn-7") -> Constraint | Kept:
    _, key, value, reach = statement
    place.hear(A, source)
    return place.adapter.statements.take(A, key, value, source, reach=reach)


def facts(place: Place) -> list[tuple[object, ...]]:
    return place.rows("SELECT project, key, value, source, active, confirmed FROM facts ORDER BY project, key, version")


@pytest.mark.req("R25")
@pytest.mark.parametrize("statement", [THIS_TIME, ONE_ANSWER], ids=lambda s: s[0])
def test_what_is_said_for_once_binds_the_task_and_is_kept_nowhere(
    place: Place, statement: tuple[str, str, str, Reach]
) -> None:
    place.tell(A, "language", "zh-CN")
    before = [facts(place), place.store.revision(A), place.store.revision_for_answers(A)]
    for _ in range(2):
        assert take(place, statement) == Constraint(key=statement[1], value=statement[2], reach=statement[3])
    assert [facts(place), place.store.revision(A), place.store.revision_for_answers(A)] == before
    assert place.values() == {"language": "zh-CN"}
    assert list(place.candidates.pending(A)) == []
    assert place.rows("SELECT * FROM confirmations WHERE source_id = 'turn-7'") == []
    for table in ("source_reaches", "facts", "fact_candidates", "preference_events", "preferences"):
        assert statement[2] not in str(place.rows(f"SELECT * FROM {table}")), table  # noqa: S608 - ours


@pytest.mark.req("R26")
def test_what_is_said_for_a_project_is_kept_in_that_project(place: Place) -> None:
    assert take(place, IN_PROJECT) == Kept(scope=A, key="language", version=1, reach=Reach.PROJECT)
    assert facts(place) == [("agent-research", "language", "English", "turn-7", 1, 1)]
    assert place.values(A) == {"language": "English"}
    assert place.values(ELSEWHERE) == place.values(IN_GENERAL) == place.values(USER_2) == {}
    assert (place.store.revision(A), place.store.revision(IN_GENERAL)) == (1, 0)


@pytest.mark.req("R26")
def test_what_is_said_in_general_is_kept_for_the_user(place: Place) -> None:
    assert take(place, USUALLY) == Kept(scope=IN_GENERAL, key="explanations", version=1, reach=Reach.USER)
    assert facts(place) == [("", "explanations", "Chinese", "turn-7", 1, 1)]
    assert place.values(IN_GENERAL) == {"explanations": "Chinese"}
    assert place.values(A) == place.values(ELSEWHERE) == place.values(replace(USER_2, project=None)) == {}
    assert (place.store.revision(A), place.store.revision(IN_GENERAL)) == (0, 1)


@pytest.mark.req("R25")
@pytest.mark.req("R26")
def test_how_far_each_was_taken_to_reach_stands_beside_its_source_without_a_text(place: Place) -> None:
    said = {f"turn-{n}": each for n, each in enumerate((THIS_TIME, IN_PROJECT, USUALLY, ONE_ANSWER))}
    for source, statement in said.items():
        take(place, statement, source)
    statements = place.adapter.statements
    assert {source: statements.reach_of(A, s[1], source) for source, s in said.items()} == {
        source: s[3] for source, s in said.items()
    }
    assert statements.reach_of(A, "language", "turn-2") is None
    assert statements.reach_of(USER_2, "language", "turn-0") is None
    assert statements.reach_of(Scope(tenant="tenant-b", user=A.user, project=A.project), "language", "turn-0") is None
    rows = place.rows("SELECT * FROM source_reaches ORDER BY source_id")
    assert [(row[0], row[1], row[3]) for row in rows] == [(A.tenant, source, s[3].value) for source, s in said.items()]
    told = str(rows)
    assert not any(word in told for s in said.values() for word in (s[0], s[1], s[2]))


def test_same_statement_again_writes_nothing_and_gives_the_same_answer(place: Place) -> None:
    for statement, source in ((IN_PROJECT, "turn-7"), (USUALLY, "turn-8")):
        first = take(place, statement, source)
        before = [facts(place), place.store.revision_for_answers(A)]
        assert take(place, statement, source) == first
        assert [facts(place), place.store.revision_for_answers(A)] == before
    place.tell(A, "language", "German", "turn-9")
    assert take(place, IN_PROJECT) == Kept(scope=A, key="language", version=1, reach=Reach.PROJECT)
    assert place.values(A) == {"language": "German"}, "an old statement that is delivered again does not win"


def test_reading_of_a_message_may_be_mended_and_its_reach_may_not(place: Place) -> None:
    take(place, IN_PROJECT)
    assert take(place, ("Use British English ...", "language", "British English", Reach.PROJECT)) == Kept(
        scope=A, key="language", version=2, reach=Reach.PROJECT
    )
    before = facts(place)
    for reach in (Reach.ANSWER, Reach.TASK, Reach.USER):
        with pytest.raises(ReachTaken) as caught:
            take(place, ("...", "language", "English", reach))
        assert caught.value.facts == {"reach": Reach.PROJECT}
    assert facts(place) == before
    assert place.adapter.statements.reach_of(A, "language", "turn-7") is Reach.PROJECT
    assert isinstance(take(place, ("...", "tone", "dry", Reach.TASK)), Constraint), "another key of the same message"


def test_nobody_has_stated_what_is_no_message_of_the_user_in_the_scope(place: Place) -> None:
    place.hear(A, "a-document", "document")
    place.hear(USER_2, "theirs")
    place.hear(ELSEWHERE, "elsewhere")
    for source in ("a-document", "theirs", "elsewhere", "nobodys"):
        for reach in Reach:
            with pytest.raises(NotSaid):
                place.adapter.statements.take(A, "language", "English", source, reach=reach)
    assert (facts(place), place.rows("SELECT * FROM source_reaches")) == ([], [])


def test_what_reaches_a_project_needs_one_and_reach_is_one_of_four(place: Place) -> None:
    place.hear(IN_GENERAL, "turn-7")
    for reach in (Reach.PROJECT, "project", None):
        with pytest.raises(InvalidRequest, match="reach"):
            place.adapter.statements.take(IN_GENERAL, "language", "x", "turn-7", reach=reach)  # type: ignore[arg-type]
    for wrong in (("", "x"), ("k", " ")):
        with pytest.raises(InvalidRequest):
            place.adapter.statements.take(IN_GENERAL, *wrong, "turn-7", reach=Reach.USER)
    assert place.rows("SELECT * FROM source_reaches") == []


@pytest.mark.req("R150")
@pytest.mark.parametrize("statement", [THIS_TIME, IN_PROJECT, USUALLY, ONE_ANSWER], ids=lambda s: s[0])
def test_message_that_was_forgotten_states_nothing_any_more(
    place: Place, statement: tuple[str, str, str, Reach]
) -> None:
    take(place, statement)
    place.forget(SelectorKind.SOURCE, "turn-7")
    with pytest.raises(GateRefused) as caught:
        take(place, statement)
    assert caught.value.refusal is Refusal.SOURCE_TOMBSTONED
    assert place.adapter.statements.refused[Refusal.SOURCE_TOMBSTONED] == 1
    assert facts(place) == []
    assert isinstance(take(place, statement, "turn-8"), Constraint | Kept)


def test_statement_that_is_delivered_again_undoes_no_forget(place: Place) -> None:
    take(place, IN_PROJECT)
    place.store.forget(A, "language")
    before = facts(place)
    assert take(place, IN_PROJECT) == Kept(scope=A, key="language", version=1, reach=Reach.PROJECT)
    assert (facts(place), place.values()) == (before, {})
    assert take(place, IN_PROJECT, "turn-8") == Kept(scope=A, key="language", version=2, reach=Reach.PROJECT)


def test_forgotten_text_may_be_stated_anew_and_binds_a_task_without_using_that_up(place: Place) -> None:
    take(place, IN_PROJECT)
    place.forget(SelectorKind.KEY, "language")
    assert isinstance(take(place, THIS_TIME, "turn-8"), Constraint)
    assert isinstance(take(place, THIS_TIME, "turn-8"), Constraint)
    assert isinstance(take(place, IN_PROJECT, "turn-9"), Kept)
    assert place.values() == {"language": "English"}


def test_nothing_that_is_shown_repeats_a_value(place: Place) -> None:
    taken = take(place, THIS_TIME)
    assert isinstance(taken, Constraint)
    assert (taken.value, "English" in repr(taken)) == ("English", False)
