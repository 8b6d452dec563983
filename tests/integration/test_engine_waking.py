"""How workers are woken and when they rest: what is announced, to whom, and how long one goes on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest

from orchestrator import EraseOrder
from orchestrator.domain.states import JobState
from orchestrator.domain.unit import Phase
from orchestrator.service.drain import drain
from tests.fakes import Bench, fill
from tests.integration.engine_harness import run_until


@pytest.mark.req("R137")
def test_job_is_visible_before_its_message_and_a_lost_message_is_announced_again(stage: Bench) -> None:
    job = stage.file()
    assert stage.ledger.announce() == [("source", Phase.REVOKE)]
    assert stage.view(job).state is JobState.REQUESTED
    assert stage.ledger.announce() == []  # one is outstanding
    with stage.ledger.engine.begin() as connection:  # the broker loses it, a lease goes by
        connection.exec_driver_sql("UPDATE adapter_health SET announced_at_us = announced_at_us - 16000000")
    assert stage.ledger.announce() == [("source", Phase.REVOKE)]
    stage.ledger.heard("source")
    assert stage.ledger.announce() == [("source", Phase.REVOKE)]


def test_drain_ends_when_its_budget_is_over(stage: Bench) -> None:
    fill(stage)
    job = stage.file()

    def late(_phase: str, _orders: Sequence[EraseOrder]) -> None:
        stage.clock.at += timedelta(minutes=1)

    stage.source.before = late
    assert drain(stage.engine, "source", Phase.REVOKE) == 1
    assert stage.view(job).state is JobState.SOURCE_REVOKED
    assert stage.ledger.due(["source", "copies"])
    assert drain(stage.engine, "source", Phase.VERIFY) > 0


def test_adapter_at_its_cap_of_batches_is_not_announced(stage: Bench) -> None:
    for n in range(3):
        stage.file(f"key-{n}")
    for owner, announced in (("a", [("source", Phase.REVOKE)]), ("b", [])):
        assert len(stage.ledger.claim("source", Phase.REVOKE, owner=owner, limit=1)) == 1
        assert stage.ledger.due(["source"]) == [("source", Phase.REVOKE)]
        assert stage.ledger.announce() == announced
        stage.ledger.heard("source")
    stage.end_leases()
    stage.ledger.sweep()
    assert stage.ledger.announce() == [("source", Phase.REVOKE)]


def test_cap_of_one_adapter_holds_back_no_other(stage: Bench) -> None:
    jobs = [stage.file(f"key-{n}") for n in range(3)]
    run_until(stage, "copies", Phase.FIND)
    assert all(stage.view(job).state is JobState.SOURCE_REVOKED for job in jobs)
    for owner in "ab":
        assert len(stage.ledger.claim("source", Phase.FIND, owner=owner, limit=1)) == 1
    assert stage.ledger.announce() == [("copies", Phase.FIND)]


def test_one_announcement_is_outstanding_for_each_adapter(stage: Bench) -> None:
    stage.file("key-1")
    run_until(stage, "copies", Phase.FIND)
    stage.file("key-2")
    names = ["source", "copies"]
    assert stage.ledger.due(names) == [("source", Phase.REVOKE), ("copies", Phase.FIND), ("source", Phase.FIND)]
    assert sorted(stage.ledger.announce()) == [("copies", Phase.FIND), ("source", Phase.REVOKE)]
    assert stage.ledger.announce() == []
    stage.ledger.heard("copies")
    assert stage.ledger.announce() == [("copies", Phase.FIND)]
