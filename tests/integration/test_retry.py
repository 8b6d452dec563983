"""A person has a job tried again: what is parked goes on, and nothing that was done is done twice."""

from __future__ import annotations

import pytest

from orchestrator import Erased
from orchestrator.domain.job import Result
from orchestrator.domain.states import JobState
from orchestrator.domain.unit import Phase
from orchestrator.store.orders import MAX_ROUNDS
from tests.fakes import Bench, fill
from tests.integration.engine_harness import fail_in
from tests.integration.steer_harness import NAMES, rows_of, stage, work

__all__ = ["stage"]


@pytest.mark.req("R129")
def test_unit_whose_attempts_are_used_up_stays_where_it_is_until_a_person_has_it_tried_again(stage: Bench) -> None:
    fill(stage)
    stage.copies.before = fail_in(Phase.ERASE)
    job = stage.file()
    for failures in range(1, 6):
        stage.run()
        assert bool(stage.view(job).parked) == (failures == 5)
        stage.skip_pauses()
    parked = stage.view(job)
    assert (parked.state, parked.parked) == (JobState.DERIVED_CLEANUP, (("copies", "erase", "attempts_exhausted"),))
    assert (parked.attempts, parked.last_error) == (5, "store_unreachable")
    assert parked.waits_for_a_person
    stage.copies.before = work
    assert stage.run() == 0  # a store that is back is not asked by itself
    assert stage.ledger.retry(job) == 1
    stage.run()
    view = stage.view(job)
    assert (view.state, view.result, view.parked) == (JobState.COMPLETED, Result.ERASED, ())
    assert (stage.source.records, stage.copies.records) == (set(), set())
    assert stage.source.calls["erase"] == 1  # what the other store had done is not done again
    (erased,) = [r for r in stage.ledger.receipts(job) if (r.adapter, r.phase) == ("copies", "erase")]
    assert (erased.attempt, erased.erased) == (1, 2)  # counted afresh


def test_retry_of_a_job_with_nothing_parked_or_waiting_changes_nothing(stage: Bench) -> None:
    fill(stage)
    job = stage.file()
    before = rows_of(stage, job)
    assert stage.ledger.retry(job) == 0
    assert rows_of(stage, job) == before
    stage.take("source", Phase.REVOKE, "w")
    claimed = rows_of(stage, job)
    assert stage.ledger.retry(job) == 0  # a unit in work is left to its worker
    assert rows_of(stage, job) == claimed


def test_retry_takes_the_pause_from_a_unit_that_failed(stage: Bench) -> None:
    stage.source.before = fail_in(Phase.REVOKE)
    job = stage.file()
    stage.run()
    stage.source.before = work
    assert stage.ledger.due(NAMES) == []
    assert stage.ledger.retry(job) == 1
    stage.run()
    assert stage.view(job).state is JobState.COMPLETED


def test_retry_of_a_job_whose_copies_were_seen_again_in_every_round_opens_one_more(
    stage: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that lies is asked in five rounds; when it is mended, one retry has to lead to the end."""
    fill(stage)
    erase = stage.copies.erase
    lies = lambda orders: [Erased(already_absent=len(order.targets)) for order in orders]  # noqa: E731
    monkeypatch.setattr(stage.copies, "erase", lies)
    job = stage.file()
    stage.run()
    seen_again = (JobState.DERIVED_CLEANUP, MAX_ROUNDS, (("copies", "verify", "attempts_exhausted"),))
    view = stage.view(job)
    assert (view.state, view.round, view.parked, view.last_error) == (*seen_again, "still_present")
    assert stage.ledger.retry(job) == 1
    stage.run()
    view = stage.view(job)
    assert (view.state, view.round, len(view.parked)) == (JobState.DERIVED_CLEANUP, MAX_ROUNDS + 1, 1), "one more alone"
    monkeypatch.setattr(stage.copies, "erase", erase)
    assert stage.ledger.retry(job) == 1
    stage.run()
    view = stage.view(job)
    assert (view.state, view.round, view.result) == (JobState.COMPLETED, MAX_ROUNDS + 2, Result.ERASED)
    assert stage.copies.records == set()
