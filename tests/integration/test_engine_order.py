"""The way of a job through its states, over a real control database: in order, in pages, never too early."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from orchestrator import EraseOrder, Scope, StoreUnreachable
from orchestrator.domain.job import Purpose, Result
from orchestrator.domain.states import JobState
from orchestrator.domain.unit import Phase
from tests.fakes import ANNA, Bench, fill
from tests.integration.engine_harness import database_now, fail_in, let_time_pass, with_rules


@pytest.mark.req("R120")
def test_states_occur_in_order_each_once(stage: Bench) -> None:
    fill(stage)
    job = stage.file()
    stage.run()
    moves = stage.rows("SELECT to_state FROM job_transitions ORDER BY rowid")
    assert [m[0] for m in moves] == ["requested", "source_revoked", "derived_cleanup", "verified", "completed"]
    assert stage.view(job).result is Result.ERASED
    assert stage.copies.records == set()
    assert stage.source.records == set()


@pytest.mark.req("R121")
def test_database_refuses_any_other_move(stage: Bench) -> None:
    job = stage.file()
    for state in ("verified", "completed", "derived_cleanup"):
        with pytest.raises(sa.exc.IntegrityError, match=r"illegal state move|CHECK"), stage.ledger.engine.begin() as c:
            c.exec_driver_sql(f"UPDATE deletion_jobs SET state = '{state}' WHERE id = '{job}'")  # noqa: S608
    with pytest.raises(sa.exc.IntegrityError), stage.ledger.engine.begin() as c:
        c.exec_driver_sql(
            f"INSERT INTO job_transitions VALUES ('{job}', 'requested', 'verified', 1, 'x')"  # noqa: S608
        )
    assert stage.view(job).state is JobState.REQUESTED


def test_copy_that_arrives_after_find_opens_one_new_round(stage: Bench) -> None:
    fill(stage)

    def refill(phase: str, _orders: Sequence[EraseOrder]) -> None:
        if phase == "erase" and stage.copies.calls["erase"] == 0:
            stage.copies.records.add(("tenant-a", "anna", "anna-passport-000000", "late"))

    stage.copies.before = refill
    job = stage.file()
    stage.run()
    view = stage.view(job)
    assert (view.state, view.round) == (JobState.COMPLETED, 2)
    assert stage.copies.records == set()


def test_no_verify_is_older_than_the_last_erase(stage: Bench) -> None:
    fill(stage)
    failures = iter([StoreUnreachable()])

    def fail(phase: str, _orders: Sequence[EraseOrder]) -> None:
        if phase == "erase" and (error := next(failures, None)):
            raise error

    stage.copies.before = fail
    stage.file()
    stage.run()
    assert stage.source.calls["verify"] == 0
    stage.skip_pauses()
    stage.run()
    (oldest_look,) = stage.rows("SELECT min(rowid) FROM deletion_receipts WHERE phase = 'verify'")[0]
    (last_erase,) = stage.rows("SELECT max(rowid) FROM deletion_receipts WHERE phase = 'erase'")[0]
    assert oldest_look > last_erase  # type: ignore[operator]


def test_nothing_found_is_a_result_of_its_own(stage: Bench) -> None:
    fill(stage)
    job = stage.file("pasport")
    stage.run()
    view = stage.view(job)
    assert (view.state, view.result) == (JobState.COMPLETED, Result.NOTHING_FOUND)
    assert len(stage.source.records) == 1


def test_raw_ids_leave_the_job_at_verified(stage: Bench, tmp_path: Path) -> None:
    fill(stage)
    job = stage.file()
    columns = f"SELECT user_id, project, selector_value FROM deletion_jobs WHERE id = '{job}'"  # noqa: S608
    assert stage.rows(columns) == [("anna", "trips", "passport")]
    stage.run()
    assert stage.rows(columns) == [(None, None, None)]
    assert tmp_path.exists()


def test_preview_counts_and_changes_nothing(stage: Bench) -> None:
    fill(stage, count=3)
    before = (set(stage.source.records), set(stage.copies.records))
    job = stage.file(purpose=Purpose.PREVIEW)
    stage.run()
    assert stage.view(job).state is JobState.CANCELLED
    assert stage.ledger.counts(job) == {"source": 3, "copies": 6}
    assert (stage.source.records, stage.copies.records) == before
    assert stage.source.calls["revoke"] == stage.copies.calls["erase"] == 0
    assert stage.ledger.jobs(tenant=None, state=None, after=None, limit=9) == []


@pytest.mark.parametrize("count", [999, 1000, 1001, 2500])
def test_large_subjects_are_worked_off_in_pages(stage: Bench, count: int) -> None:
    fill(stage, count=count)
    fill(stage, key="theme", count=2)
    stage.source.page = 1000
    job = stage.file()
    stage.copies.records = {r for r in stage.copies.records if r[3].endswith("copy-0")}
    stage.run()
    assert stage.view(job).state is JobState.COMPLETED
    assert {r[2] for r in stage.source.records} == {"theme"}
    assert len(stage.copies.records) == 2
    erased = sum(r.erased for r in stage.ledger.receipts(job) if r.phase == "erase")
    assert erased == 2 * count


def test_neighbour_in_another_tenant_with_the_same_ids_is_untouched(stage: Bench) -> None:
    fill(stage)
    other = Scope(tenant="tenant-b", user=ANNA.user, project=ANNA.project)
    fill(stage, scope=other)
    stage.file()
    stage.run()
    assert {r[0] for r in stage.source.records | stage.copies.records} == {"tenant-b"}
    assert len(stage.copies.records) == 2


def test_verify_is_not_due_before_quiet_time_has_passed_since_the_last_erase(stage: Bench) -> None:
    hour = timedelta(hours=1)
    with_rules(stage, quiet_time=hour)
    fill(stage)
    stage.copies.before = fail_in(Phase.ERASE)
    job = stage.file()
    stage.run()
    assert [(r.adapter, r.phase) for r in stage.ledger.receipts(job) if r.phase == "erase"] == [("source", "erase")]
    assert stage.rows("SELECT id FROM deletion_units WHERE phase = 'verify'") == []
    stage.copies.before = lambda _phase, _orders: None
    stage.skip_pauses()
    earliest = database_now(stage)
    stage.run()
    latest = database_now(stage)
    waits = "SELECT next_attempt_at_us - 3600000000 FROM deletion_units WHERE phase = 'verify'"
    due = [row[0] for row in stage.rows(waits)]
    assert len(due) == 2
    assert all(earliest <= at <= latest for at in due)  # type: ignore[operator]
    let_time_pass(stage, hour - timedelta(minutes=1))
    assert stage.run() == 0
    assert stage.source.calls["verify"] == stage.copies.calls["verify"] == 0
    let_time_pass(stage, timedelta(minutes=1))
    stage.run()
    assert stage.source.calls["verify"] == stage.copies.calls["verify"] == 1
    assert stage.view(job).state is JobState.COMPLETED
