"""Draft jobs whose runner dies or is overtaken, at every line that changes state."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from adapters.drafts import Fault, JobLeased, JobView, LeaseLost, MemoryChanged, State, Step
from tests.integration.drafts_harness import A, Desk, Died, desk, dying, lone

__all__ = ["desk", "lone"]

REPORT = "Report\n\nlanguage: zh-CN"
STEPS_KEPT = {
    Fault.AFTER_CLAIM: 0,
    Fault.WITHIN_COLLECT: 0,
    Fault.AFTER_COLLECT: 1,
    Fault.WITHIN_DRAFT: 1,
    Fault.AFTER_DRAFT: 2,
    Fault.WITHIN_PUBLISH: 2,
    Fault.AFTER_PUBLISH: 3,
}


def test_every_place_is_tried() -> None:
    assert set(STEPS_KEPT) == set(Fault)


@pytest.mark.parametrize("at", Fault)
def test_whoever_takes_over_does_what_is_left_and_nothing_twice(lone: Desk, at: Fault) -> None:
    lone.tell("language", "zh-CN")
    lone.runtime.submit(A, "report-001")
    asked: list[str] = []

    def writer(given: str) -> str:
        asked.append(given)
        return f"Report\n\n{given}"

    with pytest.raises(Died):
        lone.runtime.run(A, "report-001", writer, fault=dying(at))
    kept = lone.runtime.inspect(A, "report-001").drafts
    assert len(kept) == STEPS_KEPT[at]
    if at is not Fault.AFTER_PUBLISH:
        with pytest.raises(JobLeased):
            lone.runtime.run(A, "report-001", writer)
    lone.at(2)
    told = lone.runtime.run(A, "report-001", writer)
    assert told.drafts[: len(kept)] == kept, "what was done is not done again"
    assert [draft.step for draft in told.drafts] == list(Step)
    assert told.report is not None
    assert told.report.text == REPORT
    assert (told.state, told.lease_until_us) == (State.PUBLISHED, None)
    # A text that was made and not kept is made again.
    assert len(asked) == (2 if at is Fault.WITHIN_DRAFT else 1)


@pytest.mark.parametrize("at", [fault for fault in Fault if fault is not Fault.AFTER_PUBLISH])
def test_revocation_after_a_death_at_any_place_stops_the_report(lone: Desk, at: Fault) -> None:
    lone.tell("language", "zh-CN")
    lone.runtime.submit(A, "report-001")
    lone.die("report-001", at)
    lone.memory.store.forget(A, "language")
    lone.at(2)
    asked: list[str] = []

    def writer(given: str) -> str:
        asked.append(given)
        return given

    with pytest.raises(MemoryChanged):
        lone.runtime.run(A, "report-001", writer)
    assert asked == [], "no writer is given what was revoked"
    assert len(lone.texts()) == STEPS_KEPT[at]
    assert lone.states() == [("report-001", "failed")]


@pytest.mark.parametrize("slow", ["in the draft", "after the draft"])
def test_runner_that_was_overtaken_keeps_nothing(desk: Desk, slow: str) -> None:
    desk.tell("language", "zh-CN")
    desk.runtime.submit(A, "report-001")

    def overtake() -> None:
        desk.at(2)
        told = desk.runtime.run(A, "report-001", lambda given: f"by the other: {given}")
        assert told.state is State.PUBLISHED

    def writer(given: str) -> str:
        if slow == "in the draft":
            overtake()
        return f"by the slow one: {given}"

    def wait(passed: Fault) -> None:
        if slow == "after the draft" and passed is Fault.AFTER_DRAFT:
            overtake()

    with pytest.raises(LeaseLost):
        desk.runtime.run(A, "report-001", writer, fault=wait)
    reports = desk.rows("SELECT text FROM drafts WHERE step = 'publish'")
    by = "other" if slow == "in the draft" else "slow one"
    assert reports == [(f"by the {by}: language: zh-CN",)]
    assert desk.rows("SELECT count(*) FROM drafts") == [(3,)]


def test_of_many_runners_at_once_one_does_the_work(desk: Desk) -> None:
    desk.tell("language", "zh-CN")
    desk.runtime.submit(A, "report-001")
    start, wrote = threading.Barrier(4), list[str]()

    def writer(given: str) -> str:
        wrote.append(given)
        return f"Report\n\n{given}"

    def run(_n: int) -> JobView | None:
        start.wait()
        try:
            return desk.runtime.run(A, "report-001", writer)
        except JobLeased:
            return None

    with ThreadPoolExecutor(4) as pool:
        told = [one for one in pool.map(run, range(4)) if one is not None]
    assert len(wrote) == 1
    assert told
    assert {one.report.text for one in told if one.report is not None} == {REPORT}
    assert desk.rows("SELECT count(*) FROM drafts") == [(3,)]


def test_of_many_that_submit_at_once_all_get_one_job(desk: Desk) -> None:
    desk.tell("language", "zh-CN")
    _ = desk.runtime
    with ThreadPoolExecutor(4) as pool:
        told = list(pool.map(lambda _n: desk.runtime.submit(A, "report-001"), range(8)))
    assert len(set(told)) == 1
    assert desk.rows("SELECT count(*) FROM draft_jobs") == [(1,)]
