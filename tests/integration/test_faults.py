"""What surroundings do to the engine: stores that stop halfway or hang, disks that are full, clocks that jump."""

from __future__ import annotations

import errno
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import structlog
from structlog.testing import capture_logs

from orchestrator import (
    DeadlinePassed,
    Erased,
    EraseOrder,
    Reason,
    Role,
    Scope,
    Selector,
    SelectorKind,
    StoreUnreachable,
)
from orchestrator import settings as config
from orchestrator.bootstrap import SystemClock, open_control, open_engine
from orchestrator.domain.codes import CrashPoint
from orchestrator.domain.job import Store
from orchestrator.domain.states import JobState
from orchestrator.domain.unit import Phase
from orchestrator.initialise import initialise
from orchestrator.service import dispatch
from orchestrator.service.accept import Request, accept
from orchestrator.service.drain import drain
from orchestrator.service.run_batch import run_batch
from orchestrator.store.migrate import upgrade
from tests.fake_stores import FakeCopies
from tests.fakes import ANNA, Bench, bench, fill, together
from tests.integration.engine_harness import database_now, execute, run_until, with_rules
from workers.main import run_dispatcher

NAMES = ["source", "copies"]
PATIENCE = 30.0


@pytest.fixture(params=["sqlite", "postgresql"])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    url = request.getfixturevalue("postgres_url") if request.param == "postgresql" else None
    made = bench(tmp_path, url=url)
    yield made
    made.ledger.engine.dispose()


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        threading.Event().wait(0.02)


# A store that stops halfway


@dataclass
class Halving(FakeCopies):
    """A store whose first answer is lost after half of a page."""

    lost: int = 1

    def erase(self, orders: Sequence[EraseOrder]) -> Sequence[Erased]:
        if self.lost:
            self.lost -= 1
            super().erase([replace(order, targets=order.targets[: len(order.targets) // 2]) for order in orders])
            raise StoreUnreachable
        return super().erase(orders)


@pytest.mark.parametrize("lost", [1, 3])
def test_page_that_was_half_erased_when_the_store_went_away_has_one_receipt_that_adds_up(
    stage: Bench, lost: int
) -> None:
    stage.copies = Halving(lost=lost)
    stage.engine = replace(stage.engine, adapters={**stage.engine.adapters, "copies": stage.copies})
    fill(stage, count=10)
    fill(stage, key="theme")
    job = stage.file()
    for _ in range(lost + 1):
        assert [r for r in stage.ledger.receipts(job) if (r.adapter, r.phase) == ("copies", "erase")] == []
        stage.run()
        stage.skip_pauses()
    assert stage.view(job).state is JobState.COMPLETED
    (erased,) = [r for r in stage.ledger.receipts(job) if (r.adapter, r.phase) == ("copies", "erase")]
    assert (erased.expected, erased.erased, erased.already_absent, erased.remaining) == (20, 10, 10, 0)
    assert (erased.attempt, erased.outcome) == (lost + 1, "erased")
    assert len(stage.copies.records) == 2  # of the other key


# A store that hangs for ever


@dataclass
class Hanging(FakeCopies):
    """A store that never answers for one user."""

    name: str = "frozen"
    user: str = "nobody"
    over: threading.Event = field(default_factory=threading.Event)
    hung: int = 0

    def find(self, orders: Sequence[EraseOrder]) -> Any:  # noqa: ANN401 - what the fake gives
        if any(order.scope.user == self.user for order in orders):
            self.hung += 1
            self.over.wait(120)
        return super().find(orders)


def with_frozen(stage: Bench, user: str) -> Hanging:
    """Give a store to the engine that hangs for a user; time is real, and a call has a second."""
    frozen = Hanging(user=user)
    clock = SystemClock()
    second = timedelta(seconds=1)
    budgets = replace(stage.engine.budgets, unit=second, lease=0.9 * second, breaker=second)
    with_rules(stage, stores=[*stage.ledger.rules.stores, Store(name="frozen", role=Role.DERIVED)])
    ledger = replace(stage.ledger, clock=clock, budgets=budgets)
    stage.ledger, stage.acceptance = ledger, replace(stage.acceptance, ledger=ledger)
    policy = replace(stage.engine.policy, base=timedelta(milliseconds=20))
    adapters = {**stage.engine.adapters, "frozen": frozen}
    stage.engine = replace(
        stage.engine, ledger=ledger, clock=clock, budgets=budgets, policy=policy, adapters=adapters, batch=5
    )
    return frozen


def work_off(stage: Bench, jobs: Sequence[str]) -> float:
    """Let two workers go on until these jobs are completed; give how long that took."""
    names, begun = list(stage.engine.adapters), time.monotonic()
    marks = ", ".join(f"'{job}'" for job in jobs)
    open_jobs = f"SELECT count(*) FROM deletion_jobs WHERE state <> 'completed' AND id IN ({marks})"  # noqa: S608
    ended: list[float] = []

    def worker() -> None:
        while stage.rows(open_jobs) != [(0,)]:
            assert time.monotonic() - begun < PATIENCE
            if due := stage.ledger.due(names):
                drain(replace(stage.engine, budgets=replace(stage.engine.budgets, drain=timedelta(0))), *due[0])
            else:
                time.sleep(0.005)
            stage.ledger.sweep()
        ended.append(time.monotonic() - begun)

    together(worker, worker)
    assert len(ended) == 2
    return min(ended)


def test_store_that_hangs_for_one_job_slows_no_other_and_is_parked(tmp_path: Path) -> None:
    """The same jobs with and without it, as a ratio in one run: without the bound on a call they would not end."""
    took, stages = {}, []
    for user in ("nobody", "stuck"):
        (tmp_path / user).mkdir()
        stages.append(stage := bench(tmp_path / user, cap=3))
        frozen = with_frozen(stage, user)
        hanging = stage.file(scope=Scope(tenant="tenant-b", user="stuck", project="trips"))
        drain(replace(stage.engine, adapters={n: stage.engine.adapters[n] for n in NAMES}), "source", Phase.REVOKE)
        jobs = []
        for n in range(40):
            fill(stage, key=f"key-{n}")
            jobs.append(stage.file(f"key-{n}"))
        took[user] = work_off(stage, jobs)
        assert all(stage.view(job).state is JobState.COMPLETED for job in jobs)
        assert (frozen.hung > 0) == (user == "stuck")
    assert took["stuck"] < 4 * took["nobody"] + 2
    until(lambda: stage.run() == 0 and bool(stage.view(hanging).parked))
    view = stage.view(hanging)
    assert (view.state, view.parked) == (JobState.SOURCE_REVOKED, (("frozen", "find", "attempts_exhausted"),))
    units = f"SELECT id FROM deletion_units WHERE job_id = '{hanging}'"  # noqa: S608 - an id of our own
    failed = stage.rows(f"SELECT error_code, attempt FROM unit_attempts WHERE unit_id IN ({units}) ORDER BY attempt")  # noqa: S608
    assert [attempt for _, attempt in failed] == [1, 2, 3, 4, 5]
    assert {code for code, _ in failed} <= {"deadline_passed", "lease_ended"}  # a busy machine may renew too late
    frozen.over.set()
    for made in stages:
        made.ledger.engine.dispose()


# A disk that is full


@dataclass
class FullBroker:
    """A broker that cannot write down a message for a while."""

    full: bool = True
    sent: list[tuple[str, Phase]] = field(default_factory=list)

    def announce(self, adapter: str, phase: Phase) -> None:
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.sent.append((adapter, phase))


def test_hint_that_a_full_disk_refused_is_sent_again_after_a_lease(stage: Bench) -> None:
    fill(stage)
    job, broker = stage.file(), FullBroker()
    for _ in range(3):
        with pytest.raises(OSError, match="No space left"):
            dispatch.announce(stage.ledger, broker, stage.ledger.crash)
        assert stage.view(job).state is JobState.REQUESTED
        assert dispatch.announce(stage.ledger, broker, stage.ledger.crash) == 0  # it is noted as outstanding
        execute(stage, "UPDATE adapter_health SET announced_at_us = announced_at_us - 16000000")
    broker.full = False
    assert dispatch.announce(stage.ledger, broker, stage.ledger.crash) == 1
    assert broker.sent == [("source", Phase.REVOKE)]
    drain(stage.engine, *broker.sent[0])
    assert stage.view(job).state is JobState.COMPLETED


def test_dispatcher_goes_on_while_its_broker_cannot_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file stands where the folder of messages was: no process can write there, not even root's."""
    monkeypatch.setenv("EXPUNGE_ENGINE__LEASE", "500ms")
    initialise(tmp_path)
    (tmp_path / config.FILE).write_text(
        'broker_url = "filesystem://"\n[adapters.memory]\nurl = "sqlite:///memory.db"\n'
    )
    control = open_control(tmp_path)
    upgrade(control.database)
    messages, over = tmp_path / "broker" / "messages", threading.Event()
    thread = threading.Thread(target=run_dispatcher, args=(control, over))
    engine = open_engine(control)
    asked = Request(scope=ANNA, selector=Selector(kind=SelectorKind.SUBJECT), reason=Reason.OPERATOR, requested_by="x")
    job = str(accept(asked, control.acceptance)[0])
    with capture_logs() as logs:
        thread.start()
        try:
            until(lambda: any(messages.glob("*")))
            shutil.rmtree(messages)
            messages.write_text("")
            until(lambda: [log["event"] for log in logs].count("dispatch.failed") >= 3)
            assert (thread.is_alive(), control.ledger.job(job).state) == (True, JobState.REQUESTED)
            messages.unlink()
            messages.mkdir()
            until(lambda: any(messages.glob("*")))  # the hint is sent again, and a worker may take it
            drain(engine, "memory", Phase.REVOKE)
            assert control.ledger.job(job).state is JobState.COMPLETED
        finally:
            over.set()
            thread.join()
            engine.adapters["memory"].close()
            control.close()
            structlog.reset_defaults()


# Clocks that jump


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


# Messages that come too often, dispatchers that are too many


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
