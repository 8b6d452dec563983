"""Who may work on a unit, and whose answer counts: one claim, one receipt, however often a unit is delivered."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from structlog.testing import capture_logs

from orchestrator import EraseOrder, Reason, Selector, SelectorKind
from orchestrator.domain.states import JobState
from orchestrator.domain.unit import Phase
from orchestrator.service.accept import Request, accept_all
from orchestrator.service.judge import judge
from orchestrator.service.run_batch import run_batch
from orchestrator.store import commit, units
from tests.fakes import ANNA, Bench, bench, fill, together
from tests.integration.engine_harness import execute, run_until, stop_the_database_clock


@pytest.mark.req("R127")
def test_same_unit_delivered_twice_gives_one_receipt(stage: Bench) -> None:
    fill(stage)
    job = stage.file()
    together(*[stage.run] * 3)
    stage.run()
    receipts = [(r.adapter, r.phase, r.erased) for r in stage.ledger.receipts(job)]
    assert sorted(receipts) == [
        ("copies", "erase", 2),
        ("copies", "verify", 0),
        ("source", "erase", 1),
        ("source", "revoke", 0),
        ("source", "verify", 0),
    ]


@pytest.mark.req("R136")
def test_two_workers_claim_a_unit_once(stage: Bench) -> None:
    stage.file()
    won: list[int] = []
    together(
        *[lambda n=n: won.append(len(stage.ledger.claim("source", Phase.REVOKE, owner=f"w{n}", limit=9))) for n in "ab"]
    )
    assert sorted(won) == [0, 1]


def test_commit_of_a_claim_that_was_taken_over_is_dropped(stage: Bench) -> None:
    fill(stage)
    stage.file()
    taken: list[int] = []

    def steal(phase: str, orders: Sequence[EraseOrder]) -> None:
        if phase == "erase" and not taken:
            taken.append(orders[0].fence)
            stage.end_leases()
            stage.ledger.sweep()

    stage.copies.before = steal
    with capture_logs() as logs:
        stage.run()
    assert [log["event"] for log in logs].count("answer.dropped") == 1
    receipts = stage.rows("SELECT fence FROM deletion_receipts WHERE adapter='copies' AND phase='erase'")
    assert receipts == [(taken[0] + 1,)]


def test_stale_commit_is_dropped_while_another_worker_holds_the_unit(stage: Bench) -> None:
    fill(stage)
    job = stage.file()
    others: list[int] = []

    def take_over(phase: str, _orders: Sequence[EraseOrder]) -> None:
        if phase == "erase" and not others:
            stage.end_leases()
            stage.ledger.sweep()
            (unit,) = stage.take("copies", Phase.ERASE, "another")
            others.append(unit.order.fence)

    stage.copies.before = take_over
    with capture_logs() as logs:
        stage.run()
    assert [log["event"] for log in logs].count("answer.dropped") == 1
    assert [r for r in stage.ledger.receipts(job) if (r.adapter, r.phase) == ("copies", "erase")] == []
    held = stage.rows("SELECT lease_owner, fence FROM deletion_units WHERE status = 'running'")
    assert held == [("another", others[0])]


def test_no_more_than_the_cap_of_batches_runs_for_an_adapter(stage: Bench) -> None:
    for n in range(4):
        stage.file(f"key-{n}")
    claimed = [len(stage.ledger.claim("source", Phase.REVOKE, owner=f"w{n}", limit=1)) for n in range(3)]
    assert claimed == [1, 1, 0]


def test_lease_is_renewed_while_a_call_runs(tmp_path: Path) -> None:
    made = bench(tmp_path, lease=0.15)
    fill(made)
    over = threading.Event()

    def slow(phase: str, _orders: Sequence[EraseOrder]) -> None:
        if phase == "revoke":
            over.wait(0.6)
            made.ledger.sweep()

    made.source.before = slow
    job = made.file()
    made.run()
    assert made.view(job).attempts == 1
    assert made.view(job).state is JobState.COMPLETED
    made.ledger.engine.dispose()


@pytest.mark.req("R127")
def test_unit_that_two_workers_have_in_hand_at_once_has_one_receipt(stage: Bench) -> None:
    fill(stage)
    job = stage.file()
    run_until(stage, "copies", Phase.ERASE)
    in_call, go_on, fences = threading.Event(), threading.Event(), list[int]()

    def first_waits(phase: str, orders: Sequence[EraseOrder]) -> None:
        if phase == "erase":
            fences.append(orders[0].fence)
            if len(fences) == 1:
                in_call.set()
                assert go_on.wait(20)

    stage.copies.before = first_waits
    query = "SELECT * FROM deletion_receipts WHERE adapter = 'copies' AND phase = 'erase'"
    with ThreadPoolExecutor() as threads, capture_logs() as logs:
        first = threads.submit(run_batch, stage.engine, "copies", Phase.ERASE)
        assert in_call.wait(20)
        stage.end_leases()
        assert stage.ledger.sweep().rescued == 1
        assert run_batch(stage.engine, "copies", Phase.ERASE) == 1
        second = stage.rows(query)
        go_on.set()
        assert first.result() == 1  # it was called, and its answer came too late
    assert fences == [1, 2]
    assert stage.copies.calls["erase"] == 2
    assert [log["event"] for log in logs].count("answer.dropped") == 1
    assert len(second) == 1
    assert stage.rows(query) == second
    stage.run()
    assert stage.view(job).state is JobState.COMPLETED
    (erased,) = [r for r in stage.ledger.receipts(job) if (r.adapter, r.phase) == ("copies", "erase")]
    assert (erased.expected, erased.erased, erased.already_absent, erased.remaining) == (2, 2, 0, 0)


@pytest.mark.req("R127")
@pytest.mark.parametrize(
    ("adapter", "phase"),
    [
        ("source", Phase.REVOKE),
        ("source", Phase.FIND),
        ("copies", Phase.ERASE),
        ("source", Phase.ERASE),
        ("copies", Phase.VERIFY),
    ],
)
def test_second_hint_for_a_unit_that_is_in_work_finds_nothing_to_do(stage: Bench, adapter: str, phase: Phase) -> None:
    fill(stage)
    stage.file()
    run_until(stage, adapter, phase)
    claimed: list[int] = []

    def hint_again(called: str, _orders: Sequence[EraseOrder]) -> None:
        if called == phase and not claimed:
            claimed.append(-1)  # what is called from here does not come back here
            claimed.append(run_batch(stage.engine, adapter, phase))

    store = stage.source if adapter == "source" else stage.copies
    store.before = hint_again
    assert run_batch(stage.engine, adapter, phase) == 1
    assert claimed == [-1, 0]
    assert run_batch(stage.engine, adapter, phase) == 0  # and one that comes when it is done
    assert store.calls[phase] == 1


@pytest.mark.req("R127")
def test_second_receipt_is_refused_by_the_database_whoever_writes_it(stage: Bench) -> None:
    fill(stage)
    job = stage.file()
    run_until(stage, "copies", Phase.ERASE)
    (unit,) = stage.take("copies", Phase.ERASE, "first")
    answers, now = [judge(unit, stage.copies.erase([unit.order])[0])], stage.clock.now()
    assert stage.ledger.commit("first", answers, started_at=now).dropped == frozenset()
    receipts = stage.ledger.receipts(job)
    with (
        pytest.raises(sa.exc.IntegrityError, match="UNIQUE constraint failed: deletion_receipts"),
        stage.ledger.engine.begin() as connection,
    ):
        commit.write(connection, answers, stage.ledger.rules.stores, started=now, finished=now)
    assert stage.ledger.receipts(job) == receipts


def test_lease_that_ends_now_has_ended(stage: Bench) -> None:
    now = stop_the_database_clock(stage)
    stage.file()
    assert len(stage.ledger.claim("source", Phase.REVOKE, owner="dies", limit=9)) == 1
    lease = stage.ledger.budgets.lease // timedelta(microseconds=1)
    assert stage.rows("SELECT lease_until_us FROM deletion_units") == [(now + lease,)]
    for left, rescued in ((1, 0), (0, 1)):
        execute(stage, f"UPDATE deletion_units SET lease_until_us = {now + left} WHERE status = 'running'")  # noqa: S608
        assert stage.ledger.sweep().rescued == rescued
        assert len(stage.ledger.claim("source", Phase.REVOKE, owner="next", limit=9)) == rescued


def test_unit_that_is_due_now_is_due(stage: Bench) -> None:
    now = stop_the_database_clock(stage)
    stage.file()
    for later, due in ((1, 0), (0, 1)):
        execute(stage, f"UPDATE deletion_units SET next_attempt_at_us = {now + later}")  # noqa: S608 - a number
        assert len(stage.ledger.due(["source"])) == due
        assert len(stage.ledger.claim("source", Phase.REVOKE, owner="w", limit=9)) == due


def test_tenant_with_five_hundred_units_does_not_keep_another_waiting(stage: Bench) -> None:
    asked = Request(
        scope=ANNA,
        selector=Selector(kind=SelectorKind.KEY, value="passport"),
        reason=Reason.USER_REQUEST,
        requested_by="tester",
    )
    other = replace(asked, scope=replace(ANNA, tenant="tenant-b"))
    accept_all([asked] * 500, stage.acceptance)
    accept_all([other] * 2, stage.acceptance)
    rows = stage.rows("SELECT u.id, j.tenant FROM deletion_units u JOIN deletion_jobs j ON j.id = u.job_id")
    tenants = {str(unit): str(tenant) for unit, tenant in rows}
    for owner in "ab":
        claimed = stage.ledger.claim("source", Phase.REVOKE, owner=owner, limit=2)
        assert sorted(tenants[unit] for unit in claimed) == ["tenant-a", "tenant-b"]


def test_claim_goes_along_an_index_however_long_the_queue_is(stage: Bench) -> None:
    with stage.ledger.engine.begin() as connection:
        for query, index in ((units._FIRST, "ix_units_turn"), (units._AGAIN, "ix_units_again")):
            asked = query.params(adapter="source", phase="revoke", most=50)
            text = str(asked.compile(connection, compile_kwargs={"literal_binds": True}))
            plan = [row.detail for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}")]
            assert any(index in step for step in plan)
            assert not [step for step in plan if step.startswith("SCAN deletion")], plan
