"""The protocol under random schedules: two workers, jobs that overlap, holds, crashes, failures, late writers.

A step is what a process can do between two writes of the control database, so a schedule that breaks a
property is one that could happen. Whatever a step leaves behind is what a killed process leaves behind.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import structlog
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from orchestrator.domain.codes import HoldReason
from orchestrator.domain.errors import RuleRefused
from orchestrator.domain.states import JobState
from orchestrator.domain.unit import Answered, Claimed, Phase
from orchestrator.service import run_batch as running
from orchestrator.service.expire import look
from orchestrator.service.hold import HoldRequest, place
from tests.fakes import ANNA, bench, fill
from tests.properties.properties import EXPIRED, Properties

KEYS = ("passport", "theme")
FACTS = [f"anna-{key}-{n:06}" for key in KEYS for n in range(2)]
THOROUGH = 500  # examples of the profile of that name
ENDED = {JobState.COMPLETED, JobState.CANCELLED}


@dataclass
class Worker:
    """A process that dies by forgetting everything it holds."""

    owner: str
    adapter: str = ""
    phase: Phase = Phase.REVOKE
    ids: Sequence[str] = ()
    units: list[Claimed] = field(default_factory=list)
    answers: list[Answered] = field(default_factory=list)

    @property
    def busy(self) -> bool:
        return bool(self.ids)


class Protocol(Properties):
    def __init__(self) -> None:
        super().__init__()
        self.stage.ledger.engine.dispose()
        for leftover in self.folder.glob("control.db*"):
            leftover.unlink()
        shutil.copy(self.folder / "template.db", self.folder / "control.db")
        self.stage.clock.at = datetime.now(UTC)
        self.stage.source.reset()
        self.stage.copies.reset()
        self.workers = [Worker("a"), Worker("b")]
        self.writers: list[str] = []
        self.numbers = 0
        for key in KEYS:
            fill(self.stage, key=key, count=2)
        self.stage.source.before = self.stage.copies.before = self.before_call

    def teardown(self) -> None:
        self._finish()

    # What processes do

    @initialize()
    def begin(self) -> None:
        self.file(None)

    @rule(key=st.sampled_from([*KEYS, None]))
    def file(self, key: str | None) -> None:
        if len(self.jobs) < 3:
            self.jobs[self.stage.file(key)] = key

    # What the clock does

    @rule(fact=st.sampled_from(FACTS), minutes=st.integers(-1, 4))
    def end(self, fact: str, minutes: int) -> None:
        """Give a fact an end, or another one: what was to expire may be renewed."""
        if fact not in self.stage.source.revoked:
            self.stage.source.ends[fact] = self.stage.clock.now() + timedelta(minutes=minutes)

    @rule()
    def look_for_expired(self) -> None:
        opened = look(self.stage.source, self.stage.acceptance)
        self.jobs |= {str(job): EXPIRED for job in opened}
        assert look(self.stage.source, self.stage.acceptance) == [], "a second job for the same"

    @rule(n=st.integers(0, 1), take=st.integers(0, 3), limit=st.integers(1, 3))
    def claim(self, n: int, take: int, limit: int) -> None:
        worker = self.workers[n]
        due = self.stage.ledger.due(["source", "copies"])
        if worker.busy or not due:
            return
        worker.adapter, worker.phase = due[take % len(due)]
        self.numbers += 1
        worker.owner = f"{n}-{self.numbers}"
        worker.ids = self.stage.ledger.claim(worker.adapter, worker.phase, owner=worker.owner, limit=limit)

    @rule(n=st.integers(0, 1))
    def load(self, n: int) -> None:
        worker = self.workers[n]
        if worker.busy and not worker.units:
            worker.units = list(self.stage.ledger.load(worker.owner, worker.ids))
            if not worker.units:
                self._die(worker)

    @rule(n=st.integers(0, 1))
    def call(self, n: int) -> None:
        worker = self.workers[n]
        if worker.units and not worker.answers:
            store = self.stage.engine.adapters[worker.adapter]
            orders = [unit.order for unit in worker.units]
            # What the engine does with the answer is its own; only its thread is left out.
            worker.answers = running.answers_of(
                self.stage.engine, lambda: running.verb(store, worker.phase)(orders), worker.units
            )

    @rule(n=st.integers(0, 1))
    def commit(self, n: int) -> None:
        worker = self.workers[n]
        if worker.answers:
            self.stage.ledger.commit(worker.owner, worker.answers, started_at=self.stage.clock.now())
            self._die(worker)

    @rule(n=st.integers(0, 1))
    def crash(self, n: int) -> None:
        self._die(self.workers[n])

    @rule()
    def whole_batch(self) -> None:
        for adapter, phase in self.stage.ledger.due(["source", "copies"])[:1]:
            running.run_batch(self.stage.engine, adapter, phase)

    @rule()
    def sweep(self) -> None:
        self.stage.ledger.sweep()

    @rule()
    def leases_end(self) -> None:
        self.stage.end_leases()
        self.stage.ledger.sweep()

    @rule()
    def time_passes(self) -> None:
        self.stage.clock.at += timedelta(minutes=3)

    @rule(down=st.booleans())
    def store_fails(self, down: bool) -> None:  # noqa: FBT001 - drawn by Hypothesis
        self.down = down

    # What people do

    @precondition(lambda self: len(self.holds) < 2)
    @rule(item=st.sampled_from([None, *FACTS]))
    def hold(self, item: str | None) -> None:
        asked = HoldRequest(
            tenant=ANNA.tenant,
            user=ANNA.user,
            items=() if item is None else (item,),
            reason=HoldReason.DISPUTE,
            requested_by="x",
        )
        self.holds[str(place(asked, self.stage.acceptance)[0])] = item

    @precondition(lambda self: self.holds)
    @rule(n=st.integers(0, 1))
    def release(self, n: int) -> None:
        hold = list(self.holds)[n % len(self.holds)]
        self.stage.ledger.release(hold, by_ref="x")
        del self.holds[hold]

    @precondition(lambda self: self.jobs)
    @rule(n=st.integers(0, 2))
    def cancel(self, n: int) -> None:
        job = list(self.jobs)[n % len(self.jobs)]
        try:
            self.stage.ledger.cancel(job)
        except RuleRefused:
            return

    @precondition(lambda self: self.jobs)
    @rule(n=st.integers(0, 2))
    def retry(self, n: int) -> None:
        job = list(self.jobs)[n % len(self.jobs)]
        try:
            self.stage.ledger.retry(job)
        except RuleRefused:
            return

    # A producer that has read a fact before it was revoked, and stores its copy later

    @rule(fact=st.sampled_from(FACTS))
    def writer_reads(self, fact: str) -> None:
        over = self.stage.source.ends.get(fact, datetime.max.replace(tzinfo=UTC)) <= self.stage.clock.now()
        if not over and fact not in self.stage.source.revoked and any(r[3] == fact for r in self.stage.source.records):
            self.writers.append(fact)

    @precondition(lambda self: self.writers)
    @rule()
    def writer_writes(self) -> None:
        """Store the copy, unless its job already looks again: quiet_time has to be longer than producers take."""
        fact = self.writers.pop()
        looking = self.stage.rows("SELECT DISTINCT job_id FROM deletion_units WHERE phase = 'verify'")
        if not any(self.covers(str(job), fact) for (job,) in looking):
            self.numbers += 1
            self.stage.copies.records.add((ANNA.tenant, ANNA.user, fact, f"late-{self.numbers}"))

    def _finish(self) -> None:
        """Let crashes stop: every job ends, is parked or is held; without holds and parking all of them end right."""
        for worker in self.workers:
            self._die(worker)
        self.down = False
        claimed = 1
        while claimed:
            self.stage.end_leases()
            self.stage.ledger.sweep()
            self.stage.skip_pauses()
            self._close_breakers()
            claimed = self.stage.run()
        views = [self.stage.view(job) for job in self.jobs]
        assert all(view.state in ENDED or view.parked or view.held for view in views), "P4"
        again = look(self.stage.source, self.stage.acceptance)
        self.jobs |= {str(job): EXPIRED for job in again}
        self.stage.run()
        if not self.holds:
            for view in views:
                if view.parked:
                    self.stage.ledger.retry(view.id)
            self.stage.run()
            assert all(self.stage.view(job).state in ENDED for job in self.jobs), "P4: after a retry"
        self.properties_hold()

    def _close_breakers(self) -> None:
        with self.stage.ledger.engine.begin() as connection:
            connection.exec_driver_sql("UPDATE adapter_health SET breaker = 'closed', open_until_us = NULL")

    @staticmethod
    def _die(worker: Worker) -> None:
        worker.ids, worker.units, worker.answers = (), [], []


@pytest.mark.timeout(600)
def test_protocol_keeps_its_properties_under_random_schedules(quick_path: Path) -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    Protocol.folder, Protocol.stage = quick_path, bench(quick_path)
    Protocol.stage.ledger.engine.dispose()
    (quick_path / "control.db").rename(quick_path / "template.db")
    try:
        run_state_machine_as_test(
            Protocol,
            settings=settings(
                max_examples=THOROUGH if settings().max_examples == THOROUGH else 60,
                stateful_step_count=30,
                deadline=None,
                suppress_health_check=list(HealthCheck),
                print_blob=True,
            ),
        )
    finally:
        Protocol.stage.ledger.engine.dispose()
