"""A person lets a job pass one store by name, and no other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator import InvalidRequest
from orchestrator.domain.codes import Refusal, WaiverReason
from orchestrator.domain.job import Result
from orchestrator.domain.states import JobState
from orchestrator.domain.unit import Phase
from orchestrator.service.run_batch import run_batch
from tests.fakes import ANNA, Bench, fill
from tests.integration.engine_harness import fail_in, run_until, with_rules
from tests.integration.steer_harness import WAIVER, cannot_erase, refusal, stage

__all__ = ["stage"]


@pytest.mark.req("R133")
@pytest.mark.case(16)
def test_store_that_cannot_erase_keeps_the_job_from_verified_until_it_is_waived_by_name(
    stage: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(stage)
    monkeypatch.setattr(stage.copies, "erase", cannot_erase)
    job = stage.file()
    for _ in range(2):  # to ask again does not help
        stage.run()
        view = stage.view(job)
        assert (view.state, view.parked) == (JobState.DERIVED_CLEANUP, (("copies", "erase", "unsupported"),))
        assert [r for r in stage.ledger.receipts(job) if r.adapter == "copies"] == []
        assert stage.ledger.retry(job) == 1
    stage.run()
    assert stage.ledger.waive(job, WAIVER)
    assert not stage.ledger.waive(job, WAIVER)
    stage.run()
    view = stage.view(job)
    assert (view.state, view.result, view.waived) == (JobState.COMPLETED, Result.WAIVED, ("copies",))
    assert [r for r in stage.ledger.receipts(job) if (r.adapter, r.phase) == ("copies", "erase")] == []
    assert (stage.source.records, len(stage.copies.records)) == (set(), 2)


@pytest.mark.req("R133")
@pytest.mark.parametrize("adapter", ["source", "copies"])
def test_waiver_of_one_store_lets_no_other_pass(stage: Bench, adapter: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(stage)
    for store in (stage.source, stage.copies):
        monkeypatch.setattr(store, "erase", cannot_erase)
    job = stage.file()
    stage.run()
    stage.ledger.waive(job, replace(WAIVER, adapter=adapter))
    stage.run()
    assert stage.view(job).state is JobState.DERIVED_CLEANUP
    (other,) = {"source", "copies"} - {adapter}
    stage.ledger.waive(job, replace(WAIVER, adapter=other))
    stage.run()
    assert (stage.view(job).state, stage.view(job).result) == (JobState.COMPLETED, Result.WAIVED)


def test_waived_store_that_is_seen_to_be_empty_is_not_told_as_waived(stage: Bench) -> None:
    fill(stage)
    stage.copies.before = fail_in(Phase.ERASE)
    job = stage.file()
    stage.run()
    stage.copies.records.clear()  # somebody erases it by hand
    stage.ledger.waive(job, replace(WAIVER, reason=WaiverReason.HANDLED_ELSEWHERE))
    run_until(stage, "copies", Phase.VERIFY)
    run_batch(stage.engine, "copies", Phase.VERIFY)
    stage.run()
    view = stage.view(job)
    assert (view.state, view.result, view.waived) == (JobState.COMPLETED, Result.ERASED, ("copies",))


def test_source_cannot_be_waived_before_it_has_revoked(stage: Bench) -> None:
    fill(stage)
    job = stage.file()
    waiver = replace(WAIVER, adapter="source")
    assert refusal(lambda: stage.ledger.waive(job, waiver)) is Refusal.SOURCE_NOT_REVOKED
    assert stage.rows("SELECT * FROM waivers") == []
    stage.run()
    assert stage.view(job).result is Result.ERASED


def test_store_that_was_taken_out_of_the_configuration_can_be_waived_where_a_job_waits_for_it(stage: Bench) -> None:
    fill(stage)
    stage.copies.before = fail_in(Phase.ERASE)
    job = stage.file()
    stage.run()
    kept, _ = stage.ledger.rules.stores
    with_rules(stage, stores=[kept])
    stage.engine = replace(stage.engine, adapters={"source": stage.source})
    other = stage.file(scope=replace(ANNA, user="berta"))
    stage.run()
    assert (stage.view(job).state, stage.view(other).state) == (JobState.DERIVED_CLEANUP, JobState.COMPLETED)
    waiver = replace(WAIVER, reason=WaiverReason.STORE_GONE)
    assert stage.ledger.waive(job, waiver)
    stage.run()
    view = stage.view(job)
    assert (view.state, view.result, view.waived) == (JobState.COMPLETED, Result.WAIVED, ("copies",))
    asked_for_nothing = stage.file("seat")
    with pytest.raises(InvalidRequest, match="no adapter of that name; enabled are: source"):
        stage.ledger.waive(asked_for_nothing, waiver)


def test_source_that_was_taken_out_cannot_be_waived_before_it_has_revoked(stage: Bench) -> None:
    fill(stage)
    job = stage.file()
    _, copies = stage.ledger.rules.stores
    with_rules(stage, stores=[copies])
    assert refusal(lambda: stage.ledger.waive(job, replace(WAIVER, adapter="source"))) is Refusal.SOURCE_NOT_REVOKED
