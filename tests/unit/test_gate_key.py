"""A forgotten key is refused up to the cut-off, in its scope alone."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.domain.codes import Refusal
from tests.unit.gate_harness import CUT_OFF, GATE, HOME, Stones, elsewhere, origin, write


@pytest.mark.parametrize(
    ("position", "refusal"),
    [(CUT_OFF - 1, Refusal.KEY_TOMBSTONED), (CUT_OFF, Refusal.KEY_TOMBSTONED), (CUT_OFF + 1, None)],
)
def test_a_forgotten_key_is_refused_up_to_the_cut_off(position: int, refusal: Refusal | None) -> None:
    stones = Stones().add(GATE.for_key(HOME, "theme", CUT_OFF))
    assert GATE.decide(write("light", source=origin("m-9", position)), stones) is refusal


@pytest.mark.parametrize("key", [None, "theme2", "Theme", "accent"])
def test_another_key_passes(key: str | None) -> None:
    stones = Stones().add(GATE.for_key(HOME, "theme", CUT_OFF))
    assert GATE.decide(write(key=key, source=origin("m-9", 1)), stones) is None


def test_the_same_key_of_another_scope_passes() -> None:
    stones = Stones().add(GATE.for_key(HOME, "theme", CUT_OFF))
    for scope in (elsewhere(project="q"), elsewhere(user="v"), elsewhere(project=None)):
        assert GATE.decide(write(scope=scope, source=origin("m-9", 1)), stones) is None


@settings(deadline=None)
@given(st.text(min_size=1, max_size=20), st.integers(1, 20), st.integers(1, 20))
def test_a_forgotten_key_blocks_exactly_what_is_not_newer(text: str, cut_off: int, position: int) -> None:
    stones = Stones().add(GATE.for_key(HOME, "theme", cut_off))
    refusal = GATE.decide(write(text, source=origin("m-9", position)), stones)
    assert (refusal is Refusal.KEY_TOMBSTONED) is (position <= cut_off)
