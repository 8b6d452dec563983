"""What is not done: why each unit of a job waits, and what a person can do about it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.domain.codes import ErrorCode, HoldReason, Parked
from orchestrator.domain.states import JobState
from orchestrator.domain.unit import Phase
from orchestrator.service.outstanding import HoldOn, Undone, Why, outstanding
from tests.unit.report_harness import AT, JOB, undone

HOLD = HoldOn(id="hold-1", reason=HoldReason.LITIGATION)


@pytest.mark.parametrize(
    ("state", "group", "why", "next_comes", "to_do"),
    [
        (JobState.DERIVED_CLEANUP, undone("cache", Phase.FIND, running=True), Why.RUNNING, False, None),
        (JobState.DERIVED_CLEANUP, undone("cache", Phase.FIND), Why.WAITING, True, None),
        (
            JobState.DERIVED_CLEANUP,
            undone("cache", Phase.ERASE, last_error=ErrorCode.STORE_UNREACHABLE),
            Why.RETRIED,
            True,
            "expunge retry job-1",
        ),
        (JobState.DERIVED_CLEANUP, undone("cache", Phase.ERASE, held=True, holds=(HOLD,)), Why.HELD, False, "release"),
        (JobState.DERIVED_CLEANUP, undone("cache", Phase.ERASE, held=True), Why.HELD, False, None),
        (
            JobState.COMPLETED,
            undone("cache", Phase.ERASE, held=True, due_at=None),
            Why.LEFT_UNDONE,
            False,
            "a new request",
        ),
        (JobState.VERIFIED, undone("cache", Phase.CLOSE), Why.WAITING, True, None),
        *(
            (
                JobState.DERIVED_CLEANUP,
                undone("cache", Phase.ERASE, parked=parked),
                Why.PARKED,
                False,
                "--adapter cache",
            )
            for parked in Parked
        ),
    ],
)
def test_what_is_not_done_says_why_and_what_a_person_can_do(
    *, state: JobState, group: Undone, why: Why, next_comes: bool, to_do: str | None
) -> None:
    said = outstanding(group, replace(JOB, state=state))
    assert (said.why, said.next_attempt_at) == (why, AT if next_comes else None)
    assert (said.units, said.attempts, said.last_error, said.parked) == (2, 3, group.last_error, group.parked)
    assert said.to_do == to_do if to_do is None else to_do in (said.to_do or "")


def test_source_that_has_not_revoked_is_not_offered_to_be_waived() -> None:
    said = outstanding(undone("memory", Phase.REVOKE, parked=Parked.UNSUPPORTED), JOB)
    assert said.to_do is not None
    open_ = outstanding(
        undone("memory", Phase.REVOKE, parked=Parked.UNSUPPORTED), replace(JOB, state=JobState.REQUESTED)
    )
    assert ("expunge retry job-1" in str(open_.to_do), "waive" in str(open_.to_do)) == (True, False)
