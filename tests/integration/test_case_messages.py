"""Failures that users of other systems met with messages, leases and schedules: they do not happen here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import structlog
from structlog.testing import capture_logs

from orchestrator import (
    Scope,
)
from orchestrator.domain.states import JobState
from orchestrator.domain.unit import Phase
from orchestrator.service import dispatch
from orchestrator.service.drain import drain
from orchestrator.service.judge import judge
from orchestrator.settings import Settings
from tests.fakes import Bench, fill, together
from tests.integration.cases_harness import erase_receipts
from workers.celery_app import CeleryBroker, build


@pytest.mark.case(37)
def test_message_that_comes_three_times_and_twice_at_once_has_one_effect(stage: Bench) -> None:
    fill(stage)
    job = stage.file()
    together(*[lambda: drain(stage.engine, "source", Phase.REVOKE)] * 2)
    drain(stage.engine, "source", Phase.REVOKE)
    stage.run()
    for store in (stage.source, stage.copies):
        assert store.calls["erase"] == store.calls["verify"] == 1
    assert stage.source.calls["revoke"] == 1
    assert erase_receipts(stage, job) == [("erased", 2, 2, 0)]
    assert stage.view(job).state is JobState.COMPLETED


@pytest.mark.case(37)
def test_no_message_is_sent_for_later(stage: Bench, tmp_path: Path) -> None:
    app: Any = build(Settings(state_dir=tmp_path, broker_url="filesystem://"))
    stage.file()
    assert dispatch.announce(stage.ledger, CeleryBroker(app), stage.ledger.crash) == 1
    app.close()
    (message,) = (tmp_path / "broker" / "messages").glob("*.msg")
    headers = json.loads(message.read_text())["headers"]
    assert (headers["eta"], headers["expires"], headers["argsrepr"]) == (None, None, "('source', 'revoke')")


@pytest.mark.case(38)
def test_worker_that_wakes_after_its_lease_neither_renews_nor_writes_over_the_next_one(stage: Bench) -> None:
    fill(stage)
    stage.file()
    (slow,) = stage.take("source", Phase.REVOKE, "slow")
    answer = judge(slow, stage.source.revoke([slow.order])[0])
    stage.end_leases()
    stage.ledger.sweep()
    (held,) = stage.take("source", Phase.REVOKE, "next")
    row = "SELECT status, lease_owner, lease_until_us, fence FROM deletion_units"
    before = stage.rows(row)
    assert (before[0][1], held.order.fence) == ("next", slow.order.fence + 1)
    assert stage.ledger.renew("slow") == 0
    dropped = stage.ledger.commit("slow", [answer], started_at=stage.clock.now()).dropped
    assert dropped == {slow.order.unit}
    assert stage.rows(row) == before
    assert stage.rows("SELECT * FROM deletion_receipts") == []


@pytest.mark.case(39)
def test_dispatchers_that_run_five_times_at_once_act_once(stage: Bench) -> None:
    fill(stage)
    job = stage.file()
    stage.take("source", Phase.REVOKE, "dies")
    stage.end_leases()
    rescued: list[int] = []
    together(*[lambda: rescued.append(stage.ledger.sweep().rescued)] * 5)
    assert sorted(rescued) == [0, 0, 0, 0, 1]
    assert stage.rows("SELECT error_code FROM unit_attempts") == [("lease_ended",)]
    sent: list[tuple[str, Phase]] = []
    together(*[lambda: sent.extend(stage.ledger.announce())] * 5)
    assert sent == [("source", Phase.REVOKE)]
    stage.run()
    together(*[stage.ledger.sweep] * 5)
    assert stage.view(job).state is JobState.COMPLETED
    assert len(stage.rows("SELECT * FROM job_transitions")) == 5


@pytest.mark.case(41)
def test_messages_logs_and_ended_jobs_name_nobody(stage: Bench) -> None:
    scope = Scope(tenant="acme", user="erika.canary", project="canary-trip")
    stage.source.records.add(("acme", "erika.canary", "canary-key", "f-1"))
    stage.copies.records.add(("acme", "erika.canary", "f-1", "c-1"))
    sent: list[tuple[str, Phase]] = []

    class Post:
        def announce(self, adapter: str, phase: Phase) -> None:
            sent.append((adapter, phase))

    with capture_logs() as logs:
        job = stage.file("canary-key", scope=scope)
        dispatch.announce(stage.ledger, Post(), stage.ledger.crash)
        stage.run()
        dispatch.sweep(stage.ledger, stage.ledger.crash, structlog.get_logger())
    assert stage.view(job).state is JobState.COMPLETED
    tables = [str(row[0]) for row in stage.rows("SELECT name FROM sqlite_master WHERE type = 'table'")]
    stored = [stage.rows(f"SELECT * FROM {table}") for table in tables]  # noqa: S608 - names of our own tables
    assert "f-1" in repr(stored)
    assert "canary" not in repr((sent, logs, stored))
