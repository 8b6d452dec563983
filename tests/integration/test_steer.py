"""What a person may do to a job, on a real engine: cancel, list what is late; what is refused, alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from orchestrator import Erased, EraseOrder
from orchestrator.domain.codes import Refusal
from orchestrator.domain.errors import ExpungeError, JobNotFound, RuleRefused
from orchestrator.domain.job import Purpose
from orchestrator.domain.states import JobState
from orchestrator.domain.unit import Phase
from orchestrator.service.run_batch import run_batch
from tests.fakes import ANNA, Bench, fill, together
from tests.integration.engine_harness import fail_in, run_until
from tests.integration.steer_harness import NAMES, WAYS, refusal, rows_of, stage

__all__ = ["stage"]


@pytest.mark.req("R136")
def test_two_workers_that_race_for_a_unit_call_its_store_once(stage: Bench) -> None:
    for n in range(20):
        fill(stage, key=f"key-{n}")
        job = stage.file(f"key-{n}")
        won: list[int] = []
        together(*[lambda won=won: won.append(run_batch(stage.engine, "source", Phase.REVOKE))] * 2)
        assert sorted(won) == [0, 1]
        assert stage.source.calls["revoke"] == n + 1
        assert [r.outcome for r in stage.ledger.receipts(job)] == ["revoked"]
    assert stage.rows("SELECT DISTINCT attempts, fence FROM deletion_units WHERE phase = 'revoke'") == [(1, 1)]


@pytest.mark.req("R136")
def test_several_workers_race_a_whole_job_through_with_one_call_for_each_unit(stage: Bench) -> None:
    fill(stage, count=3)
    jobs = [stage.file() for _ in range(3)]
    together(*[stage.run] * 4)
    stage.run()
    assert [stage.view(job).state for job in jobs] == [JobState.COMPLETED] * 3
    units = stage.rows("SELECT adapter, phase, sum(fence) FROM deletion_units GROUP BY 1, 2")
    called = {("source", phase): count for phase, count in stage.source.calls.items()}
    called |= {("copies", phase): count for phase, count in stage.copies.calls.items()}
    assert {(a, p): fence for a, p, fence in units} == called
    assert set(stage.rows("SELECT fence FROM deletion_units")) == {(1,)}


@pytest.mark.req("R139")
def test_job_that_is_cancelled_in_requested_is_never_called_for(stage: Bench) -> None:
    fill(stage)
    before = (set(stage.source.records), set(stage.copies.records))
    assert stage.ledger.may_look("source"), "nobody is to be woken for that"
    job = stage.file()
    stage.ledger.cancel(job)
    assert (stage.view(job).state, stage.view(job).result) == (JobState.CANCELLED, None)
    assert (stage.ledger.due(NAMES), stage.ledger.announce(), stage.run()) == ([], [], 0)
    assert (stage.source.calls.total(), stage.copies.calls.total()) == (0, 0)
    assert (stage.source.records, stage.copies.records) == before
    assert stage.rows("SELECT id FROM deletion_units") == []
    assert stage.ledger.receipts(job) == []
    assert stage.rows("SELECT user_id, project, selector_value FROM deletion_jobs") == [(None, None, None)]


def in_requested_with_a_claim(stage: Bench) -> None:
    stage.take("source", Phase.REVOKE, "w")


def in_requested_with_a_claim_that_died(stage: Bench) -> None:
    stage.take("source", Phase.REVOKE, "w")
    stage.end_leases()
    stage.ledger.sweep()


def in_source_revoked(stage: Bench) -> None:
    run_until(stage, "copies", Phase.FIND)


def in_derived_cleanup(stage: Bench) -> None:
    run_until(stage, "copies", Phase.ERASE)


def in_derived_cleanup_before_the_last_look(stage: Bench) -> None:
    run_until(stage, "copies", Phase.VERIFY)


@pytest.mark.req("R139")
@pytest.mark.parametrize(
    ("reach", "state"),
    [
        (in_requested_with_a_claim, JobState.REQUESTED),
        (in_requested_with_a_claim_that_died, JobState.REQUESTED),
        (in_source_revoked, JobState.SOURCE_REVOKED),
        (in_derived_cleanup, JobState.DERIVED_CLEANUP),
        (in_derived_cleanup_before_the_last_look, JobState.DERIVED_CLEANUP),
    ],
)
def test_cancel_is_refused_once_a_revoke_was_claimed(
    stage: Bench, reach: Callable[[Bench], None], state: JobState
) -> None:
    fill(stage)
    job = stage.file()
    reach(stage)
    before = rows_of(stage, job)
    assert refusal(lambda: stage.ledger.cancel(job)) is Refusal.ALREADY_BEGUN
    assert rows_of(stage, job) == before
    assert stage.view(job).state is state
    stage.end_leases()
    stage.ledger.sweep()
    stage.run()
    assert stage.view(job).state is JobState.COMPLETED


@pytest.mark.req("R139")
def test_cancel_is_refused_in_verified(stage: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(stage)
    until = datetime.now(UTC) + timedelta(days=30)

    def keep_one(orders: Sequence[EraseOrder]) -> list[Erased]:
        stage.copies.records.clear()
        return [Erased(erased=len(o.targets) - 1, windows={"copy": until}) for o in orders]

    monkeypatch.setattr(stage.copies, "erase", keep_one)
    job = stage.file()
    stage.run()
    assert stage.view(job).state is JobState.VERIFIED
    before = rows_of(stage, job)
    assert refusal(lambda: stage.ledger.cancel(job)) is Refusal.JOB_ENDED
    assert rows_of(stage, job) == before


@pytest.mark.req("R139")
@pytest.mark.timeout(180)
def test_cancel_that_races_a_claim_has_cancelled_all_or_is_refused(stage: Bench) -> None:
    """Each is late in turn by up to 20 ms, so that both win and both come in the middle of the other."""
    ends = set()
    for n in range(50):
        key, late = f"key-{n}", (n // 2) ** 2 / 25**2 * 0.02
        fill(stage, key=key)
        job, called, refused = stage.file(key), stage.source.calls["revoke"], list[Refusal]()

        def cancel(job: str = job, pause: float = late * (n % 2), refused: list[Refusal] = refused) -> None:
            time.sleep(pause)
            try:
                stage.ledger.cancel(job)
            except RuleRefused as error:
                refused.append(error.refusal)

        def claim(pause: float = late * (1 - n % 2)) -> None:
            time.sleep(pause)
            run_batch(stage.engine, "source", Phase.REVOKE)

        together(cancel, claim)
        ends.add(state := stage.view(job).state)
        fact, units = f"anna-{key}-000000", stage.rows(f"SELECT id FROM deletion_units WHERE job_id = '{job}'")  # noqa: S608
        if state is JobState.CANCELLED:
            assert (refused, units, stage.ledger.receipts(job)) == ([], [], [])
            assert (stage.source.calls["revoke"], fact in stage.source.revoked) == (called, False)
        else:
            assert (state, refused) == (JobState.SOURCE_REVOKED, [Refusal.ALREADY_BEGUN])
            assert (stage.source.calls["revoke"], fact in stage.source.revoked) == (called + 1, True)
    assert ends == {JobState.CANCELLED, JobState.SOURCE_REVOKED}
    stage.run()
    left = stage.rows("SELECT count(*) FROM deletion_jobs WHERE state = 'cancelled'")[0][0]
    assert (len(stage.source.records), len(stage.copies.records)) == (left, 2 * left)  # type: ignore[operator]


@pytest.mark.req("R138")
@pytest.mark.parametrize("ended", [False, True])
def test_foreign_and_missing_jobs_are_refused_alike(stage: Bench, *, ended: bool) -> None:
    job = stage.file()
    if ended:
        stage.run()
    before = rows_of(stage, job)
    for way in WAYS.values():
        said = []
        for wanted, tenant in ((job, "tenant-b"), ("no-such-job", "tenant-a"), ("no-such-job", None)):
            with pytest.raises(ExpungeError) as caught:
                way(stage, wanted, tenant)
            said.append((type(caught.value), str(caught.value), caught.value.facts))
        assert said == [(JobNotFound, str(JobNotFound()), {})] * 3
    assert rows_of(stage, job) == before


@pytest.mark.parametrize("state", [JobState.COMPLETED, JobState.CANCELLED])
def test_job_that_has_ended_is_refused_alike_whatever_is_asked(stage: Bench, state: JobState) -> None:
    job = stage.file()
    if state is JobState.CANCELLED:
        stage.ledger.cancel(job)
    stage.run()
    assert stage.view(job).state is state
    before = rows_of(stage, job)
    for way in WAYS.values():
        assert refusal(partial(way, stage, job, ANNA.tenant)) is Refusal.JOB_ENDED
    assert rows_of(stage, job) == before


@pytest.mark.parametrize("second", ["passport", None], ids=["same-key", "whole-subject"])
def test_overlapping_jobs_both_end_right_with_receipts_of_their_own(stage: Bench, second: str | None) -> None:
    """The second job comes after every other step of the first, each time for another user."""
    for steps in range(0, 9, 2):
        scope = replace(ANNA, user=f"user-{steps}")
        fill(stage, scope=scope)
        jobs = [stage.file(scope=scope)]
        for _ in range(steps):
            run_batch(stage.engine, *stage.ledger.due(NAMES)[0])
        jobs.append(stage.file(second, scope=scope))
        while due := stage.ledger.due(NAMES):
            run_batch(stage.engine, *due[-1])
            if any(stage.view(job).verified_at for job in jobs):
                assert (stage.source.records, stage.copies.records) == (set(), set())
        assert [stage.view(job).state for job in jobs] == [JobState.COMPLETED] * 2
        receipts = {job: stage.ledger.receipts(job) for job in jobs}
        for job in jobs:
            assert {(r.adapter, r.phase) for r in receipts[job]} == {
                ("source", "revoke"),
                *((name, phase) for name in NAMES for phase in ("erase", "verify")),
            }
            erases = [r for r in receipts[job] if r.phase == "erase"]
            assert all(r.erased + r.already_absent == r.expected + r.extra and not r.remaining for r in erases)
        assert sum(r.erased for job in jobs for r in receipts[job]) == 3  # nothing is said to be erased twice


def test_overdue_lists_the_longest_overdue_first_up_to_a_limit_of_one_tenant(stage: Bench) -> None:
    today = stage.clock.at = datetime(2026, 3, 10, tzinfo=UTC)
    due = {}
    for days, changes in ((0, {}), (9, {}), (5, {"scope": replace(ANNA, tenant="tenant-b")}), (3, {})):
        stage.clock.at = today - timedelta(days=days)
        job = stage.file(f"key-{days}", **changes)
        due[job] = stage.view(job).due_at
    stage.file(purpose=Purpose.PREVIEW)
    first, *_ = by_age = sorted(due, key=lambda job: due[job])

    def overdue(before: datetime, tenant: str | None = None, limit: int = 9) -> list[str]:
        return [view.id for view in stage.ledger.overdue(tenant=tenant, before=before, limit=limit)]

    far = today + timedelta(days=99)
    assert overdue(far) == by_age
    assert overdue(far, limit=2) == by_age[:2]
    assert overdue(far, tenant="tenant-b") == [job for job in by_age if stage.view(job).tenant == "tenant-b"]
    assert overdue(far, tenant="tenant-a", limit=1) == by_age[:1]
    assert overdue(due[first]) == []  # due now is not late
    assert overdue(due[first] + timedelta(microseconds=1)) == [first]


def test_jobs_that_are_verified_or_cancelled_are_not_overdue(stage: Bench) -> None:
    done, taken_back, failing = stage.file(), stage.file(), stage.file("theme")
    stage.ledger.cancel(taken_back)

    def fail(_phase: str, orders: Sequence[EraseOrder]) -> None:
        if any(str(order.job) == failing for order in orders):
            fail_in(Phase.REVOKE)("revoke", orders)

    stage.source.before = fail
    for _ in range(2):
        stage.run()
        stage.skip_pauses()
    assert stage.view(done).state is JobState.COMPLETED
    (late,) = stage.ledger.overdue(tenant=None, before=stage.clock.at + timedelta(days=99), limit=9)
    assert (late.id, late.last_error) == (failing, "store_unreachable")
