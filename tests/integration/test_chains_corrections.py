"""Corrections: what replaces what, what history tells, and who may correct."""

from __future__ import annotations

import pytest

from adapters.memory.chains import MemoryInputError, MemoryNotFound, TaskScope
from tests.integration.chains_harness import (
    ALICE,
    BOB,
    BOOKING,
    BOOKING_QUESTION,
    DIET,
    EATS_FISH,
    EVERYWHERE,
    FOOD_QUESTION,
    OTHER_TASK,
    TURN_3,
    TURN_5,
    TURN_12,
    Chains,
    chains_in,
)

chains = chains_in(*EVERYWHERE)
REASON = "user request at trip-planning/turn-20"


@pytest.fixture
def corrected(chains: Chains) -> tuple[int, int]:
    old = chains.store.remember(ALICE, "user", DIET, TURN_3)
    return old, chains.store.correct(ALICE, old, EATS_FISH, TURN_12)


@pytest.mark.req("R98")
def test_correction_replaces_in_recall_and_both_stay_in_history(chains: Chains, corrected: tuple[int, int]) -> None:
    old, new = corrected
    assert [(m.id, m.text, m.supersedes) for m in chains.recalled(ALICE, FOOD_QUESTION)] == [(new, EATS_FISH, old)]
    assert [m.id for m in chains.store.recall(ALICE, DIET)] == [new]
    for named in corrected:
        versions = chains.store.history(ALICE, named)
        assert [(v.id, v.text, v.source) for v in versions] == [(old, DIET, TURN_3), (new, EATS_FISH, TURN_12)]
        assert [v.supersedes for v in versions] == [None, old]


@pytest.mark.req("R98")
def test_history_tells_a_chain_of_five_from_each_of_its_versions_and_no_other_chain(chains: Chains) -> None:
    ids = [chains.store.remember(ALICE, "user", "version 0", TURN_3)]
    other = chains.store.remember(ALICE, "user", "another chain", TURN_3)
    for number in range(1, 5):
        ids.append(chains.store.correct(ALICE, ids[-1], f"version {number}", TURN_12))
    for named in ids:
        versions = chains.store.history(ALICE, named)
        assert [(v.id, v.text) for v in versions] == [(ids[n], f"version {n}") for n in range(5)]
    assert [v.id for v in chains.store.history(ALICE, other)] == [other]


@pytest.mark.req("R99")
def test_only_the_newest_can_be_corrected(chains: Chains, corrected: tuple[int, int]) -> None:
    old, new = corrected
    with pytest.raises(MemoryInputError, match=f"^already corrected by {new}; correct the newest$"):
        chains.store.correct(ALICE, old, "Alice eats everything.", TURN_12)
    assert [v.id for v in chains.store.history(ALICE, old)] == [old, new]
    newest = chains.store.correct(ALICE, new, "Alice eats everything.", TURN_12)
    assert [v.id for v in chains.store.history(ALICE, old)] == [old, new, newest]


@pytest.mark.req("R98")
def test_correction_leaves_the_old_row_as_it_is(chains: Chains) -> None:
    old = chains.store.remember(ALICE, "task", BOOKING, TURN_5, 7)
    row = "SELECT * FROM memories WHERE id = :id"
    before = chains.rows(row, id=old)
    chains.store.correct(ALICE, old, EATS_FISH, TURN_12)
    assert chains.rows(row, id=old) == before


@pytest.mark.req("R100")
def test_foreign_and_missing_look_the_same(chains: Chains) -> None:
    assert chains.store.remember(ALICE, "user", DIET, TURN_3) == 1
    elsewhere = TaskScope(ALICE.user, ALICE.task, tenant="tenant-b")
    for scope, memory_id in ((BOB, 1), (elsewhere, 1), (BOB, 999), (ALICE, 999), (ALICE, 10**30), (ALICE, 0)):
        for call in (
            lambda: chains.store.correct(scope, memory_id, EATS_FISH, TURN_12),  # noqa: B023 - called at once
            lambda: chains.store.forget(scope, memory_id, REASON),  # noqa: B023
            lambda: chains.store.history(scope, memory_id),  # noqa: B023
        ):
            with pytest.raises(MemoryNotFound, match=f"^no memory {memory_id} in this scope$") as caught:
                call()
            assert isinstance(caught.value, LookupError)
    assert chains.ids(ALICE, FOOD_QUESTION) == [1]
    assert [v.text for v in chains.store.history(ALICE, 1)] == [DIET]
    assert chains.store.deletions(ALICE) == chains.store.deletions(BOB) == []


@pytest.mark.req("R113")
def test_correction_keeps_its_level(chains: Chains) -> None:
    booking = chains.store.remember(ALICE, "task", BOOKING, TURN_5)
    new = chains.store.correct(ALICE, booking, "The Lisbon hotel booking code is 9K2M.", TURN_12)
    assert [(m.id, m.level) for m in chains.recalled(ALICE, BOOKING_QUESTION)] == [(new, "task")]
    assert chains.ids(OTHER_TASK, BOOKING_QUESTION) == []
    with pytest.raises(MemoryNotFound):
        chains.store.history(OTHER_TASK, new)


@pytest.mark.req("R113")
def test_correction_of_a_user_memory_from_another_task_stays_at_user_level(chains: Chains) -> None:
    diet = chains.store.remember(ALICE, "user", DIET, TURN_3)
    new = chains.store.correct(OTHER_TASK, diet, EATS_FISH, "other-task/turn-1")
    for scope in (ALICE, OTHER_TASK):
        assert [(m.id, m.level) for m in chains.recalled(scope, FOOD_QUESTION)] == [(new, "user")]


@pytest.mark.req("R98")
def test_history_of_a_chain_that_was_tied_into_a_knot_ends(chains: Chains, corrected: tuple[int, int]) -> None:
    old, new = corrected
    chains.change("UPDATE memories SET supersedes = :new WHERE id = :old", new=new, old=old)
    assert [v.id for v in chains.store.history(ALICE, old)] == [old, new]
