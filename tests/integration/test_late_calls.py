"""Calls that come late, stores that were waived, dispatchers side by side, and units that an older release left."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pytest

from orchestrator import EraseOrder
from orchestrator.domain.codes import CrashPoint, HoldReason
from orchestrator.domain.errors import RuleRefused
from orchestrator.domain.states import JobState
from orchestrator.domain.unit import Phase
from orchestrator.service.hold import HoldRequest, place
from orchestrator.service.run_batch import run_batch
from tests.fakes import ANNA, Bench, bench, fill, together
from tests.integration.engine_harness import fail_in, run_until
from tests.integration.first_release import FirstRelease, carry, stock
from tests.integration.steer_harness import WAIVER, cannot_erase

WHY: Final[dict[str, Any]] = {"reason": HoldReason.DISPUTE, "requested_by": "counsel"}


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


def test_of_two_who_lift_one_hold_at_once_one_is_refused(stage: Bench) -> None:
    for _ in range(20):
        asked = HoldRequest(tenant=ANNA.tenant, user=ANNA.user, **WHY)
        ident = str(place(asked, stage.acceptance)[0])
        answers: list[str] = []

        def lift(who: str, ident: str = ident, answers: list[str] = answers) -> None:
            try:
                stage.ledger.release(ident, by_ref=who)
                answers.append(who)
            except RuleRefused as error:
                answers.append(error.refusal.value)

        together(partial(lift, "one"), partial(lift, "other"))
        (lifted,) = (answer for answer in answers if answer != "hold_released")
        assert len(answers) == 2
        assert stage.rows(f"SELECT released_by_ref FROM legal_holds WHERE id = '{ident}'") == [(lifted,)]  # noqa: S608


def it_fails(stage: Bench, item: str) -> None:
    """Let the next worker call, and the store fail."""
    stage.copies.before = fail_in(Phase.ERASE)
    assert run_batch(stage.engine, "copies", Phase.ERASE) == 1
    assert place(HoldRequest(tenant=ANNA.tenant, user=ANNA.user, items=(item,), **WHY), stage.acceptance)


def it_is_given_back(stage: Bench, _item: str) -> None:
    """Let the next worker find a hold on the subject, and call nothing."""
    units = stage.ledger.claim("copies", Phase.ERASE, owner="next", limit=9)
    assert place(HoldRequest(tenant=ANNA.tenant, user=ANNA.user, **WHY), stage.acceptance)
    assert (len(units), stage.ledger.load("next", units)) == (1, [])


def it_is_done_without_the_item(stage: Bench, item: str) -> None:
    """Let the next worker erase what is not held."""
    assert place(HoldRequest(tenant=ANNA.tenant, user=ANNA.user, items=(item,), **WHY), stage.acceptance)
    assert run_batch(stage.engine, "copies", Phase.ERASE) == 1
    assert {copy[2] for copy in stage.copies.records} == {item}


@pytest.mark.parametrize("then", [it_fails, it_is_given_back, it_is_done_without_the_item])
def test_hold_waits_for_a_lost_call_whatever_became_of_its_unit_since(
    stage: Bench, then: Callable[[Bench, str], None]
) -> None:
    """Its worker was stopped right before the call, for longer than its lease, and goes on when all is over."""
    fill(stage, count=2)
    stage.file()
    run_until(stage, "copies", Phase.ERASE)
    (lost,) = stage.take("copies", Phase.ERASE, "stopped")
    stage.end_leases()
    assert stage.ledger.sweep().rescued == 1
    then(stage, lost.order.targets[0].derived_of.removeprefix("fact:"))  # type: ignore[union-attr]  # of a copy
    assert stage.ledger.sweep().in_force == ()
    stage.clock.at = lost.order.deadline + timedelta(seconds=1)
    assert len(stage.ledger.sweep().in_force) == 1


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
    place(HoldRequest(tenant=ANNA.tenant, user=ANNA.user, **WHY), made.acceptance)
    assert made.ledger.sweep().in_force == (), "what was left behind may act for as long as the clock lets it"
    made.clock.at += timedelta(days=1, seconds=2)
    assert len(made.ledger.sweep().in_force) == 1


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
    place(HoldRequest(tenant=ANNA.tenant, user=ANNA.user, **WHY), made.acceptance)
    made.end_leases()
    assert made.ledger.sweep().in_force == ()
