"""The engine over a real control database: order, receipts, retries, rescue, idempotency."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from structlog.testing import capture_logs

from orchestrator import BadAnswer, Erased, EraseOrder, InvalidRequest, Permanent, Scope, Seen, StoreUnreachable
from orchestrator.domain.errors import IdempotencyConflict, JobNotFound
from orchestrator.domain.job import Purpose, Result
from orchestrator.domain.states import JobState
from orchestrator.domain.unit import Phase
from orchestrator.service.drain import drain
from orchestrator.service.run_batch import run_batch
from tests.fakes import ANNA, Bench, bench, fill, together


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Bench]:
    made = bench(tmp_path)
    yield made
    made.ledger.engine.dispose()


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


@pytest.mark.req("R122")
def test_same_idempotency_key_files_one_job(stage: Bench) -> None:
    first = stage.file(idempotency_key="ticket-1")
    assert stage.file(idempotency_key="ticket-1") == first
    assert len(stage.rows("SELECT id FROM deletion_jobs")) == 1
    with pytest.raises(IdempotencyConflict):
        stage.file("theme", idempotency_key="ticket-1")
    other = Scope(tenant="tenant-b", user="anna", project="trips")
    assert stage.file(idempotency_key="ticket-1", scope=other) != first


@pytest.mark.req("R126")
def test_failing_adapter_is_retried_and_others_keep_their_work(stage: Bench) -> None:
    fill(stage)
    failures = iter([StoreUnreachable(), StoreUnreachable()])

    def fail(phase: str, _orders: Sequence[EraseOrder]) -> None:
        if phase == "erase" and (error := next(failures, None)):
            raise error

    stage.copies.before = fail
    job = stage.file()
    for _ in range(3):
        stage.run()
        stage.skip_pauses()
    assert stage.view(job).state is JobState.COMPLETED
    assert stage.source.calls["erase"] == 1
    assert stage.rows("SELECT error_code, attempt FROM unit_attempts ORDER BY attempt") == [
        ("store_unreachable", 1),
        ("store_unreachable", 2),
    ]
    erased = next(r for r in stage.ledger.receipts(job) if (r.adapter, r.phase) == ("copies", "erase"))
    assert (erased.attempt, erased.erased) == (3, 2)


def test_backoff_is_kept_in_the_database_and_grows(stage: Bench) -> None:
    fill(stage)

    def fail(phase: str, _orders: Sequence[EraseOrder]) -> None:
        if phase == "erase":
            raise StoreUnreachable

    stage.copies.before = fail
    job = stage.file()
    pauses = []
    for _ in range(5):
        stage.run()
        pauses += stage.rows(
            "SELECT (u.next_attempt_at_us - a.at_us) / 1000 FROM deletion_units u JOIN unit_attempts a "
            "ON a.unit_id = u.id AND a.fence = u.fence WHERE u.status = 'pending' AND u.last_error_code IS NOT NULL"
        )
        stage.skip_pauses()
    assert [1000 * 2**n <= p[0] <= 2000 * 2**n for n, p in enumerate(pauses)] == [True] * 4
    view = stage.view(job)
    assert view.parked == (("copies", "erase", "attempts_exhausted"),)
    assert view.state is JobState.DERIVED_CLEANUP


@pytest.mark.req("R127")
def test_same_unit_delivered_twice_gives_one_receipt(stage: Bench) -> None:
    fill(stage)
    job = stage.file()
    together(*[stage.run] * 3)
    stage.run()
    receipts = [(r.adapter, r.phase, r.erased) for r in stage.ledger.receipts(job)]
    assert sorted(receipts) == [
        ("copies", "erase", 2),
        ("copies", "verify", 0),
        ("source", "erase", 1),
        ("source", "revoke", 0),
        ("source", "verify", 0),
    ]


@pytest.mark.req("R128")
def test_crash_between_erase_and_receipt_heals(stage: Bench) -> None:
    fill(stage)
    job = stage.file()
    while stage.view(job).state is not JobState.DERIVED_CLEANUP:
        run_batch(stage.engine, *stage.ledger.due(["source", "copies"])[0])
    (unit,) = stage.take("copies", Phase.ERASE, "dead")
    stage.copies.erase([unit.order])  # the effect; its worker dies before the commit
    stage.end_leases()
    stage.ledger.sweep()
    stage.run()
    erased = next(r for r in stage.ledger.receipts(job) if (r.adapter, r.phase) == ("copies", "erase"))
    assert (erased.outcome, erased.attempt, erased.expected, erased.already_absent) == ("nothing_found", 2, 2, 2)
    assert stage.view(job).state is JobState.COMPLETED


def test_commit_of_a_claim_that_was_taken_over_is_dropped(stage: Bench) -> None:
    fill(stage)
    stage.file()
    taken: list[int] = []

    def steal(phase: str, orders: Sequence[EraseOrder]) -> None:
        if phase == "erase" and not taken:
            taken.append(orders[0].fence)
            stage.end_leases()
            stage.ledger.sweep()

    stage.copies.before = steal
    with capture_logs() as logs:
        stage.run()
    assert [log["event"] for log in logs].count("answer.dropped") == 1
    receipts = stage.rows("SELECT fence FROM deletion_receipts WHERE adapter='copies' AND phase='erase'")
    assert receipts == [(taken[0] + 1,)]


@pytest.mark.req("R130")
def test_lying_store_is_caught_and_opens_new_rounds_until_it_parks(
    stage: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(stage)
    honest = stage.copies.erase

    def lie(orders: Sequence[EraseOrder]) -> list[Erased]:
        return [Erased(erased=len(o.targets)) for o in orders]

    monkeypatch.setattr(stage.copies, "erase", lie)
    job = stage.file()
    stage.run()
    view = stage.view(job)
    assert (view.state, view.round) == (JobState.DERIVED_CLEANUP, 5)
    assert view.parked == (("copies", "verify", "attempts_exhausted"),)
    present = [r for r in stage.ledger.receipts(job) if r.outcome == "present"]
    assert [r.remaining for r in present] == [2] * 4
    monkeypatch.setattr(stage.copies, "erase", honest)
    other = stage.file()
    stage.run()
    assert stage.view(other).state is JobState.COMPLETED


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


@pytest.mark.req("R134")
def test_no_row_and_no_log_holds_what_an_adapter_error_says(stage: Bench, tmp_path: Path) -> None:
    fill(stage)

    def fail(phase: str, _orders: Sequence[EraseOrder]) -> None:
        if phase == "erase":
            message = "duplicate key value P1234567"
            raise RuntimeError(message)

    stage.copies.before = fail
    stage.file()
    with capture_logs() as logs:
        stage.run()
    assert "P1234567" not in repr(logs)
    assert stage.rows("SELECT error_code FROM unit_attempts") == [("unknown",)]
    for path in tmp_path.iterdir():
        assert b"P1234567" not in path.read_bytes()


@pytest.mark.req("R135")
def test_reason_is_a_code_and_reference_matches_its_pattern(stage: Bench) -> None:
    job = stage.file(reference="trip-planning/turn-20")
    assert stage.view(job).reason == "user_request"
    for bad in ("forget P1234567", "", "x" * 129, "a\n", "case-anna-1"):
        with pytest.raises(InvalidRequest):
            stage.file(reference=bad)
    assert len(stage.rows("SELECT id FROM deletion_jobs")) == 1


@pytest.mark.req("R136")
def test_two_workers_claim_a_unit_once(stage: Bench) -> None:
    stage.file()
    won: list[int] = []
    together(
        *[lambda n=n: won.append(len(stage.ledger.claim("source", Phase.REVOKE, owner=f"w{n}", limit=9))) for n in "ab"]
    )
    assert sorted(won) == [0, 1]


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


@pytest.mark.req("R138")
def test_foreign_and_missing_jobs_answer_alike(stage: Bench) -> None:
    job = stage.file()
    errors = []
    for wanted, tenant in ((job, "tenant-b"), ("no-such-job", "tenant-a")):
        with pytest.raises(JobNotFound) as caught:
            stage.ledger.job(wanted, tenant=tenant)
        with pytest.raises(JobNotFound):
            stage.ledger.receipts(wanted, tenant=tenant)
        errors.append((str(caught.value), caught.value.facts))
    assert errors[0] == errors[1]
    assert stage.ledger.jobs(tenant="tenant-b", state=None, after=None, limit=9) == []


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


def test_answers_that_do_not_add_up_are_refused(stage: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(stage)
    monkeypatch.setattr(stage.copies, "erase", lambda orders: [Erased(erased=99) for _ in orders])
    job = stage.file()
    stage.run()
    assert stage.view(job).parked == (("copies", "erase", "permanent_error"),)
    assert stage.rows("SELECT error_code FROM unit_attempts") == [(BadAnswer.code.value,)]


@pytest.mark.parametrize("answers", [[], [Seen(), Seen()], [Erased()], ["yes"]])
def test_answers_that_do_not_fit_their_orders_are_refused(
    stage: Bench, monkeypatch: pytest.MonkeyPatch, answers: list[object]
) -> None:
    fill(stage)
    monkeypatch.setattr(stage.copies, "verify", lambda _orders: answers)
    job = stage.file()
    stage.run()
    assert stage.view(job).parked == (("copies", "verify", "permanent_error"),)


def test_one_bad_order_of_a_batch_parks_alone(stage: Bench) -> None:
    users = [Scope(tenant="tenant-a", user=f"user-{n}", project="trips") for n in range(10)]
    for scope in users:
        fill(stage, scope=scope)

    def fail(phase: str, orders: Sequence[EraseOrder]) -> None:
        if phase == "erase" and any(o.scope.user == "user-3" for o in orders):
            raise Permanent if len(orders) == 1 else StoreUnreachable

    stage.copies.before = fail
    jobs = [stage.file(scope=scope) for scope in users]
    for _ in range(3):
        stage.run()
        stage.skip_pauses()
    states = [stage.view(job).state for job in jobs]
    assert states == [JobState.COMPLETED] * 3 + [JobState.DERIVED_CLEANUP] + [JobState.COMPLETED] * 6


def test_task_that_kills_its_own_process_is_parked(stage: Bench) -> None:
    fill(stage)
    job = stage.file()
    for _ in range(5):
        assert stage.ledger.claim("source", Phase.REVOKE, owner="dies", limit=9)
        stage.end_leases()
        stage.ledger.sweep()
    assert stage.view(job).parked == (("source", "revoke", "attempts_exhausted"),)
    assert stage.ledger.claim("source", Phase.REVOKE, owner="dies", limit=9) == []


def test_no_more_than_the_cap_of_batches_runs_for_an_adapter(stage: Bench) -> None:
    for n in range(4):
        stage.file(f"key-{n}")
    claimed = [len(stage.ledger.claim("source", Phase.REVOKE, owner=f"w{n}", limit=1)) for n in range(3)]
    assert claimed == [1, 1, 0]


def test_neighbour_in_another_tenant_with_the_same_ids_is_untouched(stage: Bench) -> None:
    fill(stage)
    other = Scope(tenant="tenant-b", user=ANNA.user, project=ANNA.project)
    fill(stage, scope=other)
    stage.file()
    stage.run()
    assert {r[0] for r in stage.source.records | stage.copies.records} == {"tenant-b"}
    assert len(stage.copies.records) == 2


def test_lease_is_renewed_while_a_call_runs(tmp_path: Path) -> None:
    made = bench(tmp_path, lease=0.15)
    fill(made)
    over = threading.Event()

    def slow(phase: str, _orders: Sequence[EraseOrder]) -> None:
        if phase == "revoke":
            over.wait(0.6)
            made.ledger.sweep()

    made.source.before = slow
    job = made.file()
    made.run()
    assert made.view(job).attempts == 1
    assert made.view(job).state is JobState.COMPLETED
    made.ledger.engine.dispose()


def test_call_that_hangs_for_ever_is_left_behind_at_its_deadline(stage: Bench) -> None:
    fill(stage)
    over = threading.Event()

    def hang(phase: str, _orders: Sequence[EraseOrder]) -> None:
        if phase == "revoke" and stage.source.calls["revoke"] == 0:
            stage.source.calls["revoke"] += 1
            stage.clock.at += timedelta(hours=1)
            over.wait(60)

    stage.source.before = hang
    job = stage.file()
    stage.engine = replace(stage.engine, budgets=replace(stage.engine.budgets, lease=timedelta(seconds=0.15)))
    stage.run()
    assert stage.rows("SELECT error_code, attempt FROM unit_attempts") == [("deadline_passed", 1)]
    stage.skip_pauses()
    stage.run()
    over.set()
    assert stage.view(job).state is JobState.COMPLETED


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


def test_stale_commit_is_dropped_while_another_worker_holds_the_unit(stage: Bench) -> None:
    fill(stage)
    job = stage.file()
    others: list[int] = []

    def take_over(phase: str, _orders: Sequence[EraseOrder]) -> None:
        if phase == "erase" and not others:
            stage.end_leases()
            stage.ledger.sweep()
            (unit,) = stage.take("copies", Phase.ERASE, "another")
            others.append(unit.order.fence)

    stage.copies.before = take_over
    with capture_logs() as logs:
        stage.run()
    assert [log["event"] for log in logs].count("answer.dropped") == 1
    assert [r for r in stage.ledger.receipts(job) if (r.adapter, r.phase) == ("copies", "erase")] == []
    held = stage.rows("SELECT lease_owner, fence FROM deletion_units WHERE status = 'running'")
    assert held == [("another", others[0])]
