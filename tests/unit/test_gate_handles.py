"""Handles say nothing and survive every rotation."""

from __future__ import annotations

import re

from orchestrator.gate.decide import Gate
from orchestrator.gate.keyring import Keyring
from tests.unit.gate_harness import GATE, RING, ROTATED


def test_a_handle_names_without_saying_what_and_survives_rotation() -> None:
    handle = GATE.handle("t", "memory", "asthma", None)
    assert re.fullmatch(r"[0-9a-f]{32}", handle)
    assert Gate(ROTATED.rotate()).handle("t", "memory", "asthma", None) == handle
    assert len({handle, GATE.handle("other", "memory", "asthma", None), GATE.handle("t", "memory", "asthma")}) == 3


def test_a_handle_survives_eleven_rotations() -> None:
    ring = RING
    for _ in range(11):
        ring = ring.rotate()
    assert len(ring.key_ids) == 12
    assert Gate(ring).handle("t", "x") == GATE.handle("t", "x")


def test_a_handle_survives_the_rotation_of_a_ring_with_names_of_its_own() -> None:
    own = Keyring(current="clinic-2024", keys={"clinic-2024": bytes(range(32))})
    assert Gate(own.rotate()).handle("t", "x") == Gate(own).handle("t", "x")
