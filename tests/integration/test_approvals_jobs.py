"""Deletion jobs over what waits for approval, by the engine as a deployment opens it, down to the bytes of the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapters.drafts import Answer, Approvals, ApprovalVoid
from orchestrator import Scope, Selector, SelectorKind
from tests.integration.drafts_harness import name_of
from tests.integration.drafts_jobs_harness import (
    ANNA,
    BERTA,
    DONE,
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

SOURCE = Selector(kind=SelectorKind.SOURCE, value=name_of(ANNA, "turn-1"))
MAIL = "mail-1"
NOTE = "Please book for the holder of"


def vouched(_scope: Scope) -> bool:
    return True


def waiting(office: Office, *scopes: Scope) -> Approvals:
    """Have an action with the secret in it wait in each scope, approved."""
    approvals = office.desk.drafts.approvals(vouched)
    for scope in scopes:
        office.draft(scope)
        payload = f"{NOTE} {SECRET} ({scope.user})"
        approvals.request(scope, MAIL, "book-flight", report="report-001", payload=payload)
        approvals.decide(scope, MAIL, Answer.APPROVE)
    return approvals


def payloads(office: Office) -> list[tuple[str, ...]]:
    return [tuple(row) for row in office.rows("SELECT user_id, text FROM drafts WHERE step = 'approval'")]


@pytest.mark.req("R141")
@pytest.mark.parametrize("selector", [PASSPORT, SOURCE, SUBJECT], ids=lambda selector: selector.kind.value)
def test_job_takes_the_payload_of_what_waits_and_leaves_the_neighbours(office: Office, selector: Selector) -> None:
    approvals = waiting(office, ANNA, BERTA)
    job = office.request(selector)
    office.run()
    assert office.ended(job) == DONE
    assert payloads(office) == [(BERTA.user, f"{NOTE} {SECRET} (berta)")]
    states = office.rows("SELECT user_id, state FROM approvals ORDER BY user_id")
    assert [tuple(row) for row in states] == [(ANNA.user, "void"), (BERTA.user, "approved")]
    with pytest.raises(ApprovalVoid):
        approvals.decide(ANNA, MAIL, Answer.APPROVE)
    assert approvals.decide(BERTA, MAIL, Answer.APPROVE).payload is not None


def test_process_that_dies_around_the_erase_leaves_it_void_and_takes_the_same_again(single: Office) -> None:
    waiting(single, ANNA)
    job = single.request(PASSPORT)
    single.die_once("drafts.erase")
    with pytest.raises(Died):
        single.run()
    assert (payloads(single), single.rows("SELECT state FROM approvals")) == ([], [("void",)])
    single.take_over()
    single.run()
    assert single.ended(job) == DONE
    assert single.rows("SELECT state FROM approvals") == [("void",)]


def test_nothing_of_a_payload_is_left_in_the_raw_file(tmp_path: Path) -> None:
    with deployed(tmp_path / "state", Office, require="physical") as one:
        waiting(one, ANNA, BERTA)
        assert one.hits(f"{NOTE} {SECRET} (anna)") > 0, "the positive control"
        job = one.request(SUBJECT)
        one.run()
        assert one.ended(job) == DONE
        assert one.hits(f"{NOTE} {SECRET} (anna)") == 0
        assert one.hits(f"{NOTE} {SECRET} (berta)") > 0
