"""The distinctive tokens of a source that lost a fact give away the fact in other words."""

from __future__ import annotations

from orchestrator.domain.codes import Refusal
from orchestrator.domain.contract import TombstoneKind
from tests.unit.gate_harness import GATE, Stones, elsewhere, lost_passport, origin, write


def test_the_same_fact_in_other_words_from_the_same_source_is_refused() -> None:
    stones = Stones().add(*lost_passport())
    for text in ("my passport is NX4711", "I was born in utrecht."):
        for source in (origin("m-1", 3), origin("summary", 99, "m-1")):
            assert GATE.decide(write(text, key="other", source=source), stones) is Refusal.TOKEN_TOMBSTONED


def test_a_different_fact_from_the_same_source_passes() -> None:
    stones = Stones().add(*lost_passport())
    assert GATE.decide(write("my dog is called Rex", source=origin("m-1", 3)), stones) is None
    assert GATE.decide(write("flight NX47110", source=origin("m-1", 3)), stones) is None


def test_the_token_passes_from_a_source_that_lost_nothing_or_in_another_scope() -> None:
    stones = Stones().add(*lost_passport())
    assert GATE.decide(write("passport NX4711", source=origin("m-2")), stones) is None
    assert GATE.decide(write("passport NX4711", scope=elsewhere(user="v"), source=origin("m-1")), stones) is None


def test_a_token_counts_only_where_the_source_is_marked_as_having_lost_a_fact() -> None:
    marker, *tokens = lost_passport()
    assert marker.kind is TombstoneKind.FACT_SOURCE
    assert GATE.decide(write("passport NX4711", source=origin("m-1")), Stones().add(*tokens)) is None
    assert GATE.decide(write("passport NX4711", source=origin("m-1")), Stones().add(marker)) is None


def test_tokens_are_looked_up_only_for_a_source_that_lost_a_fact() -> None:
    stones = Stones().add(*lost_passport())
    GATE.decide(write("passport NX4711", source=origin("m-2")), stones)
    assert len(stones.asked) == 1
    GATE.decide(write("passport NX4711", source=origin("m-1")), stones)
    assert len(stones.asked) == 3
