"""Calls that come late, stores that were waived, dispatchers side by side, and units that an older release left."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from orchestrator import EraseOrder
from orchestrator.domain.codes import CrashPoint, HoldReason
from orchestrator.domain.states import JobState
from orchestrator.domain.unit import Phase
from orchestrator.service.hold import HoldRequest, place
from orchestrator.service.run_batch import run_batch
from tests.fakes import ANNA, Bench, bench, fill, together
from tests.integration.first_release import FirstRelease, carry, stock
from tests.integration.steer_harness import WAIVER, cannot_erase


@pytest.fixture(params=["sqlite", "postgresql"])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    url = request.getfixturevalue("postgres_url") if request.param == "postgresql" else None
    made = bench(tmp_path, url=url)
    yield made
    made.ledger.engine.dispose()


def test_waived_store_opens_no_round(stage: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(stage)
    monkeypatch.setattr(stage.copies, "erase", cannot_erase)
    job = stage.file()
    stage.run()
    stage.ledger.waive(job, WAIVER)
    stage.run()
    assert (stage.view(job).state, stage.view(job).round) == (JobState.COMPLETED, 1)


def test_two_dispatchers_send_one(stage: Bench) -> None:
    for n in range(3):
        stage.file(f"key-{n}")
    for _ in range(20):
        sent: list[str] = []
        together(*[lambda sent=sent: sent.extend(a for a, _ in stage.ledger.announce())] * 4)
        assert sent == ["source"]
        stage.ledger.heard("source")


def test_call_is_not_begun_after_its_deadline(tmp_path: Path) -> None:
    def crash(point: CrashPoint, where: str) -> None:
        if (point, where) == (CrashPoint.BEFORE_CALL, "source.revoke"):
            made.clock.at += timedelta(days=30)  # SIGSTOP, or a laptop that slept

    made = bench(tmp_path, crash=crash)
    fill(made)
    made.file()
    run_batch(made.engine, "source", Phase.REVOKE)
    threading.Event().wait(0.2)
    assert made.source.calls["revoke"] == 0


@pytest.mark.timeout(20)
def test_clock_set_back_does_not_unbound_a_call(tmp_path: Path) -> None:
    made = bench(tmp_path)
    fill(made)
    over = threading.Event()
    made.engine = replace(
        made.engine, budgets=replace(made.engine.budgets, unit=timedelta(seconds=1), lease=timedelta(seconds=0.3))
    )
    made.ledger = replace(made.ledger, budgets=made.engine.budgets)
    made.engine = replace(made.engine, ledger=made.ledger)

    def hang(_p: str, _o: Sequence[EraseOrder]) -> None:
        made.clock.at -= timedelta(days=1)
        over.wait(60)

    made.source.before = hang
    made.file()
    done = threading.Thread(target=run_batch, args=(made.engine, "source", Phase.REVOKE), daemon=True)
    done.start()
    done.join(8)
    hangs = done.is_alive()
    over.set()
    assert not hangs


def test_units_that_an_old_worker_opens_after_the_migration_know_their_lineage(tmp_path: Path) -> None:
    made = bench(tmp_path)  # on the new schema
    with made.ledger.engine.begin() as connection:
        old = FirstRelease(connection, ["fact-0"], uuid4())
        old.accept()
        old.revoke(1)  # the old worker's commit opens find without known_adapter
    stock(made, old.facts, 0)
    run_batch(made.engine, "copies", Phase.FIND)
    assert made.rows("SELECT adapter, handle FROM deletion_targets WHERE adapter = 'copies'") != []


def test_look_that_an_old_worker_opened_sees_a_late_copy(tmp_path: Path) -> None:
    made = bench(tmp_path)
    with made.ledger.engine.begin() as connection:
        old = FirstRelease(connection, ["fact-0"], uuid4())
        carry(old, "erase", 1)  # old worker's last commit opens verify without known_adapter
    made.copies.records.add((ANNA.tenant, ANNA.user, "fact-0", "late"))
    made.run()
    assert (made.view(str(old.job)).state, made.copies.records) == (JobState.COMPLETED, set())


def test_hold_waits_for_the_call_of_an_old_worker(tmp_path: Path) -> None:
    made = bench(tmp_path)
    made.file()
    made.take("source", Phase.REVOKE, "old")
    with made.ledger.engine.begin() as c:
        c.exec_driver_sql("UPDATE deletion_units SET deadline_us = NULL")  # as a claim of release 0001 leaves it
    place(HoldRequest(tenant=ANNA.tenant, user=ANNA.user, reason=HoldReason.DISPUTE, requested_by="x"), made.acceptance)
    made.end_leases()
    assert made.ledger.sweep().in_force == ()
