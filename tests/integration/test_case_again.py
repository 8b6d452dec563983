"""Cases of receipts where something comes again: a second erase, a further page, a retry, a worker after a death."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import structlog

from orchestrator import (
    AdapterContext,
    EraseOrder,
    StorageAdapter,
)
from orchestrator.domain.states import JobState
from orchestrator.domain.unit import Phase
from tests.fakes import ANNA, Bench, fill
from tests.integration.cases_harness import erase_receipts, let_pass
from tests.integration.engine_harness import fail_in, run_until
from tests.integration.memory_harness import World


@pytest.mark.case(7)
def test_second_erase_of_the_same_record_is_no_error(world: World) -> None:
    order = world.order()
    targets = world.revoke(order).targets
    erase = replace(order, targets=targets)
    answers = [world.adapter.erase([erase])[0] for _ in range(2)]
    assert [(a.erased, a.already_absent) for a in answers] == [(1, 0), (0, 1)]


@pytest.mark.case(7)
def test_job_goes_on_over_what_a_call_without_an_answer_has_erased(stage: Bench) -> None:
    fill(stage)
    job = stage.file()
    run_until(stage, "copies", Phase.ERASE)
    (unit,) = stage.take("copies", Phase.ERASE, "dies")
    stage.copies.erase([unit.order])
    stage.end_leases()
    stage.ledger.sweep()
    stage.run()
    assert stage.view(job).state is JobState.COMPLETED
    assert erase_receipts(stage, job) == [("nothing_found", 2, 0, 2)]


@pytest.mark.case(9)
def test_more_targets_than_a_page_holds_are_split_and_all_go(stage: Bench) -> None:
    fill(stage, count=1001)
    stage.copies.records = {r for r in stage.copies.records if r[3].endswith("copy-0")}
    sizes: list[int] = []

    def note(phase: str, orders: Sequence[EraseOrder]) -> None:
        assert len(orders) <= stage.copies.max_batch
        sizes.extend(len(order.targets) for order in orders if phase == "erase")

    stage.source.before = stage.copies.before = note
    job = stage.file()
    stage.run()
    assert stage.view(job).state is JobState.COMPLETED
    assert (stage.source.records, stage.copies.records) == (set(), set())
    assert (max(sizes), sum(sizes)) == (1000, 2002)


@pytest.mark.case(9)
def test_subject_that_failed_again_and_again_is_listed_as_overdue_with_its_last_error(stage: Bench) -> None:
    fill(stage)
    stage.copies.before = fail_in(Phase.ERASE)
    job = stage.file()
    for _ in range(5):
        stage.run()
        stage.skip_pauses()
    stage.clock.at += timedelta(days=32)
    (late,) = stage.ledger.overdue(tenant=ANNA.tenant, before=stage.clock.at, limit=9)
    assert (late.id, late.last_error, late.attempts) == (job, "store_unreachable", 5)
    assert late.parked == (("copies", "erase", "attempts_exhausted"),)


@pytest.mark.case(12)
def test_what_a_retry_needs_is_kept_though_the_source_is_erased_already(stage: Bench) -> None:
    fill(stage)
    stage.copies.before = fail_in(Phase.ERASE)
    job = stage.file()
    for _ in range(5):
        stage.run()
        stage.skip_pauses()
    assert stage.source.records == set()
    kept = stage.rows("SELECT count(*) FROM deletion_targets WHERE adapter = 'copies'")
    assert kept == [(2,)]
    assert stage.rows("SELECT user_id, selector_value FROM deletion_jobs") == [("anna", "passport")]
    stage.copies.before = let_pass
    stage.ledger.retry(job)
    stage.run()
    assert (stage.view(job).state, stage.copies.records) == (JobState.COMPLETED, set())


@pytest.mark.case(18)
@pytest.mark.parametrize(
    ("adapter", "phase"), [("source", Phase.REVOKE), ("copies", Phase.FIND), ("copies", Phase.ERASE)]
)
def test_worker_that_dies_in_any_state_leaves_a_job_that_goes_on_and_takes_a_retry(
    stage: Bench, adapter: str, phase: Phase
) -> None:
    fill(stage)
    job = stage.file()
    run_until(stage, adapter, phase)
    stage.take(adapter, phase, "dies")
    state = stage.view(job).state
    stage.end_leases()
    assert stage.ledger.sweep().rescued == 1
    assert stage.view(job).state is state  # it can be seen, and it is where it was
    assert stage.ledger.retry(job) == 1
    stage.run()
    assert stage.view(job).state is JobState.COMPLETED


@pytest.mark.case(32)
def test_cache_that_is_down_keeps_the_job_from_its_end_and_is_asked_again(stage: Bench, tmp_path: Path) -> None:
    from adapters.cache import CacheAdapter

    log = structlog.get_logger()
    context = AdapterContext(clock=stage.clock, gate=stage.gate, log=log, state_dir=tmp_path)
    down: StorageAdapter = CacheAdapter(context, url="redis://127.0.0.1:1/0", timeout=1)
    up = stage.engine.adapters
    stage.engine = replace(stage.engine, adapters={**up, "copies": down})
    fill(stage)
    job = stage.file()
    stage.run()
    view = stage.view(job)
    assert (view.state, view.last_error) == (JobState.SOURCE_REVOKED, "store_unreachable")
    assert stage.source.calls["erase"] == 0  # the source is not said to be done meanwhile
    stage.engine = replace(stage.engine, adapters=up)
    stage.skip_pauses()
    stage.run()
    assert (stage.view(job).state, stage.copies.records) == (JobState.COMPLETED, set())


@pytest.mark.case(33)
@pytest.mark.parametrize(
    ("adapter", "phase"), [("copies", Phase.FIND), ("copies", Phase.ERASE), ("copies", Phase.VERIFY)]
)
def test_queue_of_writes_that_is_flushed_before_the_last_look_leaves_no_copy(
    stage: Bench, adapter: str, phase: Phase
) -> None:
    fill(stage)
    queued = (ANNA.tenant, ANNA.user, "anna-passport-000000", "queued")
    job = stage.file()
    run_until(stage, adapter, phase)
    stage.copies.records.add(queued)
    stage.run()
    assert (stage.view(job).state, stage.copies.records) == (JobState.COMPLETED, set())
