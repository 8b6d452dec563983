"""Draft jobs run while their memory is as it was; whatever changes it ends them for good."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from celery import Celery

from adapters.drafts import Fault, JobLeased, MemoryChanged, State, Step
from orchestrator import StoreLocked, Transient
from tests.integration.drafts_harness import (
    ALL,
    EXACTLY,
    FOREIGN,
    LANGUAGE,
    NEIGHBOUR,
    A,
    B,
    Desk,
    Died,
    desk,
    ends,
    lone,
)

__all__ = ["desk", "lone"]


@pytest.mark.req("R40")
def test_without_facts_there_is_no_expiry_and_the_revision_alone_is_checked(desk: Desk) -> None:
    told = desk.runtime.submit(A, "report-001")
    assert (told.memory_rev, told.memory_expires, told.used) == (0, None, ())
    desk.at(10**9)
    assert desk.runtime.run(A, "report-001").state is State.PUBLISHED
    desk.runtime.submit(A, "report-002")
    desk.tell("language", "en")
    ends(desk, "report-002")


@pytest.mark.req("R41")
@pytest.mark.parametrize("number", range(1, 9))
def test_revocation_before_any_transaction_of_a_run_is_seen_by_that_one(desk: Desk, number: int) -> None:
    """Seven transactions write: the claim, and of each step its beginning and its end. The eighth one tells."""
    desk.tell("language", "zh-CN")
    desk.runtime.submit(A, "report-001")
    begun, before = 0, list[int]()

    def connects(_connection: sa.Connection) -> None:
        nonlocal begun
        begun += 1
        if begun == number:
            before.append(len(desk.texts()))
            assert desk.memory.store.forget(A, "language").versions == 1

    sa.event.listen(desk.drafts._engine, "engine_connect", connects)
    if number == 8:
        assert desk.runtime.run(A, "report-001").state is State.PUBLISHED
        return
    with pytest.raises(MemoryChanged, match=EXACTLY):
        desk.runtime.run(A, "report-001")
    assert [len(desk.texts())] == before, "nothing was kept after the revocation"
    assert desk.states() == [("report-001", "failed")]


@pytest.mark.req("R42")
@pytest.mark.req("R49")
def test_failure_is_final_and_a_repeat_does_nothing(lone: Desk) -> None:
    lone.tell("language", "zh-CN")
    lone.runtime.submit(A, "report-001")
    lone.memory.store.forget(A, "language")
    ends(lone)
    calls: list[str] = []

    def writer(given: str) -> str:
        calls.append(given)
        return given

    for _ in range(3):
        with pytest.raises(MemoryChanged, match=EXACTLY):
            lone.runtime.run(A, "report-001", writer)
    assert calls == []
    assert lone.texts() == []


@pytest.mark.req("R49")
def test_celery_runs_a_job_once_whose_memory_has_changed(lone: Desk) -> None:
    app: Any = Celery("drafts", broker="memory://", set_as_current=False)  # type: ignore[no-untyped-call]  # as ever
    ran: list[str] = []

    def run_job(job: str) -> None:
        ran.append(job)
        if job == "locked":
            raise StoreLocked
        lone.runtime.run(A, job)

    run = app.task(name="run", shared=False, autoretry_for=(Transient,), max_retries=3, default_retry_delay=0)(run_job)

    lone.tell("language", "zh-CN")
    lone.runtime.submit(A, "report-001")
    lone.memory.store.forget(A, "language")
    assert str(run.apply(["report-001"]).result) == "memory_changed_or_expired: submit a new job id"
    assert ran == ["report-001"]
    assert isinstance(run.apply(["locked"]).result, StoreLocked)
    assert ran.count("locked") == 4, "what may work later is tried again"


@pytest.mark.req("R43")
@pytest.mark.parametrize("died", [None, Fault.AFTER_COLLECT, Fault.AFTER_DRAFT])
def test_expiry_alone_ends_a_job_at_equality(lone: Desk, died: Fault | None) -> None:
    lone.tell("language", "en", expires=100)
    for job in ("report-001", "report-002"):
        lone.runtime.submit(A, job)
        if died is not None:
            lone.die(job, died)
    lone.at(99)
    assert lone.runtime.run(A, "report-001").state is State.PUBLISHED
    lone.at(100)
    assert lone.memory.store.revision(A) == 1
    ends(lone, "report-002")


@pytest.mark.req("R44")
def test_recovery_that_reads_no_memory_is_checked_all_the_same(lone: Desk) -> None:
    lone.tell("language", "zh-CN")
    lone.runtime.submit(A, "report-001")
    lone.die("report-001", Fault.AFTER_COLLECT)
    lone.memory.store.forget(A, "language")
    lone.at(2)
    said: list[str] = []

    def note(_c: Any, _cursor: Any, statement: str, *_more: Any) -> None:  # noqa: ANN401 - SQLAlchemy's own
        said.append(statement)

    sa.event.listen(lone.drafts._engine, "before_cursor_execute", note)
    with pytest.raises(MemoryChanged):
        lone.runtime.run(A, "report-001")
    assert any("fact_revisions" in statement for statement in said)
    assert not [statement for statement in said if "JOIN facts" in statement or "FROM facts" in statement]


@pytest.mark.req("R45")
@pytest.mark.req("R48")
def test_revocation_after_the_draft_stops_the_report_and_leaves_the_checkpoint_readable(desk: Desk) -> None:
    desk.tell("language", "zh-CN")
    desk.runtime.submit(A, "report-001")
    desk.die("report-001", Fault.AFTER_DRAFT)
    desk.memory.store.forget(A, "language")
    desk.at(2)
    ends(desk)
    drafts = desk.runtime.inspect(A, "report-001").drafts
    assert [(draft.step, "zh-CN" in draft.text) for draft in drafts] == [(Step.COLLECT, True), (Step.DRAFT, True)]


@pytest.mark.req("R46")
def test_new_job_works_without_what_was_revoked(lone: Desk) -> None:
    lone.tell("language", "zh-CN")
    lone.tell("theme", "dark")
    lone.runtime.submit(A, "report-001")
    lone.memory.store.forget(A, "language")
    assert lone.publish("report-002") == "Report\n\ntheme: dark"
    ends(lone)


@pytest.mark.req("R50")
def test_lease_keeps_a_second_runner_out_until_it_ends(lone: Desk) -> None:
    lone.tell("language", "zh-CN")
    lone.runtime.submit(A, "report-001")
    lone.die("report-001", Fault.AFTER_CLAIM)
    lone.at(1.9)
    with pytest.raises(JobLeased):
        lone.runtime.run(A, "report-001")
    lone.at(2.0)
    assert lone.runtime.run(A, "report-001").state is State.PUBLISHED


def test_lease_is_as_long_as_its_runner_says_and_runs_from_its_last_step(lone: Desk) -> None:
    lone.runtime.submit(A, "report-001")

    def slow(given: str) -> str:
        lone.at(30)
        return f"so: {given}"

    def die(passed: Fault) -> None:
        if passed is Fault.AFTER_DRAFT:
            raise RuntimeError

    with pytest.raises(RuntimeError):
        lone.runtime.run(A, "report-001", slow, lease_seconds=60, fault=die)
    assert lone.runtime.inspect(A, "report-001").lease_until_us == 90_000_000
    lone.at(90)
    assert lone.runtime.run(A, "report-001").report is not None


def test_lease_runs_anew_when_a_step_is_begun(lone: Desk) -> None:
    lone.runtime.submit(A, "report-001")

    def slow(passed: Fault) -> None:
        if passed is Fault.AFTER_CLAIM:
            lone.at(1.5)
        if passed is Fault.WITHIN_COLLECT:
            raise Died

    with pytest.raises(Died):
        lone.runtime.run(A, "report-001", fault=slow)
    told = lone.runtime.inspect(A, "report-001")
    assert (told.drafts, told.lease_until_us) == ((), 3_500_000)


@pytest.mark.req("R51")
def test_any_change_of_the_scope_ends_a_job_and_one_elsewhere_does_not(desk: Desk) -> None:
    for scope in (A, B, NEIGHBOUR, FOREIGN):
        desk.tell("language", "zh-CN", scope)
    for job in ("report-001", "report-002"):
        desk.runtime.submit(A, job, keys=["language"])
    desk.memory.store.register_source(ALL, "of-nobody")
    desk.memory.store.put(ALL, "theme", "light", "of-nobody")
    for scope in (B, NEIGHBOUR, FOREIGN):
        desk.tell("theme", "dark", scope, source="turn-2")
        desk.memory.store.forget(scope, "language")
    assert desk.runtime.run(A, "report-001").state is State.PUBLISHED
    desk.tell("theme", "dark", source="turn-2")
    ends(desk, "report-002")


@pytest.mark.req("R52")
def test_correction_ends_a_job_as_a_revocation_does(lone: Desk) -> None:
    lone.tell("language", "en")
    lone.runtime.submit(A, "report-001")
    lone.tell("language", "zh-CN", source="turn-2")
    ends(lone)


def test_published_job_is_told_as_it_stands_and_published_once(lone: Desk) -> None:
    lone.tell("language", "zh-CN")
    lone.runtime.submit(A, "report-001")
    first = lone.runtime.run(A, "report-001")
    lone.memory.store.forget(A, "language")
    assert lone.runtime.run(A, "report-001") == first
    assert lone.rows("SELECT count(*) FROM drafts WHERE step = 'publish'") == [(1,)]


def test_record_that_is_gone_ends_a_job_whatever_the_revision_says(lone: Desk) -> None:
    fact = lone.tell("language", "zh-CN")
    lone.runtime.submit(A, "report-001")
    lone.die("report-001", Fault.AFTER_COLLECT)
    lone.execute(f"UPDATE facts SET state = 'revoked' WHERE fact_id = '{fact.id}'")  # noqa: S608 - an id of ours
    lone.at(2)
    ends(lone)


def test_job_that_a_deletion_has_stopped_is_lost_to_its_runner(desk: Desk) -> None:
    desk.tell("language", "zh-CN")
    desk.runtime.submit(A, "report-001")

    def forgets_meanwhile(given: str) -> str:
        order = desk.revoke(desk.order(LANGUAGE))
        assert desk.clean_up(order)[0].erased == 1
        return given

    with pytest.raises(MemoryChanged):
        desk.runtime.run(A, "report-001", forgets_meanwhile)
    assert desk.texts() == []
