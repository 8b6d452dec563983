"""When sources are asked what has expired: by a worker whom the dispatcher wakes, once in each interval."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import structlog

from orchestrator import Expired
from orchestrator.domain.job import Trigger
from orchestrator.domain.states import JobState
from orchestrator.domain.unit import Phase
from orchestrator.service.drain import drain
from tests.fakes import ANNA, Bench, bench, fill, together
from tests.integration.engine_harness import execute

INTERVAL = timedelta(hours=1)


@pytest.fixture(params=["sqlite", "postgresql"])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    url = request.getfixturevalue("postgres_url") if request.param == "postgresql" else None
    made = bench(tmp_path, url=url)
    ledger = replace(made.ledger, budgets=replace(made.ledger.budgets, expiry=INTERVAL))
    acceptance = replace(made.acceptance, ledger=ledger)
    made.ledger, made.acceptance = ledger, acceptance
    made.engine = replace(made.engine, ledger=ledger, acceptance=acceptance)
    fill(made)
    yield made
    made.ledger.engine.dispose()


def over(stage: Bench) -> None:
    """Let the facts have expired."""
    stage.source.ends = {record[3]: stage.clock.now() for record in stage.source.records}


def jobs(stage: Bench) -> list[tuple[Trigger, JobState]]:
    return [(j.trigger, j.state) for j in stage.ledger.jobs(tenant=None, state=None, after=None, limit=9)]


@pytest.mark.case(29)
def test_dispatcher_wakes_a_worker_for_a_source_in_each_interval_and_no_sooner(stage: Bench) -> None:
    over(stage)
    assert stage.ledger.announce() == [("source", Phase.REVOKE)]
    assert stage.ledger.announce() == [], "one is outstanding"
    drain(stage.engine, "source", Phase.REVOKE)
    assert jobs(stage) == [(Trigger.EXPIRY, JobState.COMPLETED)], "the worker that opened it has carried it to its end"
    assert stage.ledger.announce() == []
    fill(stage, key="theme")
    over(stage)
    drain(stage.engine, "source", Phase.REVOKE)
    assert len(jobs(stage)) == 1, "it is not time yet"
    execute(stage, "UPDATE adapter_health SET looked_at_us = looked_at_us - 3600000000")
    assert stage.ledger.announce() == [("source", Phase.REVOKE)]
    drain(stage.engine, "source", Phase.REVOKE)
    assert len(jobs(stage)) == 2


def test_of_several_workers_one_is_told_to_look(stage: Bench) -> None:
    told = list[bool]()
    together(*[lambda: told.append(stage.ledger.may_look("source"))] * 4)
    assert sorted(told) == [False, False, False, True]


def test_source_that_fails_or_hangs_keeps_no_other_work_waiting(stage: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    answering = threading.Event()

    def hang() -> Sequence[Expired]:
        answering.wait(30)
        return []

    def fail() -> Sequence[Expired]:
        message = f"what {ANNA.user} said"
        raise ConnectionError(message)

    stage.engine = replace(stage.engine, budgets=replace(stage.engine.budgets, unit=timedelta(seconds=1)))
    try:
        for number, (expired, error) in enumerate(((hang, "DeadlinePassed"), (fail, "ConnectionError")), 1):
            monkeypatch.setattr(stage.source, "expired", expired)
            fill(stage)
            job = stage.file()
            with structlog.testing.capture_logs() as lines:
                drain(stage.engine, "source", Phase.REVOKE)
            assert stage.view(job).state is JobState.COMPLETED
            failed = [line for line in lines if line["event"] == "expiry.failed"]
            assert [(line["adapter"], line["error"]) for line in failed] == [("source", error)]
            assert ANNA.user not in str(lines)
            execute(stage, "UPDATE adapter_health SET looked_at_us = NULL")
            assert len(jobs(stage)) == number
    finally:
        answering.set()
