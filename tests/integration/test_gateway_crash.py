"""A process that dies at any line between a request and its receipt loses nothing and has nothing sent twice."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from adapters.drafts import Answer, ApprovalVoid, Place
from tests.integration.approvals_harness import MAIL, SEND, FileTool, Office, dying_at, office, small
from tests.integration.drafts_harness import A, Died

__all__ = ["office", "small"]

DISPATCHING = [place for place in Place if place.value not in {"within_request", "within_decision", "after_decision"}]
STANDS = {
    Place.WITHIN_MARK: ("approved", 0),
    Place.AFTER_MARK: ("dispatched", 0),
    Place.AFTER_CALL: ("dispatched", 1),
    Place.WITHIN_RECEIPT: ("dispatched", 1),
    Place.AFTER_RECEIPT: ("dispatched", 1),
}
"""Where it stands after a death at each place, and how often the tool was called by then."""


def test_every_place_is_tried() -> None:
    assert set(STANDS) == set(DISPATCHING)


@pytest.mark.parametrize("at", DISPATCHING)
def test_whoever_comes_after_a_death_sends_what_was_not_sent_and_nothing_twice(office: Office, at: Place) -> None:
    office.approve()
    with pytest.raises(Died):
        office.gateway.dispatch(A, MAIL, office.revision(), fault=dying_at(at))
    assert (office.state(), len(office.tool.sent)) == STANDS[at]
    office.desk.at(30)
    receipt = office.gateway.dispatch(A, MAIL, office.revision())
    assert (receipt.receipt, len(office.tool.sent)) == ("msg_1", 1)
    assert office.desk.rows("SELECT state, receipt FROM approvals") == [("dispatched", "msg_1")]


@pytest.mark.req("R58")
@pytest.mark.parametrize("at", DISPATCHING)
def test_after_a_death_and_a_revocation_nothing_more_is_sent(small: Office, at: Place) -> None:
    small.approve()
    with pytest.raises(Died):
        small.gateway.dispatch(A, MAIL, small.revision(), fault=dying_at(at))
    state, sent = STANDS[at]
    small.desk.memory.store.forget(A, "language")
    small.desk.at(30)
    if sent:
        assert small.gateway.dispatch(A, MAIL, small.revision()).receipt == "msg_1", "it had been sent, and is told"
    else:
        for _ in range(2):
            with pytest.raises(ApprovalVoid):
                small.gateway.dispatch(A, MAIL, small.revision(), lease_seconds=1)
            small.desk.at(60)
    assert len(small.tool.sent) == sent
    assert small.state() == ("void" if state == "approved" else "dispatched")


@pytest.mark.req("R62")
def test_repeat_that_was_prepared_under_an_older_epoch_is_not_sent(small: Office) -> None:
    small.approve()
    with pytest.raises(Died):
        small.gateway.dispatch(A, MAIL, small.revision(), fault=dying_at(Place.AFTER_MARK))
    small.desk.at(30)
    with pytest.raises(ApprovalVoid):
        small.gateway.dispatch(A, MAIL, small.revision() - 1, lease_seconds=1)
    assert small.tool.sent == []


def test_death_within_a_request_leaves_nothing_and_within_a_decision_leaves_it_open(office: Office) -> None:
    office.desk.tell("language", "en")
    office.desk.publish("report-001")
    with pytest.raises(Died):
        office.approvals.request(A, MAIL, SEND, report="report-001", fault=dying_at(Place.WITHIN_REQUEST))
    assert office.desk.rows("SELECT count(*) FROM approvals") == [(0,)]
    assert office.payloads() == []
    office.approvals.request(A, MAIL, SEND, report="report-001")
    for at, state in ((Place.WITHIN_DECISION, "pending"), (Place.AFTER_DECISION, "approved")):
        with pytest.raises(Died):
            office.approvals.decide(A, MAIL, Answer.APPROVE, fault=dying_at(at))
        assert office.state() == state
    assert office.approvals.decide(A, MAIL, Answer.APPROVE).state.value == "approved"
    assert office.gateway.dispatch(A, MAIL, office.revision()).receipt == "msg_1"


@pytest.mark.parametrize("copied", ["before it was asked for", "when it was approved"])
def test_source_that_is_put_back_to_before_it_was_sent_sends_nothing_twice(
    small: Office, tmp_path: Path, copied: str
) -> None:
    """The copy says approved, or nothing; the tool knows better, by a key that is the same whenever it is asked for."""
    file, copy = tmp_path / "m.db", tmp_path / "copy.db"

    def keep(what: str) -> None:
        if what == copied:
            closed(small)
            shutil.copy(file, copy)

    small.desk.tell("language", "en")
    small.desk.publish("report-001")
    keep("before it was asked for")
    for _ in range(2):
        small.approvals.request(A, MAIL, SEND, report="report-001")
        small.approvals.decide(A, MAIL, Answer.APPROVE)
        if not copy.exists():
            keep("when it was approved")
        assert small.gateway.dispatch(A, MAIL, small.revision()).receipt == "msg_1"
        assert len(small.tool.sent) == 1
        closed(small)
        shutil.copy(copy, file)


@pytest.mark.req("R59")
@pytest.mark.req("R61")
@pytest.mark.parametrize("sent", [1, 0])
def test_tool_tells_what_was_sent_before_the_source_was_put_back_and_nothing_is_sent_again(
    small: Office, tmp_path: Path, sent: int
) -> None:
    small.approve()
    closed(small)
    copy = Path(shutil.copy(tmp_path / "m.db", tmp_path / "copy.db"))
    receipts = [small.gateway.dispatch(A, MAIL, small.revision()) for _ in range(sent)]
    closed(small)
    small.desk.memory.restore(copy, [], lambda: 2)
    if not sent:
        for _ in range(2):
            with pytest.raises(ApprovalVoid):
                small.gateway.dispatch(A, MAIL, small.revision())
    for receipt in receipts * 2:
        assert small.gateway.dispatch(A, MAIL, small.revision()) == receipt
        assert small.approvals.receipt(A, receipt.operation_key) == receipt
        assert [view.outstanding for view in small.approvals.list(A)] == [("external_copy",)]
    assert len(small.tool.sent) == sent


def closed(office: Office) -> None:
    """Close the database, so that its file may be copied or replaced."""
    for engine in (office.drafts._engine, office.desk.memory.store._engine):
        engine.dispose()


@pytest.mark.parametrize("at", [Place.WITHIN_DECISION, Place.AFTER_DECISION, *DISPATCHING])
def test_process_that_is_killed_there_leaves_what_the_next_one_ends(small: Office, tmp_path: Path, at: Place) -> None:
    """A process of its own is killed by signal 9; the tool is a folder of files, and counts by its lines."""
    killed_and_ended(small, tmp_path, at)


@pytest.mark.parametrize("at", [Place.WITHIN_MARK, Place.AFTER_CALL])
def test_process_that_is_killed_there_on_a_server_leaves_what_the_next_one_ends(
    office: Office, tmp_path: Path, at: Place
) -> None:
    killed_and_ended(office, tmp_path, at)


def killed_and_ended(office: Office, folder: Path, at: Place) -> None:
    office.ask()
    if at in DISPATCHING:
        office.approvals.decide(A, MAIL, Answer.APPROVE)
    keys = folder / "keys"
    keys.write_text(office.drafts._context.gate.keyring.dump())
    url = office.drafts._url.render_as_string(hide_password=False)
    words = [sys.executable, str(Path(__file__).with_name("gateway_process.py")), url, str(folder), at.value]
    died = subprocess.run(words, cwd=Path(__file__).parents[2], capture_output=True, timeout=60, check=False)
    assert died.returncode == -signal.SIGKILL, died.stderr.decode()[-500:]
    state, sent = STANDS.get(at, ("approved" if at is Place.AFTER_DECISION else "pending", 0))
    assert (office.state(), len(office.tool.sent)) == (state, sent)
    office.desk.at(30)
    office.approvals.decide(A, MAIL, Answer.APPROVE)
    assert office.gateway.dispatch(A, MAIL, office.revision()).receipt == "msg_1"
    assert FileTool(folder / "tool").sent == office.tool.sent
    assert len(office.tool.sent) == 1
