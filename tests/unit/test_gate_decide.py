"""The gate over the whole table of tombstones: without any, with those of another tenant, and with several."""

from __future__ import annotations

import pytest

from orchestrator.domain.codes import Refusal
from orchestrator.domain.contract import Tombstone, TombstoneKind
from orchestrator.gate.decide import Write
from tests.unit.gate_harness import CUT_OFF, GATE, HOME, Stones, elsewhere, lost_passport, origin, write


def test_without_tombstones_a_registered_source_may_write() -> None:
    assert GATE.decide(write(), Stones()) is None
    assert GATE.decide(write(key=None), Stones()) is None


def test_a_source_that_was_never_registered_is_refused_without_any_tombstone() -> None:
    replay = Write(scope=HOME, key="theme", text="dark", origin=None, confirmed=True)
    assert GATE.decide(replay, Stones()) is Refusal.UNKNOWN_SOURCE


def test_another_tenant_with_the_same_ids_passes() -> None:
    rows = [
        GATE.for_source("t", "m-1", CUT_OFF),
        GATE.for_subject(HOME, CUT_OFF),
        GATE.for_key(HOME, "theme", CUT_OFF),
        GATE.for_text(HOME, "theme", "dark", CUT_OFF),
        *lost_passport(),
    ]
    same = write(scope=elsewhere(tenant="other"), source=origin("m-1", 1))
    assert GATE.decide(same, Stones().add(*rows)) is None
    # Even rows that were filed under the wrong tenant match nobody else.
    assert GATE.decide(same, Stones().add(*rows, tenant="other")) is None


def test_of_several_reasons_the_widest_is_named() -> None:
    stones = Stones()
    source = origin("m-1", CUT_OFF)
    narrow_to_wide = [
        (GATE.for_text(HOME, "theme", "passport nx4711", CUT_OFF), Refusal.TEXT_TOMBSTONED),
        (lost_passport(), Refusal.TOKEN_TOMBSTONED),
        (GATE.for_key(HOME, "theme", CUT_OFF), Refusal.KEY_TOMBSTONED),
        (GATE.for_subject(HOME, CUT_OFF), Refusal.SUBJECT_TOMBSTONED),
        (GATE.for_source("t", "m-1", CUT_OFF), Refusal.SOURCE_TOMBSTONED),
    ]
    for made, refusal in narrow_to_wide:
        stones.add(*(made if isinstance(made, list) else [made]))
        assert GATE.decide(write("passport NX4711", source=source), stones) is refusal


@pytest.mark.parametrize("kind", list(TombstoneKind))
def test_a_row_whose_kind_was_changed_does_not_count(kind: TombstoneKind) -> None:
    made = GATE.for_source("t", "m-1", CUT_OFF)
    changed = Tombstone(kind=kind, key_id=made.key_id, mac=made.mac, cut_off=made.cut_off)
    stones = Stones().add(changed)
    refusal = GATE.decide(write("passport NX4711", source=origin("m-1")), stones)
    assert len(stones.asked) == 1, "it is no marker of a lost fact either"
    assert refusal is (Refusal.SOURCE_TOMBSTONED if kind is TombstoneKind.SOURCE else None)
