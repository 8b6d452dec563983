"""What a report may say of a job: never more than its receipts, and all that is outstanding."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from orchestrator.domain.codes import ErrorCode, Residual, WaiverReason
from orchestrator.domain.contract import Reach
from orchestrator.domain.job import WindowView
from orchestrator.domain.states import JobState
from orchestrator.domain.unit import Phase
from orchestrator.service.outstanding import Why
from orchestrator.service.report import MODEL_WEIGHTS, Look, Standing, WaiverView
from tests.unit.report_harness import AT, END, JOB, absent, done, erased, present, receipt, store, told, undone


@pytest.mark.req("R131")
def test_four_stores_are_done_and_the_backup_waits_until_its_date() -> None:
    window = WindowView(adapter="backup", copy="offsite", until=END, closed_at=None)
    scheduled = receipt("backup", "erase", "scheduled", expected=2, erased=1, scheduled=1, remaining=1)
    receipts = (*done("memory", "vector", "cache", "drafts"), scheduled, absent("backup"))
    said = told(receipts, job=replace(JOB, windows=(window,)))
    assert said.headline == "4 done, backup until 2026-11-27"
    assert [s.standing for s in said.stores] == [*[Standing.DONE] * 4, Standing.SCHEDULED]
    backup = store(said, "backup")
    assert (backup.erased, backup.scheduled, said.outstanding) == (1, 1, ())
    assert [(w.copy, w.until, w.overdue) for w in said.windows] == [("offsite", END, False)]
    assert [w.overdue for w in told(receipts, job=replace(JOB, windows=(window,)), at=END).windows] == [False]
    late = told(receipts, job=replace(JOB, windows=(window,)), at=END + timedelta(seconds=1))
    assert (late.headline, late.windows[0].overdue) == ("4 done, backup until 2026-11-27 (overdue)", True)
    gone = told(receipts, job=replace(JOB, windows=(replace(window, closed_at=END),)), at=END + timedelta(days=1))
    assert (gone.headline, gone.windows[0].overdue) == ("5 done", False)


def test_store_is_done_only_by_a_look_of_the_last_round_that_saw_nothing() -> None:
    running = replace(JOB, state=JobState.DERIVED_CLEANUP, verified_at=None)
    looks = {
        "not looked at": (erased("cache", 1),),
        "something seen": (erased("cache", 1), present("cache", 1)),
        "one page of two": (erased("cache", 1), absent("cache"), present("cache", 1, page=1)),
    }
    for receipts in looks.values():
        said = told(receipts, job=running, enabled=("cache",))
        assert (store(said, "cache").standing, said.headline) == (Standing.OUTSTANDING, "0 done, 1 outstanding (cache)")
    before = told(done("cache"), job=replace(running, round=2), enabled=("cache",))
    assert (store(before, "cache").standing, store(before, "cache").last_look) == (Standing.OUTSTANDING, None)
    still = told(done("cache"), job=running, undone=(undone("cache", Phase.VERIFY),), enabled=("cache",))
    assert store(still, "cache").standing is Standing.OUTSTANDING
    other = told(done("cache"), job=running, undone=(undone("vector", Phase.VERIFY),), enabled=("cache",))
    assert store(other, "cache").standing is Standing.DONE


def test_window_that_is_asked_for_again_leaves_all_else_done() -> None:
    window = WindowView(adapter="backup", copy="offsite", until=END, closed_at=None)
    asked = undone("backup", Phase.CLOSE, last_error=ErrorCode.STILL_PRESENT)
    said = told(done("backup"), job=replace(JOB, windows=(window,)), undone=(asked,), enabled=("backup",))
    assert store(said, "backup").standing is Standing.SCHEDULED
    (left,) = said.outstanding
    assert (left.why, left.next_attempt_at, left.to_do) == (
        Why.RETRIED,
        AT,
        f"Its date is over: delete the copy, and then: expunge retry {JOB.id}",
    )


def test_store_that_was_waived_or_left_is_never_called_done() -> None:
    left = undone("cache", Phase.ERASE, due_at=None)
    said = told((receipt("cache", "erase", "nothing_found"),), undone=(left,), enabled=("cache", "vector"))
    assert [s.standing for s in said.stores] == [Standing.LEFT_UNDONE, Standing.NOT_ASKED]
    assert (said.headline, said.not_covered.not_asked) == ("0 done, 1 left undone (cache)", ("vector",))
    assert (said.outstanding[0].why, said.outstanding[0].next_attempt_at) == (Why.LEFT_UNDONE, None)
    waiver = WaiverView(adapter="cache", reason=WaiverReason.STORE_GONE, granted_by_ref="a" * 64, at=AT)
    passed = replace(JOB, waived=("cache",))
    said = told(job=passed, undone=(left,), waivers=(waiver,), enabled=("cache",))
    assert (store(said, "cache").standing, said.waived) == (Standing.WAIVED, (waiver,))
    window = WindowView(adapter="cache", copy="c", until=END, closed_at=None)
    assert store(told(done("cache"), job=replace(passed, windows=(window,))), "cache").standing is Standing.WAIVED
    assert store(told(done("cache"), job=passed, waivers=(waiver,)), "cache").standing is Standing.DONE


def test_counts_are_of_all_pages_and_rounds_and_nothing_is_counted_twice() -> None:
    first = (erased("cache", 3), erased("cache", 1, page=1, expected=2, already_absent=1), present("cache", 1))
    extra = (erased("cache", 1, round=2, expected=6, extra=1, erased=2, already_absent=5), absent("cache", round=2))
    said = store(told((*first, *extra), job=replace(JOB, round=2)), "cache")
    # Five of the second round's absent ones: four the first round erased, one was absent before.
    assert (said.erased, said.already_absent, said.extra, said.nothing_found) == (6, 1, 1, False)
    again = erased("cache", 1, round=2, expected=6, erased=4, already_absent=2)
    assert store(told((*first, again), job=replace(JOB, round=2)), "cache").already_absent == 0
    arrived = (erased("cache", 1, expected=1, extra=1, erased=2), erased("cache", 0, round=2, expected=3, erased=1))
    late = replace(arrived[1], already_absent=2)
    assert store(told((arrived[0], late), job=replace(JOB, round=2)), "cache").already_absent == 1


def test_nothing_found_is_said_of_a_store_whose_every_receipt_says_so() -> None:
    nothing = receipt("cache", "erase", "nothing_found", expected=2, already_absent=2)
    assert store(told((nothing, absent("cache"))), "cache").nothing_found
    assert not store(told((nothing, erased("cache", 1, page=1))), "cache").nothing_found
    assert not store(told(), "cache").nothing_found


def test_look_reaches_as_far_as_its_weakest_page() -> None:
    reaches: dict[tuple[str | None, ...], Reach | None] = {
        ("physical", "physical"): Reach.PHYSICAL,
        ("physical", "logical"): Reach.LOGICAL,
        ("logical",): Reach.LOGICAL,
        ("physical", None): None,
    }
    for pages, reach in reaches.items():
        looks = tuple(absent("cache", page=n, reach=r, finished_at=AT + timedelta(n)) for n, r in enumerate(pages))
        said = told(looks, enabled=("cache",))
        assert store(said, "cache").last_look == Look(remaining=0, reach=reach, at=AT + timedelta(len(pages) - 1))
        assert said.not_covered.logical_only == (() if reach is Reach.PHYSICAL else ("cache",))


def test_residuals_of_erases_stay_and_those_of_a_look_are_of_the_last() -> None:
    receipts = (
        receipt("memory", "revoke", "revoked", residuals=("not_probeable",)),
        erased("memory", 1, residuals=("wal_archive", "dead_tuples")),
        present("memory", 1, residuals=("not_scannable",)),
        erased("memory", 1, round=2),
        absent("memory", round=2, residuals=("shared_text",)),
    )
    said = store(told(receipts, job=replace(JOB, round=2)), "memory")
    assert said.residuals == (
        Residual.DEAD_TUPLES,
        Residual.NOT_PROBEABLE,
        Residual.SHARED_TEXT,
        Residual.WAL_ARCHIVE,
    )


def test_source_tells_how_much_it_revoked_once_it_has_answered() -> None:
    revokes = (receipt("memory", "revoke", "revoked"), receipt("memory", "revoke", "revoked", finished_at=END, page=1))
    said = told(revokes, revoked={"memory": 7})
    assert (store(said, "memory").revoked, store(said, "memory").revoked_at) == (7, END)
    assert (store(said, "cache").revoked, store(said, "cache").revoked_at) == (None, None)
    nothing = told((receipt("memory", "revoke", "nothing_found"),))
    assert store(nothing, "memory").revoked == 0


@pytest.mark.parametrize("state", JobState)
def test_every_state_has_a_sentence_and_a_store_that_did_nothing_is_done_in_none(state: JobState) -> None:
    said = told(job=replace(JOB, state=state))
    assert said.says.endswith(".")
    assert said.headline.startswith("0 done")
    ended = state in {JobState.VERIFIED, JobState.COMPLETED, JobState.CANCELLED}
    assert {s.standing for s in said.stores} == {Standing.NOT_ASKED if ended else Standing.OUTSTANDING}


def test_job_is_late_when_it_is_not_verified_by_its_deadline() -> None:
    day, open_ = timedelta(days=1), replace(JOB, state=JobState.REQUESTED, verified_at=None)
    assert not told(job=open_, at=JOB.due_at).late
    assert told(job=open_, at=JOB.due_at + day).late
    assert not told(at=JOB.due_at + day).late, "it was verified in time"
    assert told(job=replace(JOB, verified_at=JOB.due_at + day)).late
    assert not told(job=replace(open_, state=JobState.CANCELLED), at=JOB.due_at + day).late


def test_what_is_not_covered_stands_in_every_report() -> None:
    said = told(done("memory", "retired"), enabled=("memory",), no_lineage={"cache": 2}).not_covered
    assert (said.no_lineage, said.not_enabled) == ({"cache": 2}, ("archive", "papers"))
    assert (said.told, said.model_weights) == (("paper files",), MODEL_WEIGHTS)
    assert [s.name for s in told(done("retired"), enabled=("memory",)).stores] == ["memory", "retired"]
