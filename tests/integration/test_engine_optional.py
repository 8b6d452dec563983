"""A store that nobody has to wait for: a job ends without it, and what it left undone is never taken up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from orchestrator import EraseOrder
from orchestrator.domain.job import Store
from orchestrator.domain.states import JobState
from orchestrator.domain.unit import Phase
from tests.fakes import Bench, fill
from tests.integration.engine_harness import execute, fail_in, with_rules

Silence = Callable[[Bench], None]


def make_optional(stage: Bench, *, required: bool = False) -> None:
    source, copies = stage.ledger.rules.stores
    with_rules(stage, stores=[source, Store(name=copies.name, role=copies.role, required=required)])


def nobody_serves_it(stage: Bench) -> None:
    stage.engine = replace(stage.engine, adapters={"source": stage.source})


def it_always_fails(stage: Bench) -> None:
    stage.copies.before = fail_in(*Phase)


def its_worker_dies(stage: Bench) -> None:
    nobody_serves_it(stage)

    def claimed_by_another(phase: str, _orders: Sequence[EraseOrder]) -> None:
        if phase == Phase.FIND:
            stage.take("copies", Phase.FIND, "dead")

    stage.source.before = claimed_by_another


SILENCES = [nobody_serves_it, it_always_fails, its_worker_dies]


@pytest.mark.parametrize("silence", SILENCES)
def test_optional_store_that_never_answers_does_not_keep_a_job_from_its_end(stage: Bench, silence: Silence) -> None:
    make_optional(stage)
    fill(stage)
    silence(stage)
    job = stage.file()
    stage.run()
    view = stage.view(job)
    assert (view.state, stage.source.records) == (JobState.COMPLETED, set())
    assert view.verified_at is not None
    assert len(stage.copies.records) == 2
    assert {r.adapter for r in stage.ledger.receipts(job)} == {"source"}


@pytest.mark.parametrize("silence", SILENCES)
def test_what_an_optional_store_left_undone_is_never_claimed(stage: Bench, silence: Silence) -> None:
    make_optional(stage)
    fill(stage)
    silence(stage)
    stage.file()
    stage.run()
    left = stage.rows("SELECT phase FROM deletion_units WHERE adapter = 'copies' AND status <> 'done'")
    assert left == [("find",)]  # what was not looked through is not said to be erased or seen either
    running = stage.rows("SELECT id FROM deletion_units WHERE status = 'running'")
    assert bool(running) == (silence is its_worker_dies)
    stage.end_leases()
    stage.ledger.sweep()
    for _ in range(2):
        assert stage.ledger.due(["source", "copies"]) == []
        assert [len(stage.ledger.claim("copies", phase, owner="w", limit=9)) for phase in Phase] == [0] * len(Phase)
        assert stage.ledger.announce() == []
        execute(stage, "UPDATE deletion_units SET next_attempt_at_us = 0")  # not even one that is due


@pytest.mark.parametrize("silence", SILENCES)
def test_required_store_that_never_answers_keeps_a_job_from_verified(stage: Bench, silence: Silence) -> None:
    make_optional(stage, required=True)
    fill(stage)
    silence(stage)
    job = stage.file()
    stage.run()
    assert stage.view(job).state is JobState.SOURCE_REVOKED


def test_optional_store_that_answers_is_worked_off_with_the_others(stage: Bench) -> None:
    make_optional(stage)
    fill(stage)
    job = stage.file()
    stage.run()
    assert stage.view(job).state is JobState.COMPLETED
    assert {(r.adapter, r.phase) for r in stage.ledger.receipts(job)} >= {("copies", "erase"), ("source", "erase")}
