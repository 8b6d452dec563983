"""What a tombstone holds: no text, and a mac that no other scope or key shares."""

from __future__ import annotations

import re
from dataclasses import fields

from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.domain.contract import Tombstone, TombstoneKind
from orchestrator.domain.scope import Scope
from tests.unit.gate_harness import CUT_OFF, GATE


def test_tombstones_hold_no_text() -> None:
    scope = Scope(tenant="clinic-north", user="alice", project="diary")
    made = [
        GATE.for_source("clinic-north", "message-of-alice", CUT_OFF),
        GATE.for_subject(scope, CUT_OFF),
        GATE.for_key(scope, "diagnosis", CUT_OFF),
        GATE.for_text(scope, "diagnosis", "asthma", CUT_OFF),
        *GATE.for_tokens(scope, "message-of-alice", ["nx4711"], CUT_OFF),
    ]
    assert {t.kind for t in made} == set(TombstoneKind)
    assert {f.name for f in fields(Tombstone)} == {"kind", "key_id", "mac", "cut_off"}
    for stone in made:
        assert re.fullmatch(r"[0-9a-f]{64}", stone.mac)
        for word in ("clinic", "alice", "diary", "diagnosis", "asthma", "nx4711"):
            assert word not in repr(stone)


PARTS = st.sampled_from(["a", "b", "a:b", ":", 'a","b', "null", "报告"])
PLACES = st.tuples(st.builds(Scope, tenant=PARTS, user=PARTS, project=st.none() | PARTS), PARTS)


@settings(deadline=None)
@given(PLACES, PLACES)
def test_two_pairs_of_scope_and_key_never_share_a_mac(one: tuple[Scope, str], other: tuple[Scope, str]) -> None:
    a, b = GATE.for_key(*one, CUT_OFF), GATE.for_key(*other, CUT_OFF)
    assert (a.mac == b.mac) is (one == other)
