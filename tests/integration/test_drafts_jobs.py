"""Deletion jobs over drafts, by the engine as a deployment opens it: with holds, deaths, expiry and a look at bytes."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from adapters.drafts import MemoryChanged, State
from orchestrator import Selector
from orchestrator.domain.codes import HoldReason
from orchestrator.service.expire import look
from orchestrator.service.hold import HoldRequest, place
from tests.integration.drafts_jobs_harness import (
    ANNA,
    BERTA,
    DONE,
    OTHER,
    PASSPORT,
    SECRET,
    SUBJECT,
    Office,
    deployed,
    office,
    single,
)
from tests.integration.jobs_harness import Died

__all__ = ["office", "single"]


@pytest.mark.req("R141")
@pytest.mark.parametrize(("selector", "gone"), [(PASSPORT, 5), (SUBJECT, 8)])
def test_request_takes_the_drafts_with_the_facts(office: Office, selector: Selector, gone: int) -> None:
    for scope in (ANNA, BERTA):
        office.draft(scope)
    stays = office.desk.texts(BERTA)
    job = office.request(selector)
    office.run()
    assert office.ended(job) == DONE
    assert office.erased(job)["drafts"] == gone
    assert not [text for text in office.desk.texts(ANNA) if SECRET in text]
    assert len(office.desk.texts(ANNA)) == 8 - gone
    assert office.desk.texts(BERTA) == stays
    told = office.desk.runtime.inspect(ANNA, "report-003")
    assert (told.state, told.drafts) == (State.FAILED, ())
    with pytest.raises(MemoryChanged):
        office.desk.runtime.run(ANNA, "report-003")
    assert office.desk.runtime.inspect(ANNA, "report-001").report is None


def test_process_that_dies_around_the_erase_takes_the_same_again(single: Office) -> None:
    single.draft(ANNA)
    job = single.request(PASSPORT)
    single.die_once("drafts.erase")
    with pytest.raises(Died):
        single.run()
    assert not [text for text in single.desk.texts() if SECRET in text], "the effect is there, the receipt is not"
    single.take_over()
    single.run()
    assert single.ended(job) == DONE
    receipts = single.control.ledger.receipts(job)
    ((erased, absent),) = [
        (r.erased, r.already_absent) for r in receipts if (r.adapter, r.phase) == ("drafts", "erase")
    ]
    assert (erased, absent) == (0, 5)


def test_drafts_of_a_held_fact_stay_until_it_is_free(single: Office) -> None:
    fact = single.desk.tell("passport", SECRET, ANNA)
    single.desk.tell("seat", OTHER, ANNA)
    single.desk.publish("report-001", ANNA, keys=["passport"])
    single.desk.publish("report-002", ANNA, keys=["seat"])
    hold = HoldRequest(
        tenant=ANNA.tenant, user=ANNA.user, items=(fact.id,), reason=HoldReason.LITIGATION, requested_by="counsel"
    )
    (placed,) = place(hold, single.control.acceptance)
    single.run()
    job = single.request(SUBJECT)
    single.run()
    assert single.view(job).held
    assert single.desk.texts() == [f"Report\n\npassport: {SECRET}"] * 2 + [f"passport: {SECRET}"]
    single.control.ledger.release(str(placed), by_ref="somebody")
    single.run()
    assert single.ended(job) == DONE
    assert single.desk.texts() == []


def test_what_expires_takes_its_drafts_along_by_a_job_of_the_clock(single: Office) -> None:
    end = single.clock.now() + timedelta(days=1)
    single.desk.tell("passport", SECRET, ANNA, expires=end.timestamp())
    single.desk.tell("seat", OTHER, ANNA)
    single.desk.publish("report-001", ANNA)
    single.desk.publish("report-002", ANNA, keys=["seat"])
    single.clock.at = end
    (job,) = look(single.memory, single.control.acceptance)
    single.run()
    assert single.ended(str(job)) == DONE
    assert single.desk.texts() == [f"Report\n\nseat: {OTHER}"] * 2 + [f"seat: {OTHER}"]


@pytest.mark.case(23)
def test_checkpoint_of_a_runner_that_slept_through_the_whole_job_is_refused(single: Office) -> None:
    single.desk.tell("passport", SECRET, ANNA)
    single.desk.runtime.submit(ANNA, "report-001")
    jobs: list[str] = []

    def sleeps(given: str) -> str:
        jobs.append(single.request(PASSPORT))
        single.run()
        assert single.ended(jobs[0]) == DONE
        return given

    with pytest.raises(MemoryChanged):
        single.desk.runtime.run(ANNA, "report-001", sleeps)
    assert single.desk.texts() == []
    assert single.desk.runtime.inspect(ANNA, "report-001").drafts == ()


@pytest.mark.parametrize("kept_as", ["fact", "draft"])
def test_words_that_somebody_else_keeps_are_no_residue(tmp_path: Path, kept_as: str) -> None:
    with deployed(tmp_path / "state", Office, require="physical") as one:
        one.draft(ANNA)
        one.desk.tell("seat", OTHER if kept_as == "fact" else "Aisle.", BERTA)
        if kept_as == "draft":
            one.desk.runtime.submit(BERTA, "report-001")
            one.desk.runtime.run(BERTA, "report-001", lambda given: f"{given} {OTHER}")
        job = one.request(SUBJECT)
        one.run()
        looks = {r.adapter: (r.outcome, r.residuals) for r in one.control.ledger.receipts(job) if r.phase == "verify"}
        assert looks["drafts"] == looks["memory"] == ("absent", ("file_system", "shared_text"))


def test_nothing_of_a_forgotten_fact_is_left_in_the_raw_file(tmp_path: Path) -> None:
    with deployed(tmp_path / "state", Office, require="physical") as one:
        one.draft(ANNA)
        one.desk.tell("seat", "Anywhere but in the middle, please.", BERTA)
        one.desk.publish("report-001", BERTA)
        assert one.desk.drafts.file_group == one.memory.file_group, "one scrub at a time serves both"
        assert one.hits(SECRET) > 3, "the positive control: the fact, its checkpoints and a report"
        job = one.request(SUBJECT)
        one.run()
        assert one.ended(job) == DONE
        looks = {r.adapter: (r.outcome, r.reach) for r in one.control.ledger.receipts(job) if r.phase == "verify"}
        assert (looks["drafts"], looks["memory"]) == (("absent", "physical"),) * 2
        assert one.hits(SECRET) == one.hits(OTHER) == 0
        assert one.hits("Anywhere but in the middle") > 2
