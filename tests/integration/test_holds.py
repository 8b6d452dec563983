"""Holds: nothing that they cover is changed, and lifting one lets the rest resume by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from orchestrator import EraseOrder, InvalidRequest
from orchestrator.domain.codes import CrashPoint, HoldReason
from orchestrator.domain.errors import HoldNotFound, RuleRefused
from orchestrator.domain.hold import HoldView
from orchestrator.domain.job import Result
from orchestrator.domain.states import JobState
from orchestrator.domain.unit import Phase
from orchestrator.service.hold import HoldRequest, place
from orchestrator.service.run_batch import run_batch
from tests.fakes import ANNA, Bench, bench, fill


@pytest.fixture(params=["sqlite", "postgresql"])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    url = request.getfixturevalue("postgres_url") if request.param == "postgresql" else None
    made = bench(tmp_path, url=url)
    yield made
    made.ledger.engine.dispose()


def hold(stage: Bench, *items: str, user: str = ANNA.user, tenant: str = ANNA.tenant) -> str:
    asked = HoldRequest(
        tenant=tenant, user=user, items=items, reason=HoldReason.LITIGATION, requested_by="counsel", reference="case-7"
    )
    return str(place(asked, stage.acceptance)[0])


def everything(stage: Bench) -> tuple[object, ...]:
    return set(stage.source.records), set(stage.source.revoked), set(stage.copies.records)


def view(stage: Bench, ident: str) -> HoldView:
    return stage.ledger.hold(ident)


def release(stage: Bench, ident: str) -> None:
    stage.ledger.release(ident, by_ref="somebody")


@pytest.mark.case(133)
def test_hold_on_a_subject_keeps_every_phase_from_changing_anything(stage: Bench) -> None:
    fill(stage)
    before = everything(stage)
    hold(stage)
    job = stage.file()
    other = stage.file(scope=replace(ANNA, user="berta"))
    assert stage.run() > 0
    assert everything(stage) == before
    assert stage.source.calls["revoke"] == 1  # the other user's
    assert stage.view(job).state is JobState.REQUESTED
    assert stage.view(job).held
    assert stage.view(job).waits_for_a_person
    assert not stage.view(other).held
    assert stage.view(other).state is JobState.COMPLETED


def test_hold_covers_every_project_of_the_subject_and_no_other_tenant(stage: Bench) -> None:
    hold(stage)
    jobs = [stage.file(scope=replace(ANNA, project=project)) for project in ("trips", "work", None)]
    foreign = stage.file(scope=replace(ANNA, tenant="tenant-b"))
    stage.run()
    assert [stage.view(job).held for job in jobs] == [True] * 3
    assert stage.view(foreign).state is JobState.COMPLETED


@pytest.mark.case(134)
def test_lifting_a_hold_lets_its_jobs_resume_by_themselves(stage: Bench) -> None:
    fill(stage)
    ident = hold(stage)
    job = stage.file()
    stage.run()
    release(stage, ident)
    stage.run()
    assert stage.view(job).state is JobState.COMPLETED
    assert stage.view(job).result is Result.ERASED
    assert stage.copies.records == set()


@pytest.mark.parametrize("phase", [Phase.FIND, Phase.ERASE, Phase.VERIFY])
def test_hold_that_comes_while_a_job_runs_stops_it_where_it_is(stage: Bench, phase: Phase) -> None:
    fill(stage)
    job = stage.file()
    while not any(due == phase for _, due in stage.ledger.due(["source", "copies"])):
        run_batch(stage.engine, *stage.ledger.due(["source", "copies"])[0])
    ident, before = hold(stage), everything(stage)
    stage.run()
    assert everything(stage) == before
    assert stage.view(job).held
    assert stage.view(job).state not in {JobState.VERIFIED, JobState.COMPLETED}
    release(stage, ident)
    stage.run()
    assert stage.view(job).state is JobState.COMPLETED


def test_hold_is_read_again_right_before_the_call(stage: Bench) -> None:
    fill(stage)
    job = stage.file()
    claimed = stage.ledger.claim("source", Phase.REVOKE, owner="w", limit=9)
    assert len(claimed) == 1
    hold(stage)
    assert stage.ledger.load("w", claimed) == []
    assert stage.rows("SELECT status, attempts, lease_owner FROM deletion_units") == [("pending", 0, None)]
    assert stage.view(job).held


def test_worker_that_finds_a_hold_after_its_claim_calls_nothing(tmp_path: Path) -> None:
    def crash(point: CrashPoint, _where: str) -> None:
        if point is CrashPoint.AFTER_CLAIM:
            hold(made)

    made = bench(tmp_path, crash=crash)
    fill(made)
    made.file()
    assert run_batch(made.engine, "source", Phase.REVOKE) == 0
    assert made.source.calls["revoke"] == 0
    made.ledger.engine.dispose()


def test_hold_is_placing_until_no_call_that_began_before_can_act(stage: Bench) -> None:
    fill(stage)
    stage.file()
    stage.take("source", Phase.REVOKE, "w")
    ident = hold(stage)
    assert stage.ledger.sweep().in_force == ()
    assert view(stage, ident).standing == "placing"
    stage.end_leases()
    stage.ledger.sweep()
    assert view(stage, ident).standing == "placing"  # the lease is over, its call may still act until its deadline
    assert view(stage, ident).unknown == 1
    stage.clock.at += stage.engine.budgets.unit + timedelta(seconds=1)
    assert stage.ledger.sweep().in_force == (ident,)
    assert view(stage, ident).standing == "in_force"


def test_hold_is_in_force_as_soon_as_the_running_call_has_answered(stage: Bench) -> None:
    fill(stage)
    stage.file()
    placed: list[str] = []

    def during(phase: str, _orders: Sequence[EraseOrder]) -> None:
        if phase == "revoke":
            placed.append(hold(stage))
            assert stage.ledger.sweep().in_force == ()

    stage.source.before = during
    run_batch(stage.engine, "source", Phase.REVOKE)
    assert stage.ledger.sweep().in_force == tuple(placed)
    assert stage.rows("SELECT outcome FROM deletion_receipts") == [("revoked",)]  # a call that was made is written down


def test_hold_names_what_was_erased_before_it(stage: Bench) -> None:
    fill(stage, count=3)
    stage.file()
    stage.run()
    stage.clock.at += timedelta(seconds=1)
    assert view(stage, hold(stage)).erased_before == 9
    assert view(stage, hold(stage, user="berta")).erased_before == 0


@pytest.mark.case(134)
def test_hold_on_one_item_keeps_the_item_and_what_was_made_from_it_and_nothing_else(stage: Bench) -> None:
    fill(stage, count=3)
    kept = "anna-passport-000001"
    ident = hold(stage, kept)
    job = stage.file()
    stage.run()
    assert {r[3] for r in stage.source.records} == {kept}
    assert stage.source.revoked == {"anna-passport-000000", "anna-passport-000002"}
    assert {r[2] for r in stage.copies.records} == {kept}
    assert len(stage.copies.records) == 2
    assert stage.view(job).state is JobState.DERIVED_CLEANUP
    assert stage.view(job).held
    release(stage, ident)
    stage.run()
    assert stage.view(job).state is JobState.COMPLETED
    assert (stage.source.records, stage.copies.records) == (set(), set())
    assert stage.source.revoked >= {kept}


def test_item_that_is_held_after_revoke_is_set_apart_before_the_erase(stage: Bench) -> None:
    fill(stage, count=3)
    kept = "anna-passport-000002"
    job = stage.file()
    while stage.view(job).state is not JobState.DERIVED_CLEANUP:
        run_batch(stage.engine, *stage.ledger.due(["source", "copies"])[0])
    ident = hold(stage, kept)
    stage.run()
    assert {r[3] for r in stage.source.records} == {kept}
    assert {r[2] for r in stage.copies.records} == {kept}
    apart = stage.rows(
        "SELECT adapter, count(*) FROM deletion_targets WHERE item_ref IS NOT NULL GROUP BY 1 ORDER BY 1"
    )
    assert apart == [("copies", 2), ("source", 1)]
    release(stage, ident)
    stage.run()
    assert stage.view(job).state is JobState.COMPLETED
    assert (stage.source.records, stage.copies.records) == (set(), set())


def test_items_are_freed_one_after_the_other(stage: Bench) -> None:
    fill(stage, count=4)
    items = [f"anna-passport-{n:06}" for n in (1, 2)]
    holds = [hold(stage, item) for item in items]
    job = stage.file()
    stage.run()
    release(stage, holds[0])
    stage.run()
    assert {r[3] for r in stage.source.records} == {items[1]}
    assert {r[2] for r in stage.copies.records} == {items[1]}
    assert stage.view(job).held
    release(stage, holds[1])
    stage.run()
    assert stage.view(job).state is JobState.COMPLETED
    assert stage.copies.records == set()
    receipts = stage.rows("SELECT count(*) FROM deletion_units WHERE phase <> 'find' AND status = 'done'")
    assert receipts == stage.rows("SELECT count(*) FROM deletion_receipts")


def test_nothing_of_a_freed_item_is_erased_before_its_source_has_revoked_it(stage: Bench) -> None:
    fill(stage, count=2)
    kept = "anna-passport-000001"
    ident = hold(stage, kept)
    stage.file()
    stage.run()
    release(stage, ident)
    assert stage.ledger.due(["source", "copies"]) == [("source", Phase.REVOKE)]


def test_hold_never_stops_a_preview(stage: Bench) -> None:
    fill(stage)
    hold(stage)
    from orchestrator.domain.job import Purpose

    job = stage.file(purpose=Purpose.PREVIEW)
    stage.run()
    assert stage.ledger.counts(job) == {"source": 1, "copies": 2}


def test_hold_is_listed_by_pages_and_released_once(stage: Bench) -> None:
    first, second = hold(stage), hold(stage, "item-1")
    hold(stage, tenant="tenant-b")
    page = stage.ledger.holds(tenant="tenant-a", released=False, after=None, limit=1)
    assert [h.id for h in page] == [first]
    rest = stage.ledger.holds(tenant="tenant-a", released=False, after=first, limit=9)
    assert [(h.id, h.item) for h in rest] == [(second, "item-1")]
    release(stage, first)
    assert view(stage, first).standing == "released"
    with pytest.raises(RuleRefused):
        release(stage, first)
    assert [h.id for h in stage.ledger.holds(tenant="tenant-a", released=False, after=None, limit=9)] == [second]
    assert len(stage.ledger.holds(tenant="tenant-a", released=True, after=None, limit=9)) == 2


def test_foreign_and_missing_holds_answer_alike(stage: Bench) -> None:
    ident = hold(stage)
    said = []
    for wanted, tenant in ((ident, "tenant-b"), ("no-such-hold", None)):
        with pytest.raises(HoldNotFound) as caught:
            stage.ledger.release(wanted, by_ref="x", tenant=tenant)
        said.append(str(caught.value))
    assert said[0] == said[1]


def test_hold_is_refused_where_its_names_or_its_reference_cannot_be(stage: Bench) -> None:
    with pytest.raises(InvalidRequest):
        hold(stage, "")
    with pytest.raises(InvalidRequest):
        hold(stage, user=" ")
    with pytest.raises(InvalidRequest):
        place(
            HoldRequest(tenant="t", user="anna", reason=HoldReason.DISPUTE, requested_by="x", reference="case-of-anna"),
            stage.acceptance,
        )
    assert stage.rows("SELECT id FROM legal_holds") == []


@pytest.mark.parametrize("steps", range(8))
def test_item_that_is_freed_at_any_step_leaves_no_copy(stage: Bench, steps: int) -> None:
    fill(stage, count=2)
    job = stage.file(None)
    ident = hold(stage, "anna-passport-000001")
    for _ in range(steps):
        for due in stage.ledger.due(["source", "copies"])[:1]:
            run_batch(stage.engine, *due)
    release(stage, ident)
    stage.run()
    assert stage.view(job).state is JobState.COMPLETED
    assert (stage.source.records, stage.copies.records) == (set(), set())
    assert "anna-passport-000001" in stage.source.revoked
