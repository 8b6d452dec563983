"""Orders of events that broke drafts of the protocol, each as it was found, on the real engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from orchestrator import DeadlinePassed, Erased, EraseOrder
from orchestrator.domain.codes import HoldReason, Refusal, WaiverReason
from orchestrator.domain.errors import RuleRefused
from orchestrator.domain.job import Result, Waiver
from orchestrator.domain.states import JobState
from orchestrator.domain.unit import Phase
from orchestrator.service import run_batch as running
from orchestrator.service.hold import HoldRequest, place
from orchestrator.service.run_batch import run_batch
from tests.fakes import ANNA, Bench, bench, fill
from tests.integration.engine_harness import fail_in, run_until, with_rules

NAMES = ["source", "copies"]
FACT = "anna-passport-000000"


@pytest.fixture(params=["sqlite", "postgresql"])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    url = request.getfixturevalue("postgres_url") if request.param == "postgresql" else None
    made = bench(tmp_path, url=url)
    fill(made)
    yield made
    made.ledger.engine.dispose()


def work(_phase: str, _orders: object) -> None:
    """Let a call pass."""


def hold(stage: Bench) -> str:
    asked = HoldRequest(tenant=ANNA.tenant, user=ANNA.user, reason=HoldReason.LITIGATION, requested_by="counsel")
    return str(place(asked, stage.acceptance)[0])


def late_copy(stage: Bench) -> None:
    stage.copies.records.add((ANNA.tenant, ANNA.user, FACT, "late"))


def test_store_that_was_done_first_is_looked_at_after_the_erase_of_the_last(stage: Bench) -> None:
    """One store is done, the other's erase commits much later: both are looked at, after that commit and quiet time."""
    with_rules(stage, quiet_time=timedelta(hours=1))
    stage.copies.before = fail_in(Phase.ERASE)
    job = stage.file()
    stage.run()
    assert stage.source.calls["erase"] == 1
    stage.skip_pauses()
    stage.run()
    stage.ledger.sweep()
    assert stage.rows("SELECT id FROM deletion_units WHERE phase = 'verify'") == []
    stage.copies.before = work
    stage.skip_pauses()
    stage.run()
    assert stage.source.calls["verify"] == stage.copies.calls["verify"] == 0  # quiet time
    assert stage.view(job).state is JobState.DERIVED_CLEANUP
    stage.skip_pauses()
    stage.run()
    assert stage.view(job).state is JobState.COMPLETED
    assert stage.source.calls["verify"] == stage.copies.calls["verify"] == 1


def test_copy_that_comes_into_the_store_that_was_done_first_is_seen_by_its_look(stage: Bench) -> None:
    stage.source.before = fail_in(Phase.ERASE)
    job = stage.file()
    stage.run()
    assert stage.copies.calls["erase"] == 1
    late_copy(stage)  # into the store that is done, while the other one is not
    stage.source.before = work
    stage.skip_pauses()
    stage.run()
    assert (stage.view(job).state, stage.view(job).round, stage.copies.records) == (JobState.COMPLETED, 2, set())


def test_second_job_does_not_end_while_copies_of_the_first_one_live(stage: Bench) -> None:
    """The second job finds nothing live, because the first has revoked it: its targets are the same ones."""
    stage.copies.before = fail_in(Phase.ERASE)
    first = stage.file()
    stage.run()
    second = stage.file()
    for _ in range(2):
        stage.run()
        stage.ledger.sweep()
        assert len(stage.copies.records) == 2
        assert stage.view(second).verified_at is stage.view(first).verified_at is None
        stage.skip_pauses()
    stage.copies.before = work
    stage.run()
    for job in (first, second):
        assert stage.view(job).state is JobState.COMPLETED
        erases = [r for r in stage.ledger.receipts(job) if r.phase == "erase"]
        assert all(r.expected + r.extra == r.erased + r.already_absent for r in erases)
    assert stage.view(first).result is Result.ERASED
    assert (stage.source.records, stage.copies.records) == (set(), set())


def test_second_job_for_what_the_first_has_only_revoked_finds_its_copies(stage: Bench) -> None:
    first = stage.file()
    run_batch(stage.engine, "source", Phase.REVOKE)
    second = stage.file()
    run_batch(stage.engine, "source", Phase.REVOKE)
    with stage.ledger.engine.begin() as connection:  # the first one sleeps for a long time
        sleep = f"UPDATE deletion_units SET next_attempt_at_us = 4500000000000000 WHERE job_id = '{first}'"  # noqa: S608
        connection.exec_driver_sql(f"{sleep} AND status = 'pending'")
    stage.run()
    assert (stage.view(second).state, stage.view(second).result) == (JobState.COMPLETED, Result.ERASED)
    assert stage.copies.records == set()
    assert stage.view(first).state is JobState.SOURCE_REVOKED
    stage.ledger.retry(first)
    with stage.ledger.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE deletion_units SET next_attempt_at_us = 0 WHERE status = 'pending'")
    stage.run()
    assert (stage.view(first).state, stage.view(first).result) == (JobState.COMPLETED, Result.ERASED)
    assert sum(r.erased for job in (first, second) for r in stage.ledger.receipts(job)) == 3


@pytest.mark.parametrize("phase", [Phase.REVOKE, Phase.ERASE])
def test_call_that_slept_through_the_placing_of_a_hold_changes_nothing_once_it_is_in_force(
    stage: Bench, phase: Phase
) -> None:
    """Claim, holds read, hold placed, the claim's lease ends, the hold is in force, and then the old call acts."""

    def refuse_late(_phase: str, orders: Sequence[EraseOrder]) -> None:
        if any(stage.clock.now() > order.deadline for order in orders):
            raise DeadlinePassed

    stage.source.before = stage.copies.before = refuse_late
    job = stage.file()
    adapter = "source" if phase is Phase.REVOKE else "copies"
    run_until(stage, adapter, phase)
    (unit,) = stage.take(adapter, phase, "asleep")
    ident = hold(stage)
    before = (set(stage.source.records), set(stage.source.revoked), set(stage.copies.records))
    stage.end_leases()
    stage.ledger.sweep()
    assert stage.ledger.hold(ident).standing == "placing"  # the old call could still act
    stage.clock.at = unit.order.deadline + timedelta(microseconds=1)
    assert stage.ledger.sweep().in_force == (ident,)
    call = running.verb(stage.engine.adapters[adapter], phase)
    answers = running.answers_of(stage.engine, lambda: call([unit.order]), [unit])
    assert (set(stage.source.records), set(stage.source.revoked), set(stage.copies.records)) == before
    assert stage.ledger.commit("asleep", answers, started_at=stage.clock.now()).dropped == {unit.order.unit}
    stage.run()
    assert (set(stage.source.records), set(stage.source.revoked), set(stage.copies.records)) == before
    assert stage.view(job).held
    stage.ledger.release(ident, by_ref="counsel")
    stage.run()
    assert (stage.view(job).state, stage.copies.records) == (JobState.COMPLETED, set())


def test_pending_revoke_of_a_cancelled_job_cannot_be_claimed(stage: Bench) -> None:
    """Accept, cancel, and then somebody claims what was pending, or builds its orders."""
    job = stage.file()
    ((unit,),) = stage.rows("SELECT id FROM deletion_units")
    stage.ledger.cancel(job)
    assert stage.ledger.claim("source", Phase.REVOKE, owner="late", limit=9) == []
    assert stage.ledger.load("late", [str(unit)]) == []
    assert run_batch(stage.engine, "source", Phase.REVOKE) == 0
    assert (stage.view(job).state, stage.source.revoked, stage.source.calls.total()) == (JobState.CANCELLED, set(), 0)


def test_cancel_that_comes_after_the_claim_takes_nothing_back(stage: Bench) -> None:
    job = stage.file()
    claimed = stage.ledger.claim("source", Phase.REVOKE, owner="w", limit=9)
    with pytest.raises(RuleRefused) as caught:
        stage.ledger.cancel(job)
    assert caught.value.refusal is Refusal.ALREADY_BEGUN
    assert [str(unit.order.job) for unit in stage.ledger.load("w", claimed)] == [job]
    stage.end_leases()
    stage.ledger.sweep()
    stage.run()
    assert (stage.view(job).state, stage.view(job).result) == (JobState.COMPLETED, Result.ERASED)


def test_unit_that_was_unsupported_waived_and_tried_again_has_one_receipt(
    stage: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = stage.copies.erase
    monkeypatch.setattr(stage.copies, "erase", lambda orders: [Erased(unsupported=True) for _ in orders])
    job = stage.file()
    stage.run()
    of_unit = "FROM {} r JOIN deletion_units u ON u.id = r.unit_id WHERE u.adapter = 'copies' AND u.phase = 'erase'"
    receipts, attempts = (f"SELECT count(*) {of_unit.format(t)}" for t in ("deletion_receipts", "unit_attempts"))
    assert (stage.rows(receipts), stage.rows(attempts)) == ([(0,)], [(1,)])
    stage.source.before = stage.copies.before = fail_in(Phase.VERIFY)  # so that the waived job does not end at once
    stage.ledger.waive(job, Waiver(adapter="copies", reason=WaiverReason.OPERATOR, granted_by_ref="x"))
    stage.run()
    monkeypatch.setattr(stage.copies, "erase", honest)
    stage.ledger.retry(job)
    run_batch(stage.engine, "copies", Phase.ERASE)
    assert (stage.rows(receipts), stage.rows(attempts)) == ([(1,)], [(1,)])
    stage.source.before = stage.copies.before = work
    stage.ledger.retry(job)
    while stage.view(job).verified_at is None:  # the look of the waived store first, as far as it comes
        assert run_batch(stage.engine, *stage.ledger.due(NAMES)[0])
    assert stage.rows(receipts) == [(1,)]
    assert (stage.view(job).state, stage.copies.records) == (JobState.COMPLETED, set())
    assert stage.view(job).result is Result.ERASED  # nothing is left, so the waiver was not needed
