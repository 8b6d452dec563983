"""Requests as they come in and are looked up: filed once, told by codes, seen by their own tenant alone."""

from __future__ import annotations

import pytest

from orchestrator import InvalidRequest, Scope
from orchestrator.domain.errors import IdempotencyConflict, JobNotFound
from tests.fakes import Bench


@pytest.mark.req("R122")
def test_same_idempotency_key_files_one_job(stage: Bench) -> None:
    first = stage.file(idempotency_key="ticket-1")
    assert stage.file(idempotency_key="ticket-1") == first
    assert len(stage.rows("SELECT id FROM deletion_jobs")) == 1
    with pytest.raises(IdempotencyConflict):
        stage.file("theme", idempotency_key="ticket-1")
    other = Scope(tenant="tenant-b", user="anna", project="trips")
    assert stage.file(idempotency_key="ticket-1", scope=other) != first


@pytest.mark.req("R135")
def test_reason_is_a_code_and_reference_matches_its_pattern(stage: Bench) -> None:
    job = stage.file(reference="trip-planning/turn-20")
    assert stage.view(job).reason == "user_request"
    for bad in ("forget P1234567", "", "x" * 129, "a\n", "case-anna-1"):
        with pytest.raises(InvalidRequest):
            stage.file(reference=bad)
    assert len(stage.rows("SELECT id FROM deletion_jobs")) == 1


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
