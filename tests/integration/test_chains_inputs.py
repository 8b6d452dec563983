"""What is refused before anything is written, and takes no reading of the clock."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any

import pytest

from adapters.memory.chains import MemoryInputError, MemoryNotFound
from tests.integration.chains_harness import (
    ALICE,
    BOB,
    DIET,
    EVERYWHERE,
    IN_A_FILE,
    START,
    TURN_3,
    TURN_12,
    Chains,
    chains_in,
)

chains = chains_in(*EVERYWHERE)
in_a_file = chains_in(*IN_A_FILE)
REASON = "user request at trip-planning/turn-20"
NO_TEXTS = ["", " \n\t", "x" * 2001, None, 7, b"bytes", "a\0b", "\ud800"]


class Wrong(StrEnum):
    GLOBAL = "global"


def counted(chains: Chains) -> tuple[Any, ...]:
    return tuple(chains.rows(f"SELECT count(*) FROM {table}")[0][0] for table in ("memories", "deletions"))  # noqa: S608


@pytest.mark.req("R110")
def test_invalid_input_is_refused_before_writing(chains: Chains) -> None:
    memory_id = chains.store.remember(ALICE, "user", DIET, TURN_3)
    calls: list[Callable[[], object]] = [
        lambda: chains.store.remember(ALICE, "user", DIET, TURN_3, ttl_days=0),
        lambda: chains.store.remember(ALICE, "user", DIET, TURN_3, ttl_days=True),
        lambda: chains.store.remember(ALICE, "global", DIET, TURN_3),
        lambda: chains.store.correct(ALICE, memory_id, " ", TURN_12),
        lambda: chains.store.forget(ALICE, memory_id, "  "),
    ]
    for call in calls:
        with pytest.raises(MemoryInputError) as caught:
            call()
        assert isinstance(caught.value, ValueError)
    assert counted(chains) == (1, 0)
    assert [v.text for v in chains.store.history(ALICE, memory_id)] == [DIET]


@pytest.mark.req("R111")
def test_rejected_call_takes_no_reading_of_the_clock(chains: Chains) -> None:
    with pytest.raises(MemoryInputError):
        chains.store.remember(ALICE, "user", DIET, TURN_3, ttl_days=0)
    assert chains.clock.peek() == START
    memory_id = chains.store.remember(ALICE, "user", DIET, TURN_3)
    chains.store.correct(ALICE, memory_id, DIET, TURN_12)
    after_two = chains.clock.peek()
    for error, call in (
        (MemoryInputError, lambda: chains.store.correct(ALICE, memory_id, DIET, TURN_12)),
        (MemoryNotFound, lambda: chains.store.correct(BOB, memory_id, DIET, TURN_12)),
        (MemoryNotFound, lambda: chains.store.forget(BOB, memory_id, REASON)),
    ):
        with pytest.raises(error):
            call()
    assert chains.clock.peek() == after_two


@pytest.mark.req("R110")
@pytest.mark.parametrize("ttl", [1, 3650])
def test_ttl_takes_the_bounds(in_a_file: Chains, ttl: int) -> None:
    assert in_a_file.store.remember(ALICE, "user", DIET, TURN_3, ttl) == 1


@pytest.mark.req("R110")
@pytest.mark.parametrize("ttl", [0, -1, 3651, True, False, 7.0, "7", 10**30])
def test_ttl_takes_nothing_else(in_a_file: Chains, ttl: Any) -> None:  # noqa: ANN401 - of any type
    memory_id = in_a_file.store.remember(ALICE, "user", DIET, TURN_3)
    with pytest.raises(MemoryInputError, match=r"^ttl_days must be a whole number from 1 to 3650$"):
        in_a_file.store.remember(ALICE, "user", DIET, TURN_3, ttl)
    with pytest.raises(MemoryInputError, match=r"^ttl_days must be a whole number from 1 to 3650$"):
        in_a_file.store.correct(ALICE, memory_id, DIET, TURN_3, ttl)
    assert counted(in_a_file) == (1, 0)


@pytest.mark.req("R110")
def test_limit_takes_1_to_20(in_a_file: Chains) -> None:
    for limit in (0, 21, True, -1, 3.0, "3", None):
        with pytest.raises(MemoryInputError, match=r"^limit must be a whole number from 1 to 20$"):
            in_a_file.store.recall(ALICE, DIET, limit)  # type: ignore[arg-type]  # what a caller must not give
    assert in_a_file.store.recall(ALICE, DIET, 1) == in_a_file.store.recall(ALICE, DIET, 20) == []


@pytest.mark.req("R110")
@pytest.mark.parametrize("level", ["global", "", "USER", None, 1, [], Wrong.GLOBAL])
def test_level_is_user_or_task(in_a_file: Chains, level: Any) -> None:  # noqa: ANN401 - of any type
    with pytest.raises(MemoryInputError, match=r"^level must be one of user, task$"):
        in_a_file.store.remember(ALICE, level, DIET, TURN_3)
    assert counted(in_a_file) == (0, 0)


@pytest.mark.req("R110")
@pytest.mark.parametrize("wrong", NO_TEXTS)
def test_text_source_and_reason_are_texts_of_at_most_2000_characters(
    in_a_file: Chains,
    wrong: Any,  # noqa: ANN401 - of any type
) -> None:
    store, memory_id = in_a_file.store, in_a_file.store.remember(ALICE, "user", DIET, TURN_3)
    for field, call in (
        ("text", lambda: store.remember(ALICE, "user", wrong, TURN_3)),
        ("source", lambda: store.remember(ALICE, "user", DIET, wrong)),
        ("text", lambda: store.correct(ALICE, memory_id, wrong, TURN_3)),
        ("source", lambda: store.correct(ALICE, memory_id, DIET, wrong)),
        ("reason", lambda: store.forget(ALICE, memory_id, wrong)),
    ):
        with pytest.raises(MemoryInputError, match=f"^{field} must") as caught:
            call()
        assert caught.value.facts == {"field": field}
    assert counted(in_a_file) == (1, 0)


@pytest.mark.req("R110")
def test_lengths_are_counted_in_characters_and_2000_are_taken(chains: Chains) -> None:
    longest = "\N{GRINNING FACE}" * 2000
    memory_id = chains.store.remember(ALICE, "user", longest, longest)
    (version,) = chains.store.history(ALICE, memory_id)
    assert (version.text, version.source) == (longest, longest)
    assert chains.store.forget(ALICE, memory_id, longest) == [memory_id]
    assert chains.store.deletions(ALICE)[0].reason == longest


@pytest.mark.req("R110")
@pytest.mark.parametrize("wrong", ["P1234567", True, 1.0, None])
def test_id_that_is_no_number_is_refused_and_not_repeated(in_a_file: Chains, wrong: Any) -> None:  # noqa: ANN401
    in_a_file.store.remember(ALICE, "user", DIET, TURN_3)
    for call in (
        lambda: in_a_file.store.history(ALICE, wrong),
        lambda: in_a_file.store.correct(ALICE, wrong, DIET, TURN_3),
        lambda: in_a_file.store.forget(ALICE, wrong, REASON),
    ):
        with pytest.raises(MemoryInputError, match=r"^memory_id must be a whole number$"):
            call()


def test_question_that_is_no_text_is_refused(in_a_file: Chains) -> None:
    with pytest.raises(MemoryInputError, match=r"^query must be a text$"):
        in_a_file.store.recall(ALICE, None)  # type: ignore[arg-type]  # what a caller must not give
