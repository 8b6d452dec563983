"""Cancelling lets a job or an action go no further, and claims nothing about what was delivered."""

from __future__ import annotations

import pytest

from adapters.drafts import (
    Answer,
    ApprovalVoid,
    Cancelled,
    Fault,
    JobCancelled,
    JobUnknown,
    Place,
    State,
)
from tests.integration.approvals_harness import MAIL, Office, dying_at, office, small
from tests.integration.drafts_harness import ALL, FOREIGN, NEIGHBOUR, A, B, Died

__all__ = ["office", "small"]

OUTSIDE = ("external_copy",)


@pytest.mark.req("R61")
def test_action_that_waits_is_cancelled_and_one_that_was_sent_is_outstanding(office: Office) -> None:
    office.ask()
    for _ in range(2):
        assert office.approvals.cancel(A, MAIL) == Cancelled(state="void", outstanding=())
    with pytest.raises(ApprovalVoid):
        office.approvals.decide(A, MAIL, Answer.APPROVE)
    office.approve(NEIGHBOUR)
    office.gateway.dispatch(NEIGHBOUR, MAIL, office.revision(NEIGHBOUR))
    for _ in range(2):
        assert office.approvals.cancel(NEIGHBOUR, MAIL) == Cancelled(state="dispatched", outstanding=OUTSIDE)
    assert len(office.payloads(A) + office.payloads(NEIGHBOUR)) == 2, "cancelling erases nothing"
    assert office.gateway.dispatch(NEIGHBOUR, MAIL, 0).receipt == "msg_1"


@pytest.mark.req("R61")
@pytest.mark.parametrize("at", [Place.AFTER_MARK, Place.AFTER_CALL])
def test_what_was_perhaps_sent_is_outstanding_without_a_receipt(small: Office, at: Place) -> None:
    small.approve()
    with pytest.raises(Died):
        small.gateway.dispatch(A, MAIL, small.revision(), fault=dying_at(at))
    assert small.approvals.cancel(A, MAIL) == Cancelled(state="dispatched", outstanding=OUTSIDE)


@pytest.mark.req("R61")
def test_job_is_cancelled_with_what_waits_for_its_report_and_tells_what_was_sent(office: Office) -> None:
    office.approve()
    assert office.desk.runtime.cancel(A, "report-001") == Cancelled(state="published", outstanding=())
    assert office.state() == "void"
    with pytest.raises(ApprovalVoid):
        office.gateway.dispatch(A, MAIL, office.revision())
    office.approve(NEIGHBOUR)
    office.gateway.dispatch(NEIGHBOUR, MAIL, office.revision(NEIGHBOUR))
    told = office.desk.runtime.cancel(NEIGHBOUR, "report-001")
    assert told == Cancelled(state="published", outstanding=OUTSIDE)
    office.desk.clean_up(office.desk.revoke(office.desk.order(scope=NEIGHBOUR)))
    again = office.desk.runtime.cancel(NEIGHBOUR, "report-001")
    assert again == told, "erasing here reaches nothing there"


@pytest.mark.parametrize("at", [None, Fault.AFTER_CLAIM, Fault.AFTER_DRAFT])
def test_job_that_is_cancelled_is_not_run(small: Office, at: Fault | None) -> None:
    desk = small.desk
    desk.tell("language", "en")
    desk.runtime.submit(A, "report-001")
    if at is not None:
        desk.die("report-001", at)
    kept = desk.texts()
    for _ in range(2):
        assert desk.runtime.cancel(A, "report-001") == Cancelled(state="cancelled", outstanding=())
    with pytest.raises(JobCancelled):
        desk.runtime.run(A, "report-001")
    told = desk.runtime.inspect(A, "report-001")
    assert (told.state, told.failure, told.lease_until_us) == (State.CANCELLED, None, None)
    assert desk.texts() == kept


def test_runner_whose_job_is_cancelled_meanwhile_keeps_nothing(small: Office) -> None:
    desk = small.desk
    desk.tell("language", "en")
    desk.runtime.submit(A, "report-001")

    def writer(given: str) -> str:
        desk.runtime.cancel(A, "report-001")
        return given

    with pytest.raises(JobCancelled):
        desk.runtime.run(A, "report-001", writer)
    assert desk.texts() == ["language: en"]
    for scope in (B, ALL, NEIGHBOUR, FOREIGN):
        with pytest.raises(JobUnknown):
            desk.runtime.cancel(scope, "report-001")
