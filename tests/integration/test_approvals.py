"""Actions that wait for approval rest on the memory that they were asked for over, and on who is a member."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from adapters.drafts import (
    Answer,
    ApprovalDecided,
    ApprovalState,
    ApprovalTaken,
    ApprovalUnknown,
    ApprovalVoid,
    NoMember,
    ReportUnusable,
)
from adapters.drafts.approvals.description import digest
from adapters.memory.session import NoAccess, Session
from orchestrator import Gate, GateRefused, InvalidRequest, Keyring, Refusal, Scope
from tests.integration.approvals_harness import MAIL, SEND, Office, office, small
from tests.integration.drafts_harness import ALL, FOREIGN, LANGUAGE, NEIGHBOUR, SECRET, A, B

__all__ = ["office", "small"]

RESEARCH = Scope(tenant="tenant-a", user="user-1", project="agent-research")
REPORT = f"Report\n\nlanguage: {SECRET}"


def test_action_is_asked_for_shown_and_approved(office: Office) -> None:
    fact = office.ask(expires=100)
    (told,) = office.approvals.list(A)
    assert (told.state, told.action, told.payload) == (ApprovalState.PENDING, SEND, REPORT)
    assert (told.memory_rev, told.memory_expires, told.receipt, told.outstanding) == (1, 100, None, ())
    office.desk.at(7)
    done = office.approvals.decide(A, MAIL, Answer.APPROVE)
    assert (done.state, done.decided_at_us, done.digest) == (ApprovalState.APPROVED, 7_000_000, told.digest)
    used = office.desk.rows(
        "SELECT u.kind, u.id, u.version FROM draft_used AS u JOIN drafts AS d ON d.handle = u.handle"
        " WHERE d.step = 'approval' ORDER BY u.kind"
    )
    assert [row[0] for row in used] == ["checkpoint", "checkpoint", "fact", "report"]
    assert (fact.id, fact.version) in {tuple(row[1:]) for row in used}


@pytest.mark.req("R56")
def test_digest_changes_with_the_revision_and_with_the_expiry() -> None:
    gate = Gate(Keyring.create())
    first = digest(gate, A, MAIL, SEND, REPORT, memory_rev=4, memory_expires=100.0)
    assert first == digest(gate, A, MAIL, SEND, REPORT, memory_rev=4, memory_expires=100)
    others = [
        digest(gate, A, MAIL, SEND, REPORT, memory_rev=5, memory_expires=100.0),
        digest(gate, A, MAIL, SEND, REPORT, memory_rev=4, memory_expires=100.5),
        digest(gate, A, MAIL, SEND, REPORT, memory_rev=4, memory_expires=None),
        digest(gate, A, MAIL, SEND, f"{REPORT} ", memory_rev=4, memory_expires=100.0),
        digest(gate, A, MAIL, "send-letter", REPORT, memory_rev=4, memory_expires=100.0),
        digest(gate, A, "mail-2", SEND, REPORT, memory_rev=4, memory_expires=100.0),
        digest(gate, B, MAIL, SEND, REPORT, memory_rev=4, memory_expires=100.0),
        digest(Gate(Keyring.create()), A, MAIL, SEND, REPORT, memory_rev=4, memory_expires=100.0),
    ]
    assert len({first, *others}) == 9


@pytest.mark.req("R56")
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE approvals SET memory_expires = 500",
        "UPDATE approvals SET memory_rev = 2",
        "UPDATE approvals SET action = 'send-letter'",
        "UPDATE drafts SET text = 'Report, language: all' WHERE step = 'approval'",
    ],
)
def test_description_that_was_changed_is_not_what_was_asked_for(small: Office, change: str) -> None:
    """Each of these leaves the revision and the expiry in order: what is wrong is that nobody has read it."""
    small.ask(expires=100)
    if "memory_rev" in change:
        small.desk.tell("theme", "dark")
        assert small.revision() == 2
    small.desk.execute(change)
    with pytest.raises(ApprovalVoid):
        small.approvals.decide(A, MAIL, Answer.APPROVE)
    assert small.state() == "void"


@pytest.mark.req("R57")
@pytest.mark.parametrize(
    ("change", "answer"),
    [
        ("forget", Answer.APPROVE),
        ("correct", Answer.APPROVE),
        ("another key", Answer.REFUSE),
        ("revoke", Answer.APPROVE),
    ],
)
def test_change_of_the_memory_while_it_waits_voids_it_for_good(office: Office, change: str, answer: Answer) -> None:
    office.ask()
    office.ask(NEIGHBOUR)
    if change == "forget":
        office.desk.memory.store.forget(A, "language")
    elif change == "correct":
        office.desk.tell("language", "en", source="turn-2")
    elif change == "another key":
        office.desk.tell("theme", "dark", source="turn-2")
    else:
        office.desk.revoke(office.desk.order(LANGUAGE))
    (told,) = office.approvals.list(A)
    assert (told.state, told.payload) == (ApprovalState.PENDING, None), "nobody reads it any more"
    for _ in range(2):
        with pytest.raises(ApprovalVoid) as caught:
            office.approvals.decide(A, MAIL, answer)
        assert "Harbin" not in str(caught.value)
        assert office.state() == "void"
    assert office.approvals.decide(NEIGHBOUR, MAIL, Answer.APPROVE).state is ApprovalState.APPROVED


@pytest.mark.req("R57")
def test_expiry_alone_voids_it_at_equality(office: Office) -> None:
    office.ask(expires=100)
    office.ask(NEIGHBOUR, expires=100)
    office.desk.at(99)
    assert office.approvals.decide(A, MAIL, Answer.APPROVE).state is ApprovalState.APPROVED
    office.desk.at(100)
    for scope in (A, NEIGHBOUR):
        with pytest.raises(ApprovalVoid):
            office.approvals.decide(scope, MAIL, Answer.APPROVE)
        assert office.state(scope) == "void", "the same answer again is a decision as well"


@pytest.mark.req("R7")
def test_lost_membership_refuses_the_decision_and_every_reading(office: Office) -> None:
    """user-1 is removed from agent-research while an approval waits."""
    office.ask(RESEARCH)
    office.ask(A)
    office.members.removed.add(RESEARCH)
    with pytest.raises(NoMember):
        office.approvals.list(RESEARCH)
    with pytest.raises(NoMember):
        office.approvals.request(RESEARCH, "mail-2", SEND, report="report-001")
    for _ in range(2):
        with pytest.raises(ApprovalVoid):
            office.approvals.decide(RESEARCH, MAIL, Answer.APPROVE)
        assert office.state(RESEARCH) == "void"
        office.members.removed.clear()  # who comes back asks anew
    assert office.approvals.decide(A, MAIL, Answer.APPROVE).state is ApprovalState.APPROVED


@pytest.mark.req("R7")
def test_session_that_has_lost_its_project_decides_nothing_in_it(small: Office) -> None:
    projects = {"agent-research"}
    session = Session(tenant="tenant-a", user="user-1", is_member=lambda project: project in projects)

    def is_member(scope: Scope) -> bool:
        try:
            return session.scope(scope.project) == scope
        except NoAccess:
            return False

    small.ask(RESEARCH)
    approvals = small.drafts.approvals(is_member)
    assert [told.payload for told in approvals.list(session.scope("agent-research"))] == [REPORT]
    projects.clear()
    with pytest.raises(ApprovalVoid):
        approvals.decide(RESEARCH, MAIL, Answer.APPROVE)
    assert small.state(RESEARCH) == "void"


def test_answer_about_membership_that_is_not_yes_is_no(small: Office) -> None:
    small.ask()
    approvals = small.drafts.approvals(lambda _scope: "of course")  # type: ignore[arg-type,return-value]  # as it comes
    with pytest.raises(NoMember):
        approvals.list(A)
    with pytest.raises(ApprovalVoid):
        approvals.decide(A, MAIL, Answer.APPROVE)


def test_of_two_who_decide_at_once_one_decides(office: Office) -> None:
    office.ask()
    approvals, start = office.approvals, threading.Barrier(4)

    def decide(answer: Answer) -> str:
        start.wait()
        try:
            return approvals.decide(A, MAIL, answer).state.value
        except ApprovalDecided:
            return "late"

    with ThreadPoolExecutor(4) as pool:
        told = list(pool.map(decide, [Answer.APPROVE, Answer.REFUSE] * 2))
    assert sorted(set(told)) in (["approved", "late"], ["late", "refused"])
    assert told.count("late") == 2
    assert office.state() in told


def test_decision_is_made_once_and_the_same_one_again_changes_nothing(office: Office) -> None:
    office.ask()
    first = office.approvals.decide(A, MAIL, Answer.APPROVE)
    office.desk.at(5)
    assert office.approvals.decide(A, MAIL, Answer.APPROVE) == first
    with pytest.raises(ApprovalDecided):
        office.approvals.decide(A, MAIL, Answer.REFUSE)
    assert office.state() == "approved"
    office.ask(NEIGHBOUR)
    refused = office.approvals.decide(NEIGHBOUR, MAIL, Answer.REFUSE)
    assert (refused.state, refused.decided_at_us) == (ApprovalState.REFUSED, 5_000_000)
    assert office.approvals.decide(NEIGHBOUR, MAIL, Answer.REFUSE).state is ApprovalState.REFUSED
    with pytest.raises(ApprovalDecided):
        office.approvals.decide(NEIGHBOUR, MAIL, Answer.APPROVE)
    (told,) = office.approvals.list(NEIGHBOUR)
    assert told.payload is None


def test_same_request_again_is_the_same_approval(office: Office) -> None:
    office.ask()
    (first,) = office.approvals.list(A)
    assert office.approvals.request(A, MAIL, SEND, report="report-001") == first
    for action, payload in (("send-letter", None), (SEND, "Dear all")):
        with pytest.raises(ApprovalTaken):
            office.approvals.request(A, MAIL, action, report="report-001", payload=payload)
    office.desk.publish("report-002")
    with pytest.raises(ApprovalTaken):
        office.approvals.request(A, MAIL, SEND, report="report-002")
    assert office.desk.rows("SELECT count(*) FROM approvals") == [(1,)]
    assert office.payloads() == [REPORT]


def test_it_is_about_a_report_that_is_current_and_about_no_other(small: Office) -> None:
    small.desk.tell("language", "en")
    small.desk.runtime.submit(A, "report-001")
    with pytest.raises(ReportUnusable):
        small.approvals.request(A, MAIL, SEND, report="report-001")
    small.desk.runtime.run(A, "report-001")
    for scope in (B, ALL, NEIGHBOUR, FOREIGN):
        with pytest.raises(ReportUnusable):
            small.approvals.request(scope, MAIL, SEND, report="report-001")
    small.desk.tell("theme", "dark")
    with pytest.raises(ReportUnusable):
        small.approvals.request(A, MAIL, SEND, report="report-001")
    assert small.desk.rows("SELECT count(*) FROM approvals") == [(0,)]


@pytest.mark.req("R150")
def test_payload_that_says_what_was_forgotten_is_refused(small: Office) -> None:
    small.desk.tell("passport", "My passport number is P1234567")
    small.desk.tell("seat", "aisle")
    small.desk.revoke(small.desk.order(replace(LANGUAGE, value="passport")))
    small.desk.publish("report-001")
    approvals = small.approvals
    with pytest.raises(GateRefused) as caught:
        approvals.request(A, MAIL, SEND, report="report-001", payload="seat: aisle, passport p1234567")
    assert caught.value.refusal is Refusal.TOKEN_TOMBSTONED
    assert approvals.refused == {Refusal.TOKEN_TOMBSTONED: 1}
    assert small.desk.rows("SELECT count(*) FROM approvals") == [(0,)]
    assert approvals.request(A, MAIL, SEND, report="report-001", payload="seat: aisle").payload == "seat: aisle"


def test_it_is_unknown_outside_of_its_scope(small: Office) -> None:
    small.ask()
    key = small.approvals.list(A)[0].operation_key
    for scope in (B, ALL, NEIGHBOUR, FOREIGN):
        assert small.approvals.list(scope) == ()
        for answer in Answer:
            with pytest.raises(ApprovalUnknown):
                small.approvals.decide(scope, MAIL, answer)
        with pytest.raises(ApprovalUnknown):
            small.approvals.cancel(scope, MAIL)
        with pytest.raises(ApprovalUnknown):
            small.approvals.receipt(scope, key)
    assert small.state() == "pending"


@pytest.mark.parametrize("name", ["", "Mail", "mail 1", "-mail", "mail_1", "m" * 65, "mail-1\n", "märz", None, 7])
def test_name_that_could_hold_a_sentence_is_refused_and_not_repeated(small: Office, name: str) -> None:
    small.desk.publish("report-001")
    for ids in ((name, SEND), (MAIL, name)):
        with pytest.raises(InvalidRequest, match=r"^(approval|action) must be 1 to 64 of") as caught:
            small.approvals.request(A, *ids, report="report-001")
        assert str(name) == "" or f"{name} " not in str(caught.value)
    assert small.approvals.request(A, "m" * 64, SEND, report="report-001").name == "m" * 64


@pytest.mark.parametrize("payload", ["", " \n", "nul\0", "\ud800", "x" * 1_000_001])
def test_payload_that_could_not_be_stored_is_refused(small: Office, payload: str) -> None:
    small.desk.publish("report-001")
    with pytest.raises(InvalidRequest, match=r"^payload must "):
        small.approvals.request(A, MAIL, SEND, report="report-001", payload=payload)


def test_answer_that_is_none_is_refused(small: Office) -> None:
    small.ask()
    with pytest.raises(InvalidRequest, match=r"^answer must be approve or refuse$"):
        small.approvals.decide(A, MAIL, "yes")  # type: ignore[arg-type]  # whatever comes in
    assert small.state() == "pending"
