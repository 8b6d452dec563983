"""What goes into an input: eligible records of the scope alone, ranked among themselves, whole, within the budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from adapters.context import Assembler, Ranked, Record, by_vector, by_words
from adapters.drafts import DraftsAdapter
from adapters.memory.statements import Constraint, Reach
from adapters.vector import Point
from orchestrator import ErasureError, InvalidRequest, Scope, StoreUnreachable, Target
from tests.integration.context_harness import TRIPS, Study, alone, person, study, task_of, told
from tests.integration.drafts_harness import ALL, FOREIGN, NEIGHBOUR, A, B, name_of
from tests.integration.vector_harness import ANNA, BERTA, DIMENSIONS, Shelf, sourced
from tests.integration.vector_harness import FOREIGN as ELSEWHERE

__all__ = ["alone", "sourced", "study"]


def at_angle(cosine: float) -> list[float]:
    """Give a vector at that angle to the first axis."""
    return [cosine, (1 - cosine**2) ** 0.5, *[0.0] * (DIMENSIONS - 2)]


def enter(shelf: Shelf, fact: Target, cosine: float, scope: Scope = ANNA) -> None:
    point = Point(made_from=fact, source="anna/seat", vector=at_angle(cosine))
    assert shelf.index.put(scope, [point]).refused == 0


@pytest.fixture
def anna(sourced: Shelf) -> Iterator[Assembler]:
    """Give what makes inputs for Anna over the memory store of a shelf."""
    url = sourced.memory._url.render_as_string(hide_password=False)
    with closing(DraftsAdapter(sourced.memory._context, url=url)) as drafts:
        yield Assembler(drafts, person(ANNA))


@pytest.mark.req("R1")
def test_facts_of_exactly_this_scope_are_eligible(study: Study) -> None:
    for scope in (A, B, ALL, NEIGHBOUR, FOREIGN):
        study.tell("language", f"that of {scope.canonical()}", scope)
    made = study.assemble()
    assert told(made) == [f"that of {A.canonical()}"]
    assert made.items[0].position == 1, "where its source was accepted"
    assert told(study.assemble(scope=B)) == [f"that of {B.canonical()}"]


def test_what_was_replaced_or_is_unconfirmed_or_has_expired_is_not_eligible(study: Study) -> None:
    study.tell("language", "en")
    new = study.tell("language", "zh-CN")
    study.tell("seat", "aisle", expires=100.0)
    study.tell("meal", "fish", expires=100.001)
    study.memory.store.put(A, "theme", "dark", name_of(A, "turn-1"), confirmed=False)
    study.at(100)
    made = study.assemble()
    assert told(made) == ["zh-CN", "fish"]
    assert made.items[0].target == new


def test_newest_memories_of_the_task_and_of_the_user_are_eligible(study: Study) -> None:
    study.at(0)
    first = study.remember("Sits at the aisle.")
    user = study.remember("Eats fish.", level="user")
    study.remember("Speaks Dutch.", ttl_days=1)
    for scope in (replace(TRIPS, project="work"), replace(TRIPS, user="user-2"), replace(TRIPS, tenant="tenant-b")):
        study.remember("Is somebody else.", scope)
    newest = study.memory.chains.correct(task_of(TRIPS), first.version, "At the window.", name_of(TRIPS, "turn-1"))
    study.at(86_400)
    made = study.assemble(scope=TRIPS)
    assert [(item.target, item.text) for item in made.items] == [
        (user, "Eats fish."),
        (replace(first, version=newest), "At the window."),
    ]
    assert told(study.assemble(scope=replace(TRIPS, project=None))) == ["Eats fish."], "of no task"


@pytest.mark.req("R32")
def test_own_record_is_given_though_foreign_ones_lie_nearer(sourced: Shelf, anna: Assembler) -> None:
    own = sourced.tell(ANNA, "seat", "aisle seat")
    enter(sourced, own, 0.5)
    for scope in (BERTA, ELSEWHERE):
        enter(sourced, sourced.tell(scope, "seat", "aisle seat"), 0.99, scope)
    made = anna.assemble("turn-1", by_vector(sourced.index, ANNA, at_angle(1.0)), project=ANNA.project)
    assert [item.target for item in made.items] == [own]
    assert (made.dropped, made.failed) == (0, False)
    made = anna.assemble("turn-2", by_vector(sourced.index, BERTA, at_angle(1.0)), project=ANNA.project)
    assert (told(made), made.dropped) == ([], 1), "an index that is asked for somebody else lets nothing in"


@pytest.mark.req("R32")
def test_ranking_sees_eligible_records_alone(study: Study) -> None:
    own = study.tell("seat", "aisle seat")
    others = [study.tell("seat", "aisle seat", scope) for scope in (B, NEIGHBOUR, FOREIGN)]
    seen: list[Target] = []

    def ranking(records: Sequence[Record]) -> Ranked:
        seen.extend(record.target for record in records)
        return Ranked(order=(*others, own, own))

    made = study.assemble(ranking=ranking)
    assert seen == [own]
    assert ([item.target for item in made.items], made.dropped) == ([own], 3), "what else it names is dropped, counted"


@pytest.mark.req("R37")
def test_hit_on_version_1_is_dropped_and_counted_when_2_is_active(sourced: Shelf, anna: Assembler) -> None:
    enter(sourced, sourced.tell(ANNA, "seat", "aisle seat"), 1.0)
    new = sourced.tell(ANNA, "seat", "window seat")
    made = anna.assemble("turn-1", by_vector(sourced.index, ANNA, at_angle(1.0)), project=ANNA.project)
    assert (told(made), made.dropped) == ([], 1)
    enter(sourced, new, 0.9)
    made = anna.assemble("turn-2", by_vector(sourced.index, ANNA, at_angle(1.0)), project=ANNA.project)
    assert (told(made), made.dropped) == (["window seat"], 1)


@pytest.mark.req("R38")
def test_index_that_fails_lets_nothing_in(sourced: Shelf, anna: Assembler) -> None:
    enter(sourced, sourced.tell(ANNA, "seat", "aisle seat"), 1.0)
    sourced.change("DROP TABLE vector_points")
    made = anna.assemble("turn-1", by_vector(sourced.index, ANNA, at_angle(1.0)), project=ANNA.project)
    assert (told(made), made.failed) == ([], True)


@pytest.mark.req("R38")
def test_ranking_that_raises_hands_nothing_out(alone: Study) -> None:
    alone.tell("seat", "aisle seat")

    def broken(_records: Sequence[Record]) -> Ranked:
        raise StoreUnreachable

    with pytest.raises(ErasureError):
        alone.assemble(ranking=broken)
    assert alone.inputs() == []


@pytest.mark.req("R4")
def test_words_rank_what_shares_most_of_them_first_and_leave_out_what_shares_none(alone: Study) -> None:
    alone.tell("a", "The train to Lyon leaves at nine.")
    alone.tell("b", "Prefers the night TRAIN.")
    alone.tell("c", "Has a passport.")
    alone.tell("d", "That which is the")
    alone.tell("home_town", "Harbin")
    alone.tell("b", "Prefers the night train to Lyon.", FOREIGN)
    made = alone.assemble(ranking=by_words("Which night is the train?"))
    assert [item.key for item in made.items] == ["b", "a"], "words that say nothing are not counted"
    assert [item.key for item in alone.assemble("turn-2", by_words("Where is home?")).items] == ["home_town"]
    assert told(alone.assemble("turn-3", by_words("And what of it?"))) == []
    with pytest.raises(InvalidRequest, match="question must be a text"):
        by_words(None)  # type: ignore[arg-type]


@pytest.mark.req("R33")
@pytest.mark.parametrize(
    ("lengths", "within"),
    [
        ([200] * 6, [0, 1, 2, 3, 4]),
        ([700] * 3, [0, 1]),
        ([750, 750], [0, 1]),
        ([750, 751], [0]),
        ([1501, 700], [1]),
        ([1000, 600, 500, 1], [0, 2]),
        ([1499, 2, 1], [0, 2]),
    ],
)
def test_budget_holds_5_whole_records_of_1500_characters_together(
    alone: Study, lengths: list[int], within: list[int]
) -> None:
    records = [alone.tell(f"key-{n}", "é" * length) for n, length in enumerate(lengths)]
    made = alone.assemble()
    assert [item.target for item in made.items] == [records[n] for n in within]
    assert list(made.omitted) == [record for n, record in enumerate(records) if n not in within]
    assert [len(item.text) for item in made.items] == [lengths[n] for n in within], "whole, or not at all"


@pytest.mark.req("R36")
@pytest.mark.req("R25")
def test_constraint_of_the_task_outranks_memory_of_its_key_and_leaves_it_as_it_is(study: Study) -> None:
    language = study.tell("language", "zh-CN")
    study.tell("theme", "dark")
    event = study.prefer("language", "zh-CN")
    before = (
        study.memory.store.current(A),
        study.memory.preferences.resolve(A, "language"),
        study.memory.store.revision(A),
    )
    said = study.source(A, "turn-2")
    constraint = study.memory.statements.take(A, "language", "Use English this time", said, reach=Reach.TASK)
    assert isinstance(constraint, Constraint)
    made = study.assemble(preferences=["language"], constraints={constraint.key: constraint.value})
    assert (dict(made.constraints), told(made)) == ({"language": "Use English this time"}, ["dark"])
    assert set(made.outranked) == {language, Target(kind="event", id=event.id, version=event.sequence)}
    assert before == (
        study.memory.store.current(A),
        study.memory.preferences.resolve(A, "language"),
        study.memory.store.revision(A),
    )
    assert "English" not in "".join(study.inputs()), "what names no record could not be found again, and is not kept"
    assert told(study.assemble("turn-2", preferences=["language"])) == ["zh-CN", "zh-CN", "dark"]


def test_what_could_not_be_stored_is_no_name_no_key_and_no_constraint(alone: Study) -> None:
    wrongs: list[dict[str, Any]] = [{"name": " "}, {"preferences": [""]}, {"constraints": {"": "x"}}]
    for wrong in (*wrongs, {"constraints": {"k": " "}}):
        with pytest.raises(InvalidRequest):
            alone.assemble(**wrong)
    assert alone.inputs() == []
