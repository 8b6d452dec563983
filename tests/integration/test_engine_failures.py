"""Stores that fail, hang or kill their worker: tried again after pauses, then parked, and the others go on."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from orchestrator import EraseOrder, Permanent, Scope, StoreUnreachable
from orchestrator.domain.states import JobState
from orchestrator.domain.unit import Phase
from orchestrator.service.run_batch import run_batch
from tests.fakes import Bench, fill


@pytest.mark.req("R126")
def test_failing_adapter_is_retried_and_others_keep_their_work(stage: Bench) -> None:
    fill(stage)
    failures = iter([StoreUnreachable(), StoreUnreachable()])

    def fail(phase: str, _orders: Sequence[EraseOrder]) -> None:
        if phase == "erase" and (error := next(failures, None)):
            raise error

    stage.copies.before = fail
    job = stage.file()
    for _ in range(3):
        stage.run()
        stage.skip_pauses()
    assert stage.view(job).state is JobState.COMPLETED
    assert stage.source.calls["erase"] == 1
    assert stage.rows("SELECT error_code, attempt FROM unit_attempts ORDER BY attempt") == [
        ("store_unreachable", 1),
        ("store_unreachable", 2),
    ]
    erased = next(r for r in stage.ledger.receipts(job) if (r.adapter, r.phase) == ("copies", "erase"))
    assert (erased.attempt, erased.erased) == (3, 2)


def test_backoff_is_kept_in_the_database_and_grows(stage: Bench) -> None:
    fill(stage)

    def fail(phase: str, _orders: Sequence[EraseOrder]) -> None:
        if phase == "erase":
            raise StoreUnreachable

    stage.copies.before = fail
    job = stage.file()
    pauses = []
    for _ in range(5):
        stage.run()
        pauses += stage.rows(
            "SELECT (u.next_attempt_at_us - a.at_us) / 1000 FROM deletion_units u JOIN unit_attempts a "
            "ON a.unit_id = u.id AND a.fence = u.fence WHERE u.status = 'pending' AND u.last_error_code IS NOT NULL"
        )
        stage.skip_pauses()
    assert [1000 * 2**n <= p[0] <= 2000 * 2**n for n, p in enumerate(pauses)] == [True] * 4
    view = stage.view(job)
    assert view.parked == (("copies", "erase", "attempts_exhausted"),)
    assert view.state is JobState.DERIVED_CLEANUP


@pytest.mark.req("R128")
def test_crash_between_erase_and_receipt_heals(stage: Bench) -> None:
    fill(stage)
    job = stage.file()
    while stage.view(job).state is not JobState.DERIVED_CLEANUP:
        run_batch(stage.engine, *stage.ledger.due(["source", "copies"])[0])
    (unit,) = stage.take("copies", Phase.ERASE, "dead")
    stage.copies.erase([unit.order])  # the effect; its worker dies before the commit
    stage.end_leases()
    stage.ledger.sweep()
    stage.run()
    erased = next(r for r in stage.ledger.receipts(job) if (r.adapter, r.phase) == ("copies", "erase"))
    assert (erased.outcome, erased.attempt, erased.expected, erased.already_absent) == ("nothing_found", 2, 2, 2)
    assert stage.view(job).state is JobState.COMPLETED


@pytest.mark.req("R134")
def test_no_row_and_no_log_holds_what_an_adapter_error_says(stage: Bench, tmp_path: Path) -> None:
    fill(stage)

    def fail(phase: str, _orders: Sequence[EraseOrder]) -> None:
        if phase == "erase":
            message = "duplicate key value P1234567"
            raise RuntimeError(message)

    stage.copies.before = fail
    stage.file()
    with capture_logs() as logs:
        stage.run()
    assert "P1234567" not in repr(logs)
    assert stage.rows("SELECT error_code FROM unit_attempts") == [("unknown",)]
    for path in tmp_path.iterdir():
        assert b"P1234567" not in path.read_bytes()


def test_one_bad_order_of_a_batch_parks_alone(stage: Bench) -> None:
    users = [Scope(tenant="tenant-a", user=f"user-{n}", project="trips") for n in range(10)]
    for scope in users:
        fill(stage, scope=scope)

    def fail(phase: str, orders: Sequence[EraseOrder]) -> None:
        if phase == "erase" and any(o.scope.user == "user-3" for o in orders):
            raise Permanent if len(orders) == 1 else StoreUnreachable

    stage.copies.before = fail
    jobs = [stage.file(scope=scope) for scope in users]
    for _ in range(3):
        stage.run()
        stage.skip_pauses()
    states = [stage.view(job).state for job in jobs]
    assert states == [JobState.COMPLETED] * 3 + [JobState.DERIVED_CLEANUP] + [JobState.COMPLETED] * 6


def test_task_that_kills_its_own_process_is_parked(stage: Bench) -> None:
    fill(stage)
    job = stage.file()
    for _ in range(5):
        assert stage.ledger.claim("source", Phase.REVOKE, owner="dies", limit=9)
        stage.end_leases()
        stage.ledger.sweep()
    assert stage.view(job).parked == (("source", "revoke", "attempts_exhausted"),)
    assert stage.ledger.claim("source", Phase.REVOKE, owner="dies", limit=9) == []


def test_call_that_hangs_for_ever_is_left_behind_at_its_deadline(stage: Bench) -> None:
    fill(stage)
    over = threading.Event()

    def hang(phase: str, _orders: Sequence[EraseOrder]) -> None:
        if phase == "revoke" and stage.source.calls["revoke"] == 0:
            stage.source.calls["revoke"] += 1
            stage.clock.at += timedelta(hours=1)
            over.wait(60)

    stage.source.before = hang
    job = stage.file()
    stage.engine = replace(stage.engine, budgets=replace(stage.engine.budgets, lease=timedelta(seconds=0.15)))
    stage.run()
    assert stage.rows("SELECT error_code, attempt FROM unit_attempts") == [("deadline_passed", 1)]
    stage.skip_pauses()
    stage.run()
    over.set()
    assert stage.view(job).state is JobState.COMPLETED


def test_time_out_that_a_store_raises_is_an_answer_and_not_a_wait(stage: Bench) -> None:
    fill(stage)

    def time_out(phase: str, _orders: Sequence[EraseOrder]) -> None:
        if phase == "revoke":
            raise TimeoutError

    stage.source.before = time_out
    stage.file()
    stage.run()
    assert stage.rows("SELECT error_code FROM unit_attempts") == [("unknown",)]
