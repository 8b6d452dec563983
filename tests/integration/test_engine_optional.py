"""A store that nobody has to wait for: a job ends without it, and what it left undone is never taken up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from orchestrator import EraseOrder, Target
from orchestrator.domain.codes import HoldReason
from orchestrator.domain.contract import Fingerprint
from orchestrator.domain.job import Store
from orchestrator.domain.states import JobState
from orchestrator.domain.unit import Claimed, Finished, Phase
from orchestrator.service.hold import HoldRequest, place
from tests.fakes import ANNA, Bench, fill
from tests.integration.engine_harness import execute, fail_in, with_rules
from tests.integration.steer_harness import WAIVER

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


@pytest.mark.parametrize("waived", [False, True])
def test_late_answer_leaves_nothing_that_goes_with_the_end_of_a_job(stage: Bench, *, waived: bool) -> None:
    """A store was slow, and its job has ended without it: what it has found by then is for nobody's look."""
    make_optional(stage, required=waived)
    fill(stage)
    nobody_serves_it(stage)
    slow: list[Claimed] = []

    def taken_up(phase: str, _orders: Sequence[EraseOrder]) -> None:
        if phase == Phase.FIND:
            slow.extend(stage.take("copies", Phase.FIND, "slow"))

    stage.source.before = taken_up
    job = stage.file()
    stage.run()
    if waived:
        assert stage.ledger.waive(job, WAIVER)
        stage.run()
    assert stage.view(job).state is JobState.COMPLETED
    assert_answers_without_traces(stage, slow[0])


def test_late_revoke_of_a_freed_item_leaves_nothing_that_goes_with_the_end_of_a_job(stage: Bench) -> None:
    fill(stage, count=2)
    item = "anna-passport-000001"
    asked = HoldRequest(
        tenant=ANNA.tenant, user=ANNA.user, items=(item,), reason=HoldReason.DISPUTE, requested_by="counsel"
    )
    (hold,) = place(asked, stage.acceptance)
    job = stage.file()
    stage.run()
    stage.ledger.release(str(hold), by_ref="counsel")
    (slow,) = stage.take("source", Phase.REVOKE, "slow")
    assert slow.item == item
    for name in ("source", "copies"):
        assert stage.ledger.waive(job, replace(WAIVER, adapter=name))
    stage.run()
    assert stage.view(job).state is JobState.COMPLETED
    assert_answers_without_traces(stage, slow)


def assert_answers_without_traces(stage: Bench, slow: Claimed) -> None:
    answer = Finished(
        claimed=slow,
        receipt=None,
        targets=(Target(kind="copy", id="late"),),
        fingerprints=(Fingerprint(7, "ab" * 32),),
        cursor="key of anna",
    )
    assert stage.ledger.commit("slow", [answer], started_at=stage.clock.now()).dropped == frozenset()
    assert stage.rows("SELECT count(*) FROM deletion_targets WHERE handle = 'late'") == [(1,)]
    assert stage.rows("SELECT * FROM fingerprints") == []
    assert stage.rows("SELECT cursor FROM deletion_units WHERE cursor IS NOT NULL") == []
