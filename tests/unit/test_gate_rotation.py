"""Tombstones under other keys than the current one: known ones block, an unknown one refuses every write."""

from __future__ import annotations

import pytest

from orchestrator.domain.codes import Refusal
from orchestrator.domain.contract import Tombstone
from orchestrator.gate.decide import Gate, Write
from tests.unit.gate_harness import CUT_OFF, GATE, HOME, ROTATED, Stones, elsewhere, lost_passport, origin, write


@pytest.mark.parametrize(
    ("stone", "text", "refusal"),
    [
        (GATE.for_source("t", "m-1", CUT_OFF), "x", Refusal.SOURCE_TOMBSTONED),
        (GATE.for_subject(HOME, CUT_OFF), "x", Refusal.SUBJECT_TOMBSTONED),
        (GATE.for_key(HOME, "theme", CUT_OFF), "x", Refusal.KEY_TOMBSTONED),
        (GATE.for_text(HOME, "theme", "dark", CUT_OFF), "dark", Refusal.TEXT_TOMBSTONED),
    ],
    ids=lambda v: str(v.value) if isinstance(v, Refusal) else "",
)
def test_old_tombstones_still_block_after_a_rotation(stone: Tombstone, text: str, refusal: Refusal) -> None:
    new = Gate(ROTATED)
    assert new.decide(write(text, source=origin("m-1", CUT_OFF)), Stones().add(stone)) is refusal


def test_old_tokens_and_old_sources_still_block_after_a_rotation() -> None:
    new = Gate(ROTATED)
    assert new.decide(write("NX4711", source=origin("m-1")), Stones().add(*lost_passport())) is Refusal.TOKEN_TOMBSTONED
    old = Stones().add(GATE.for_source("t", "m-1", CUT_OFF))
    assert new.source_refused("t", ["m-1"], old) is Refusal.SOURCE_TOMBSTONED


def test_new_tombstones_are_made_under_the_current_key() -> None:
    assert Gate(ROTATED).for_source("t", "m-1", CUT_OFF).key_id == ROTATED.current != "tk-1"
    assert GATE.for_source("t", "m-1", CUT_OFF).key_id == "tk-1"


def test_a_tombstone_under_an_unknown_key_refuses_every_write() -> None:
    stones = Stones().add(Gate(ROTATED).for_source("t", "m-1", CUT_OFF))
    unregistered = Write(scope=HOME, key=None, text="x", origin=None)
    for attempt in (write(source=origin("m-2"), confirmed=True), write(key=None), unregistered):
        assert GATE.decide(attempt, stones) is Refusal.KEYRING_INCOMPLETE
    assert GATE.source_refused("t", ["m-2"], stones) is Refusal.KEYRING_INCOMPLETE


def test_an_unknown_key_of_one_tenant_does_not_stop_another() -> None:
    stones = Stones().add(Gate(ROTATED).for_source("t", "m-1", CUT_OFF))
    assert GATE.decide(write(scope=elsewhere(tenant="other")), stones) is None
