"""Units and jobs as values: ids that repeat, and who has to act."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from itertools import product
from uuid import UUID

import pytest

from orchestrator.domain.job import JobView, Purpose, Trigger
from orchestrator.domain.states import JobState
from orchestrator.domain.unit import Phase, unit_id

JOB = UUID(int=7)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
VIEW = JobView(
    id=str(JOB),
    tenant="t",
    state=JobState.DERIVED_CLEANUP,
    purpose=Purpose.ERASE,
    trigger=Trigger.REQUEST,
    selector="subject",
    reason="user_request",
    reference=None,
    round=1,
    requested_at=NOW,
    due_at=NOW,
    verified_at=None,
    completed_at=None,
    parked=(),
    held=False,
    waived=(),
    windows=(),
    last_error=None,
    failed_in=None,
    attempts=0,
    result=None,
)


@pytest.mark.req("R127")
def test_a_unit_that_is_opened_twice_has_one_id() -> None:
    assert unit_id(JOB, "cache", Phase.ERASE, 0, 1) == unit_id(JOB, "cache", Phase.ERASE, 0, 1)


def test_units_that_differ_in_anything_have_ids_of_their_own() -> None:
    parts = list(product((JOB, UUID(int=8)), ("cache", "cach"), Phase, (0, 1, 11), (1, 11)))
    assert len({unit_id(*part) for part in parts}) == len(parts)


def test_a_job_waits_for_a_person_while_a_unit_is_parked() -> None:
    assert not VIEW.waits_for_a_person
    assert replace(VIEW, parked=(("cache", "erase", "permanent_error"),)).waits_for_a_person
