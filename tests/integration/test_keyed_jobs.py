"""Whole jobs over preferences, candidates and facts that were told twice, down to the raw file and the report."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator import Residual, Selector, SelectorKind
from orchestrator.domain.job import Result
from orchestrator.domain.states import JobState
from tests.integration.cli_harness import Shell
from tests.integration.test_memory_physical import ANNA, BERTA, OTHER, SECRET, Deployment, deployed

ERASED = (JobState.COMPLETED, Result.ERASED)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Deployment]:
    yield from deployed(tmp_path)


def ended(stage: Deployment, job: str) -> tuple[JobState, Result | None]:
    view = stage.control.ledger.job(job)
    return view.state, view.result


def test_nothing_of_preferences_and_candidates_is_left_in_the_raw_file(stage: Deployment) -> None:
    for scope, text in ((ANNA, SECRET), (BERTA, OTHER)):
        source = f"{scope.user}/turn-1"
        stage.memory.store.register_source(scope, source)
        stage.memory.preferences.prefer(scope, "travel", text, source)
        stage.memory.candidates.propose(scope, "meal", text.upper(), source, proposed_by="summariser")
    assert min(stage.hits(SECRET) - 1, stage.hits(SECRET.upper())) >= 1, "an event, what holds by it, and a candidate"
    job = stage.file()
    stage.run()
    assert ended(stage, job) == ERASED
    assert [look[:2] for look in stage.looks(job)] == [("absent", "physical")]
    assert stage.hits(SECRET) == stage.hits(SECRET.upper()) == 0
    assert min(stage.hits(OTHER) - 1, stage.hits(OTHER.upper())) >= 1
    assert stage.memory.preferences.state(BERTA, "travel").value == OTHER


def test_fact_that_is_pointed_elsewhere_is_no_residue_and_the_report_says_that_it_stays(stage: Deployment) -> None:
    for source in ("first", "last"):
        stage.memory.store.register_source(ANNA, source)
        stage.memory.store.put(ANNA, "passport", SECRET, source)
    stage.memory.store.put(ANNA, "seat", OTHER, "last")
    job = stage.file(Selector(kind=SelectorKind.SOURCE, value="last"))
    stage.run()
    assert ended(stage, job) == ERASED
    assert [(f.key, f.value, f.source) for f in stage.memory.store.current(ANNA)] == [("passport", SECRET, "first")]
    ((outcome, _, residuals),) = stage.looks(job)
    assert outcome == "absent"
    assert Residual.SHARED_TEXT in residuals
    assert stage.hits(SECRET) > 0
    assert stage.hits(OTHER) == 0
    code, told, _ = Shell(stage.folder)("report", job)
    assert (code, Residual.TOLD_ELSEWHERE.value in told) == (0, True)
