"""A forgotten text is refused in any spelling, unless the user confirms it afresh."""

from __future__ import annotations

import pytest

from orchestrator.domain.codes import Refusal
from tests.unit.gate_harness import CUT_OFF, GATE, HOME, Stones, elsewhere, origin, write


@pytest.mark.parametrize("text", ["dark", "DARK", "  dark\n", "\uff44\uff41\uff52\uff4b"])
def test_a_forgotten_text_is_refused_from_any_source_and_in_any_spelling(text: str) -> None:
    stones = Stones().add(GATE.for_text(HOME, "theme", "Dark", CUT_OFF))
    assert GATE.decide(write(text, source=origin("m-9", 10**9)), stones) is Refusal.TEXT_TOMBSTONED


@pytest.mark.parametrize(
    ("confirmed", "position", "ancestors", "passes"),
    [
        (True, CUT_OFF + 1, (), True),
        (True, CUT_OFF, (), False),
        (True, CUT_OFF - 1, (), False),
        (True, CUT_OFF + 1, ("m-0",), False),
        (False, CUT_OFF + 1, (), False),
        (False, CUT_OFF, ("m-0",), False),
    ],
    ids=["fresh", "at-the-cut-off", "older", "derived", "unconfirmed", "none-of-it"],
)
def test_only_a_fresh_confirmation_lets_a_forgotten_text_pass(
    *, confirmed: bool, position: int, ancestors: tuple[str, ...], passes: bool
) -> None:
    stones = Stones().add(GATE.for_text(HOME, "theme", "dark", CUT_OFF))
    refusal = GATE.decide(write(source=origin("m-9", position, *ancestors), confirmed=confirmed), stones)
    assert refusal is (None if passes else Refusal.TEXT_TOMBSTONED)


def test_a_confirmation_must_be_newer_than_the_last_erasure_of_the_text() -> None:
    stones = Stones().add(GATE.for_text(HOME, "theme", "dark", 5), GATE.for_text(HOME, "theme", "dark", CUT_OFF))
    assert GATE.decide(write(source=origin("m-9", 7), confirmed=True), stones) is Refusal.TEXT_TOMBSTONED
    assert GATE.decide(write(source=origin("m-9", 11), confirmed=True), stones) is None


def test_a_forgotten_text_passes_under_another_key_or_in_another_scope() -> None:
    stones = Stones().add(GATE.for_text(HOME, "theme", "dark", CUT_OFF))
    assert GATE.decide(write(key="chocolate"), stones) is None
    assert GATE.decide(write(key=None), stones) is None
    assert GATE.decide(write(scope=elsewhere(project="q")), stones) is None
    assert GATE.decide(write("darker"), stones) is None


@pytest.mark.parametrize("key", [None, "theme", "chocolate"])
def test_a_text_forgotten_without_a_key_is_refused_under_every_key(key: str | None) -> None:
    stones = Stones().add(GATE.for_text(HOME, None, "dark", CUT_OFF))
    assert GATE.decide(write(key=key), stones) is Refusal.TEXT_TOMBSTONED
