"""A forgotten source is refused wherever it comes from again."""

from __future__ import annotations

import pytest

from orchestrator.domain.codes import Refusal
from orchestrator.domain.scope import Scope
from tests.unit.gate_harness import CUT_OFF, GATE, Stones, elsewhere, origin, write


@pytest.mark.parametrize("position", [1, CUT_OFF, CUT_OFF + 1, 10**9])
def test_a_forgotten_source_is_refused_at_any_position(position: int) -> None:
    stones = Stones().add(GATE.for_source("t", "m-1", CUT_OFF))
    assert GATE.decide(write(source=origin("m-1", position), confirmed=True), stones) is Refusal.SOURCE_TOMBSTONED


def test_what_was_derived_from_a_forgotten_source_is_refused() -> None:
    stones = Stones().add(GATE.for_source("t", "m-1", CUT_OFF))
    assert GATE.decide(write(source=origin("summary", 99, "m-0", "m-1")), stones) is Refusal.SOURCE_TOMBSTONED


@pytest.mark.parametrize("scope", [elsewhere(user="v"), elsewhere(project="q"), elsewhere(project=None)])
def test_a_forgotten_source_is_refused_in_every_scope_of_its_tenant(scope: Scope) -> None:
    stones = Stones().add(GATE.for_source("t", "m-1", CUT_OFF))
    assert GATE.decide(write(scope=scope, source=origin("m-1")), stones) is Refusal.SOURCE_TOMBSTONED


@pytest.mark.parametrize("name", ["m-10", "m-", "M-1", "m-2"])
def test_another_source_passes(name: str) -> None:
    stones = Stones().add(GATE.for_source("t", "m-1", CUT_OFF))
    assert GATE.decide(write(source=origin(name)), stones) is None


def test_a_forgotten_source_is_not_registered_again() -> None:
    stones = Stones().add(GATE.for_source("t", "m-1", CUT_OFF))
    assert GATE.source_refused("t", ["m-1"], stones) is Refusal.SOURCE_TOMBSTONED
    assert GATE.source_refused("t", ["summary", "m-1"], stones) is Refusal.SOURCE_TOMBSTONED
    assert GATE.source_refused("t", ["m-2"], stones) is None
    assert GATE.source_refused("other", ["m-1"], stones) is None
    assert GATE.source_refused("t", [], stones) is None
