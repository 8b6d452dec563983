"""A forgotten subject is refused up to the cut-off, and no other one is."""

from __future__ import annotations

import pytest

from orchestrator.domain.codes import Refusal
from orchestrator.domain.scope import Scope
from tests.unit.gate_harness import CUT_OFF, GATE, HOME, Stones, elsewhere, origin, write


@pytest.mark.parametrize(
    ("position", "refusal"),
    [(CUT_OFF - 1, Refusal.SUBJECT_TOMBSTONED), (CUT_OFF, Refusal.SUBJECT_TOMBSTONED), (CUT_OFF + 1, None)],
)
@pytest.mark.parametrize("forgotten", [elsewhere(project=None), HOME], ids=["user", "project"])
def test_a_forgotten_subject_is_refused_up_to_the_cut_off_and_may_return_after_it(
    forgotten: Scope, position: int, refusal: Refusal | None
) -> None:
    stones = Stones().add(GATE.for_subject(forgotten, CUT_OFF))
    assert GATE.decide(write(source=origin("m-9", position), confirmed=True), stones) is refusal


def test_forgetting_a_user_reaches_every_project_and_forgetting_a_project_only_that_one() -> None:
    user = Stones().add(GATE.for_subject(elsewhere(project=None), CUT_OFF))
    project = Stones().add(GATE.for_subject(HOME, CUT_OFF))
    old = origin("m-9", CUT_OFF)
    for scope in (HOME, elsewhere(project="q"), elsewhere(project=None)):
        assert GATE.decide(write(scope=scope, source=old), user) is Refusal.SUBJECT_TOMBSTONED
    for scope in (elsewhere(project="q"), elsewhere(project=None)):
        assert GATE.decide(write(scope=scope, source=old), project) is None


def test_another_user_passes_even_with_a_longer_name() -> None:
    stones = Stones().add(GATE.for_subject(elsewhere(project=None), CUT_OFF))
    for user in ("u1", "U", "v"):
        assert GATE.decide(write(scope=elsewhere(user=user), source=origin("m-9", 1)), stones) is None
