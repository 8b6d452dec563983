"""Deletion jobs reach what waits for approval: its payload goes, it is void, and the neighbour's waits on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adapters.drafts import Answer, ApprovalVoid
from adapters.drafts.tables import approvals
from orchestrator import Selector, SelectorKind, Target
from tests.integration.approvals_harness import MAIL, SEND, Office, office, small
from tests.integration.drafts_harness import (
    ALL,
    EXPIRED,
    FOREIGN,
    LANGUAGE,
    NEIGHBOUR,
    SECRET,
    SUBJECT,
    A,
    B,
    name_of,
)

__all__ = ["office", "small"]

REPORT = f"Report\n\nlanguage: {SECRET}"
SELECTORS = {
    "key": LANGUAGE,
    "source": Selector(kind=SelectorKind.SOURCE, value=name_of(A, "turn-1")),
    "memory": None,  # by the id of its fact
    "subject": SUBJECT,
}


def waiting(office: Office) -> Target:
    """Have an action wait in three scopes; give the fact of the first."""
    fact = office.ask(A)
    for scope in (NEIGHBOUR, FOREIGN):
        office.ask(scope)
    return fact


@pytest.mark.req("R141")
@pytest.mark.parametrize(("kind", "decided"), [("key", True), ("source", False), ("memory", False), ("subject", True)])
def test_payload_of_what_waits_goes_and_it_is_void_and_the_others_wait_on(
    office: Office,
    kind: str,
    decided: bool,  # noqa: FBT001 - an action waits before it is decided on, and before it is sent
) -> None:
    fact = waiting(office)
    if decided:
        office.approvals.decide(A, MAIL, Answer.APPROVE)
    selector = SELECTORS[kind] or Selector(kind=SelectorKind.MEMORY, value=fact.id)
    order = office.desk.revoke(office.desk.order(selector))
    targets = office.desk.find(order)
    (waits,) = [target for target in targets if target.kind == "approval"]
    assert waits.derived_of == f"fact:{fact.id}@1"
    done, seen = office.desk.clean_up(order)
    assert (done.erased, seen.remaining) == (4, 0)
    assert (office.payloads(A), office.state(A)) == ([], "void")
    with pytest.raises(ApprovalVoid):
        office.approvals.decide(A, MAIL, Answer.APPROVE)
    with pytest.raises(ApprovalVoid):
        office.gateway.dispatch(A, MAIL, office.revision())
    assert SECRET not in repr(office.desk.rows("SELECT * FROM approvals"))
    for scope in (NEIGHBOUR, FOREIGN):
        assert (office.payloads(scope), office.state(scope)) == ([REPORT], "pending")
    office.approvals.decide(NEIGHBOUR, MAIL, Answer.APPROVE)
    assert office.gateway.dispatch(NEIGHBOUR, MAIL, office.revision(NEIGHBOUR)).receipt == "msg_1"


def test_payload_without_any_known_origin_is_its_persons(office: Office) -> None:
    waiting(office)
    office.ask(B)
    office.desk.execute("DELETE FROM draft_used")
    done, seen = office.desk.clean_up(office.desk.revoke(office.desk.order(SUBJECT, ALL)))
    assert (done.erased, seen.remaining) == (8, 0)
    assert [office.state(scope) for scope in (A, B, NEIGHBOUR, FOREIGN)] == ["void", "void", "pending", "pending"]


def test_look_sees_a_payload_that_was_left(small: Office) -> None:
    waiting(small)
    order = small.desk.revoke(small.desk.order(LANGUAGE))
    targets = small.desk.find(order)
    left = tuple(target for target in targets if target.kind != "approval")
    small.drafts.erase([replace(order, targets=left)])
    assert small.drafts.verify([replace(order, targets=left)])[0].remaining == 1
    assert small.state() == "pending", "its payload is there"
    with pytest.raises(ApprovalVoid):
        small.approvals.decide(A, MAIL, Answer.APPROVE)


def test_handle_of_another_kind_or_tenant_is_not_a_payloads(small: Office) -> None:
    waiting(small)
    order = small.desk.order(SUBJECT)
    (waits,) = [target for target in small.desk.find(order) if target.kind == "approval"]
    wrong = (replace(waits, kind="report"), replace(waits, kind="checkpoint"), replace(waits, version=1))
    answers = small.drafts.erase([replace(order, targets=wrong), replace(order, targets=(waits,), scope=FOREIGN)])
    assert [answer.erased for answer in answers] == [0, 0]
    assert [small.state(scope) for scope in (A, FOREIGN)] == ["pending", "pending"]


def test_same_handle_of_another_tenant_is_somebody_elses(small: Office) -> None:
    waiting(small)
    small.desk.execute("UPDATE drafts SET job = 'same' WHERE step = 'approval' AND user_id = 'user-1'")
    small.desk.execute("UPDATE approvals SET handle = 'same' WHERE user_id = 'user-1'")
    small.desk.clean_up(small.desk.revoke(small.desk.order(LANGUAGE)))
    assert [small.state(scope) for scope in (A, FOREIGN)] == ["void", "pending"]
    assert small.payloads(FOREIGN) == [REPORT]


def test_what_was_sent_stays_sent_when_its_payload_goes(office: Office) -> None:
    """What is with others is not called back: the receipt is there, and the copy outside is told as outstanding."""
    office.approve()
    sent = office.gateway.dispatch(A, MAIL, office.revision())
    done, seen = office.desk.clean_up(office.desk.revoke(office.desk.order(LANGUAGE)))
    assert (done.erased, seen.remaining, office.payloads()) == (4, 0, [])
    (told,) = office.approvals.list(A)
    assert (told.state.value, told.receipt, told.outstanding) == ("dispatched", "msg_1", ("external_copy",))
    assert office.approvals.receipt(A, sent.operation_key) == sent


def test_what_has_expired_takes_what_waits(small: Office) -> None:
    small.ask(expires=100)
    small.desk.at(100)
    done, seen = small.desk.clean_up(small.desk.revoke(small.desk.order(EXPIRED)))
    assert (done.erased, seen.remaining) == (4, 0)
    assert (small.payloads(), small.state()) == ([], "void")


def test_erasing_twice_and_erasing_what_is_void_changes_nothing(small: Office) -> None:
    waiting(small)
    order = small.desk.revoke(small.desk.order(LANGUAGE))
    targets = small.desk.find(order)
    small.drafts.erase([replace(order, targets=targets)])
    kept = small.desk.rows("SELECT * FROM approvals ORDER BY handle")
    assert small.drafts.erase([replace(order, targets=targets)])[0].already_absent == 4
    assert small.desk.rows("SELECT * FROM approvals ORDER BY handle") == kept


@pytest.mark.case(67)
def test_row_of_an_approval_holds_ids_and_numbers_alone(small: Office) -> None:
    small.desk.tell("language", SECRET)
    small.desk.publish("report-001")
    small.approvals.request(A, MAIL, SEND, report="report-001", payload="To Petra Klein: she moves to Graz")
    (row,) = small.desk.rows("SELECT * FROM approvals")
    names = dict(zip([column.name for column in approvals.columns], row, strict=True))
    texts = {name: value for name, value in names.items() if isinstance(value, str)}
    assert set(texts) == {
        "tenant",
        "handle",
        "user_id",
        "project",
        "name",
        "action",
        "job",
        "state",
        "payload_mac",
        "operation_key",
    }
    assert not [word for word in ("Petra", "Graz", SECRET, "language") if word in repr(row)]


def test_person_who_came_back_asks_anew_and_the_old_job_leaves_that_alone(small: Office) -> None:
    small.ask()
    order = small.desk.revoke(small.desk.order(SUBJECT, ALL))
    small.desk.clean_up(order)
    small.desk.tell("seat", "window", source="turn-9")
    small.desk.publish("report-003")
    small.approvals.request(A, "mail-2", SEND, report="report-003")
    done, seen = small.desk.clean_up(order)
    assert (done.erased, seen.remaining) == (0, 0)
    assert small.approvals.decide(A, "mail-2", Answer.APPROVE).payload == "Report\n\nseat: window"
