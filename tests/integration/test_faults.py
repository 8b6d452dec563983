"""Faults around a job: a store that stops halfway or hangs, a disk that is full."""

from __future__ import annotations

import errno
import shutil
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from orchestrator import (
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
from orchestrator.domain.job import Store
from orchestrator.domain.states import JobState
from orchestrator.domain.unit import Phase
from orchestrator.initialise import initialise
from orchestrator.service import dispatch
from orchestrator.service.accept import Request, accept
from orchestrator.service.drain import drain
from orchestrator.store.migrate import upgrade
from tests.fake_stores import FakeCopies
from tests.fakes import ANNA, Bench, bench, fill, together
from tests.integration.engine_harness import execute, with_rules
from tests.integration.faults_harness import NAMES, PATIENCE, stage, until
from workers.main import run_dispatcher

__all__ = ["stage"]


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
