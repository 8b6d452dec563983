"""Who sees what: tasks, users, tenants and what is revoked; and in which order a question brings it up."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from adapters.memory.chains import MemoryInputError, MemoryNotFound, TaskScope
from adapters.memory.chains.recall import words
from tests.integration.chains_harness import (
    ALICE,
    BOB,
    BOOKING,
    BOOKING_QUESTION,
    DAY,
    DIET,
    EATS_FISH,
    EVERYWHERE,
    FOOD_QUESTION,
    IN_A_FILE,
    OTHER_TASK,
    PASSPORT,
    PASSPORT_QUESTION,
    TURN_3,
    TURN_5,
    TURN_6,
    TURN_12,
    Chains,
    chains_in,
)

chains = chains_in(*EVERYWHERE)
in_a_file = chains_in(*IN_A_FILE)
STOP_WORDS = """a and an are as at be by did do does for from how i in is it my of on or that the this to was we what
when where which who will with you your"""
ALICE_OF_B = TaskScope(ALICE.user, ALICE.task, tenant="tenant-b")


@pytest.mark.req("R112")
def test_task_memories_are_invisible_from_other_tasks_and_user_memories_are_not(chains: Chains) -> None:
    diet = chains.store.remember(ALICE, "user", DIET, TURN_3)
    booking = chains.store.remember(ALICE, "task", BOOKING, TURN_5, 7)
    assert chains.ids(OTHER_TASK, BOOKING_QUESTION) == []
    with pytest.raises(MemoryNotFound, match=f"^no memory {booking} in this scope$"):
        chains.store.history(OTHER_TASK, booking)
    assert chains.ids(OTHER_TASK, FOOD_QUESTION) == [diet]
    assert chains.ids(ALICE, BOOKING_QUESTION) == [booking]


@pytest.mark.req("R114")
def test_equal_scores_put_the_newest_first(chains: Chains) -> None:
    first = chains.store.remember(ALICE, "user", "Alice likes tea.", TURN_3)
    second = chains.store.remember(ALICE, "user", "Alice lives in Lisbon.", TURN_5)
    assert [(m.id, m.score) for m in chains.recalled(ALICE, PASSPORT_QUESTION)] == [(second, 1), (first, 1)]


def test_better_score_comes_before_a_newer_memory_and_the_limit_cuts_last(chains: Chains) -> None:
    best = chains.store.remember(ALICE, "user", "window seat on the train", TURN_3)
    rest = [chains.store.remember(ALICE, "user", f"a seat, number {n}", TURN_3) for n in range(4)]
    found = chains.store.recall(ALICE, "Which seat by the window?", 20)
    assert [(m.id, m.score) for m in found] == [(best, 2), *((memory, 1) for memory in reversed(rest))]
    assert chains.ids(ALICE, "Which seat by the window?") == [best, rest[3], rest[2]]
    assert [m.id for m in chains.store.recall(ALICE, "Which seat by the window?", 1)] == [best]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Alice's", {"alice", "s"}),
        ("The CODE is 4F7Q, 4f7q!", {"code", "4f7q"}),
        (STOP_WORDS, set()),
        ("", set()),
    ],
)
def test_words_are_distinct_in_lower_case_and_without_stop_words(text: str, found: set[str]) -> None:
    assert words(text) == found


def test_question_without_a_shared_word_brings_up_nothing(chains: Chains) -> None:
    chains.store.remember(ALICE, "user", DIET, TURN_3)
    for question in ("Where does she live?", "is it", ""):
        assert chains.recalled(ALICE, question) == []


def test_users_and_tenants_stay_apart_in_every_read(chains: Chains) -> None:
    ids = [chains.store.remember(scope, "user", PASSPORT, TURN_6) for scope in (ALICE, BOB, ALICE_OF_B)]
    for scope, own in zip((ALICE, BOB, ALICE_OF_B), ids, strict=True):
        assert chains.ids(scope, PASSPORT_QUESTION) == [own]
    assert chains.store.forget(ALICE_OF_B, ids[2], "moved") == [ids[2]]
    assert [record.memory_ids for record in chains.store.deletions(ALICE_OF_B)] == [(ids[2],)]
    assert chains.store.deletions(ALICE) == chains.store.deletions(BOB) == []
    assert chains.ids(ALICE, PASSPORT_QUESTION) == ids[:1]


def test_what_is_revoked_is_read_by_nobody_and_left_to_its_job(chains: Chains) -> None:
    gone = chains.store.remember(ALICE, "user", PASSPORT, TURN_6, 7)
    newer = chains.store.correct(ALICE, gone, PASSPORT, TURN_12, 7)
    stays = chains.store.remember(ALICE, "user", "Alice has a passport photo.", TURN_6)
    chains.change("UPDATE memory_tenants SET revoked = 1 WHERE memory_id IN (:a, :b)", a=gone, b=newer)
    assert chains.ids(ALICE, PASSPORT_QUESTION) == [stays]
    for memory_id in (gone, newer):
        for call in (
            lambda: chains.store.history(ALICE, memory_id),  # noqa: B023 - called at once
            lambda: chains.store.correct(ALICE, memory_id, EATS_FISH, TURN_12),  # noqa: B023
            lambda: chains.store.forget(ALICE, memory_id, "again"),  # noqa: B023
        ):
            with pytest.raises(MemoryNotFound, match=f"^no memory {memory_id} in this scope$"):
                call()
    chains.clock.advance(8 * DAY)
    assert chains.store.purge_expired() == 0
    assert chains.rows("SELECT id FROM memories ORDER BY id") == [(gone,), (newer,), (stays,)]


def test_version_before_a_revoked_one_does_not_hold_again(chains: Chains) -> None:
    old = chains.store.remember(ALICE, "user", PASSPORT, TURN_6, 7)
    newer = chains.store.correct(ALICE, old, EATS_FISH, TURN_12)
    chains.change("UPDATE memory_tenants SET revoked = 1 WHERE memory_id = :newer", newer=newer)
    assert chains.recalled(ALICE, PASSPORT_QUESTION) == []
    with pytest.raises(MemoryInputError, match=r"^already corrected"):
        chains.store.correct(ALICE, old, PASSPORT, TURN_6)
    chains.clock.advance(8 * DAY)
    assert chains.store.purge_expired() == 0


def test_memory_that_belongs_to_no_tenant_is_read_by_nobody(chains: Chains) -> None:
    memory_id = chains.store.remember(ALICE, "user", PASSPORT, TURN_6)
    chains.change("DELETE FROM memory_tenants")
    assert chains.recalled(ALICE, PASSPORT_QUESTION) == []
    with pytest.raises(MemoryNotFound):
        chains.store.history(ALICE, memory_id)


def test_what_is_told_does_not_show_its_text_by_accident(in_a_file: Chains) -> None:
    memory_id = in_a_file.store.remember(ALICE, "user", PASSPORT, TURN_6)
    told: list[Sequence[object]] = [in_a_file.recalled(ALICE, PASSPORT_QUESTION)]
    told.append(in_a_file.store.history(ALICE, memory_id))
    in_a_file.store.forget(ALICE, memory_id, PASSPORT)
    told.append(in_a_file.store.deletions(ALICE))
    assert all(told)
    assert "P1234567" not in repr(told)


@pytest.mark.parametrize("wrong", ["", "Alice", "-alice", "alice\n", "a" * 65, "alice_b", "ALICE", "älice", None, 7])
def test_scope_takes_identifiers_alone(wrong: str) -> None:
    for scope in ((wrong, "trip-planning"), ("alice", wrong)):
        with pytest.raises(MemoryInputError, match="must be an identifier"):
            TaskScope(*scope)
    assert TaskScope("a" * 64, "7-b").user == "a" * 64


@pytest.mark.parametrize("wrong", ["", " ", "t" * 513, "a\0b", "\ud800", None])
def test_scope_takes_no_tenant_that_a_job_could_not_name(wrong: str) -> None:
    with pytest.raises(MemoryInputError, match=r"^tenant must"):
        TaskScope("alice", "trip-planning", tenant=wrong)
