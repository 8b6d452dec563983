"""Clocks that jump, messages that come too often, and dispatchers that are too many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
import structlog

from orchestrator import (
    DeadlinePassed,
    EraseOrder,
    StoreUnreachable,
)
from orchestrator.domain.codes import CrashPoint
from orchestrator.domain.states import JobState
from orchestrator.domain.unit import Phase
from orchestrator.service.drain import drain
from orchestrator.service.run_batch import run_batch
from tests.fakes import ANNA, Bench, bench, fill, together
from tests.integration.engine_harness import database_now, run_until
from tests.integration.faults_harness import NAMES, stage

__all__ = ["stage"]


@dataclass
class Jump:
    """Sets the clock of a stage at one crash point, once."""

    point: CrashPoint
    by: timedelta
    stage: Bench | None = None

    def __call__(self, point: CrashPoint, where: str) -> None:
        if self.stage is not None and (point, where) == (self.point, "copies.erase"):
            self.stage.clock.at += self.by
            self.stage = None


JUMPS = [timedelta(days=-1), timedelta(days=30)]
POINTS = [
    CrashPoint.AFTER_CLAIM,
    CrashPoint.BEFORE_CALL,
    CrashPoint.AFTER_EFFECT,
    CrashPoint.BEFORE_COMMIT,
    CrashPoint.AFTER_COMMIT,
]


@pytest.mark.parametrize("by", JUMPS, ids=["back-a-day", "on-a-month"])
@pytest.mark.parametrize("point", POINTS)
def test_clock_that_jumps_between_claim_and_commit_harms_no_receipt(
    tmp_path: Path, point: CrashPoint, by: timedelta
) -> None:
    jump = Jump(point, by)
    stage = bench(tmp_path, crash=jump)

    def refuse_late(_phase: str, orders: Sequence[EraseOrder]) -> None:
        if any(stage.clock.now() > order.deadline for order in orders):
            raise DeadlinePassed

    stage.source.before = stage.copies.before = refuse_late
    fill(stage, count=3)
    job = stage.file()
    run_until(stage, "copies", Phase.ERASE)
    jump.stage = stage
    run_batch(stage.engine, "copies", Phase.ERASE)
    assert jump.stage is None
    late = by > timedelta(0) and point in {CrashPoint.AFTER_CLAIM, CrashPoint.BEFORE_CALL}
    failed = stage.rows("SELECT error_code FROM unit_attempts")
    assert failed == ([("deadline_passed",)] if late else [])
    assert (len(stage.copies.records) == 6) == late
    stage.skip_pauses()
    stage.run()
    assert (stage.view(job).state, stage.copies.records) == (JobState.COMPLETED, set())
    assert stage.rows("SELECT id FROM deletion_receipts WHERE finished_at_us < started_at_us") == []
    assert len(stage.rows("SELECT id FROM deletion_receipts")) == 5
    stage.ledger.engine.dispose()


@pytest.mark.parametrize("by", JUMPS, ids=["back-a-day", "on-a-month"])
def test_leases_and_due_times_follow_the_clock_of_the_database(stage: Bench, by: timedelta) -> None:
    fill(stage)
    job = stage.file()
    stage.clock.at += by
    earliest = database_now(stage)
    stage.take("source", Phase.REVOKE, "w")
    lease = stage.ledger.budgets.lease // timedelta(microseconds=1)
    ((until_us,),) = stage.rows("SELECT lease_until_us FROM deletion_units")
    assert earliest + lease <= until_us <= database_now(stage) + lease  # type: ignore[operator]
    stage.clock.at -= 2 * by
    assert stage.ledger.sweep().rescued == 0
    stage.end_leases()
    assert stage.ledger.sweep().rescued == 1

    def fail(_phase: str, _orders: Sequence[EraseOrder]) -> None:
        raise StoreUnreachable

    stage.source.before = fail
    earliest = database_now(stage)
    run_batch(stage.engine, "source", Phase.REVOKE)
    ((due_us,),) = stage.rows("SELECT next_attempt_at_us FROM deletion_units")
    assert earliest + 2_000_000 <= due_us <= database_now(stage) + 4_000_000  # type: ignore[operator]
    stage.clock.at += 2 * by
    assert stage.ledger.due(NAMES) == []
    stage.source.before = lambda _phase, _orders: None
    stage.skip_pauses()
    stage.run()
    assert stage.view(job).state is JobState.COMPLETED


def test_call_that_would_begin_after_its_deadline_is_refused_by_a_real_source(tmp_path: Path) -> None:
    from adapters.memory import MemoryAdapter
    from orchestrator import AdapterContext

    stage = bench(tmp_path)
    log = structlog.get_logger()
    context = AdapterContext(clock=stage.clock, gate=stage.gate, log=log, state_dir=tmp_path)
    memory = MemoryAdapter(context, url=f"sqlite:///{tmp_path / 'm.db'}")
    memory.store.register_source(ANNA, "turn-6")
    memory.store.put(ANNA, "passport", "P1234567", "turn-6")
    stage.file()
    (unit,) = stage.take("source", Phase.REVOKE, "stopped")
    assert isinstance(unit.order.deadline, datetime)
    stage.clock.at += stage.ledger.budgets.unit + timedelta(seconds=1)
    with pytest.raises(DeadlinePassed):
        memory.revoke([unit.order])
    assert [fact.value for fact in memory.store.current(ANNA)] == ["P1234567"]
    memory.close()
    stage.ledger.engine.dispose()


def test_two_dispatchers_leave_one_announcement_outstanding_for_each_adapter_and_lease(tmp_path: Path) -> None:
    stage = bench(tmp_path)
    for n in range(3):
        stage.file(f"key-{n}")
    run_until(stage, "copies", Phase.FIND)
    stage.file("another")
    for _ in range(20):
        sent: list[str] = []
        together(*[lambda sent=sent: sent.extend(a for a, _ in stage.ledger.announce())] * 4)
        assert sorted(sent) == ["copies", "source"]
        assert stage.ledger.announce() == []
        for name in NAMES:
            stage.ledger.heard(name)
    stage.ledger.engine.dispose()


def test_each_message_three_times_over_calls_no_store_twice_for_one_unit(stage: Bench) -> None:
    for n in range(4):
        fill(stage, key=f"key-{n}")
    jobs = [stage.file(f"key-{n}") for n in range(4)]
    while noted := stage.ledger.announce():
        for adapter, phase in noted:
            once = replace(stage.engine, budgets=replace(stage.engine.budgets, drain=timedelta(0)))
            together(*[lambda a=adapter, p=phase, e=once: drain(e, a, p)] * 2)
            drain(once, adapter, phase)
    assert [stage.view(job).state for job in jobs] == [JobState.COMPLETED] * 4
    assert set(stage.rows("SELECT fence, attempts FROM deletion_units")) == {(1, 1)}
    assert stage.rows("SELECT count(*) FROM deletion_receipts") == [(5 * 4,)]
    assert {**stage.source.calls} == dict.fromkeys(["revoke", "erase", "verify"], 4) | {"find": 8}
