"""What follows a failed attempt: a bounded pause, or a person."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.codes import ErrorCode, Parked
from orchestrator.domain.errors import (
    BadAnswer,
    DeadlinePassed,
    ErasureError,
    NeedsConfirmation,
    Permanent,
    StoreLocked,
    StoreUnreachable,
    Transient,
)
from orchestrator.domain.retry import Park, RetryIn, RetryPolicy, code_of, decide

POLICY = RetryPolicy()
SOME_ERRORS = [
    Transient(),
    StoreUnreachable(),
    StoreLocked(),
    DeadlinePassed(),
    ErasureError(),
    ValueError("an error outside of the contract"),
]
PERMANENT_ERRORS = [
    (Permanent(), Parked.PERMANENT_ERROR),
    (BadAnswer(), Parked.PERMANENT_ERROR),
    (Permanent(code=ErrorCode.STORE_REFUSED), Parked.PERMANENT_ERROR),
    (Permanent(code=ErrorCode.UNSUPPORTED), Parked.UNSUPPORTED),
    (Permanent(code=ErrorCode.STILL_PRESENT), Parked.ATTEMPTS_EXHAUSTED),
    (NeedsConfirmation(), Parked.NEEDS_CONFIRMATION),
    (NeedsConfirmation(code=ErrorCode.UNSUPPORTED), Parked.NEEDS_CONFIRMATION),
]


@pytest.mark.parametrize(("error", "reason"), PERMANENT_ERRORS)
@pytest.mark.parametrize("attempt", [1, 5, 100])
def test_a_permanent_error_parks_at_once_with_its_reason(error: Exception, reason: Parked, attempt: int) -> None:
    assert decide(error, attempt, policy=POLICY, jitter=0.5) == Park(reason=reason)


@pytest.mark.parametrize("error", SOME_ERRORS, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize(("attempt", "seconds"), [(1, 2), (2, 4), (3, 8), (4, 16)])
def test_any_other_error_is_tried_again_after_a_doubling_pause(error: Exception, attempt: int, seconds: int) -> None:
    assert decide(error, attempt, policy=POLICY, jitter=1.0) == RetryIn(delay=timedelta(seconds=seconds))


@pytest.mark.parametrize("error", SOME_ERRORS, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("attempt", [5, 6])
def test_the_fifth_failure_in_a_row_parks(error: Exception, attempt: int) -> None:
    assert decide(error, attempt, policy=POLICY, jitter=0.0) == Park(reason=Parked.ATTEMPTS_EXHAUSTED)


@pytest.mark.parametrize(("jitter", "seconds"), [(0.0, 4), (0.5, 6), (1.0, 8)])
def test_jitter_spreads_over_the_upper_half_of_the_pause(jitter: float, seconds: int) -> None:
    assert decide(Transient(), 3, policy=POLICY, jitter=jitter) == RetryIn(delay=timedelta(seconds=seconds))


@given(st.integers(1, 10_000), st.floats(0, 1))
def test_no_pause_is_ever_longer_than_the_cap_or_shorter_than_half_the_base(attempt: int, jitter: float) -> None:
    patient = RetryPolicy(max_attempts=20_000)
    then = decide(Transient(), attempt, policy=patient, jitter=jitter)
    assert isinstance(then, RetryIn)
    assert patient.base / 2 <= then.delay <= patient.cap


def test_the_cap_holds_from_the_attempt_that_reaches_it() -> None:
    patient = RetryPolicy(base=timedelta(seconds=2), cap=timedelta(seconds=10), max_attempts=9)
    delays = [decide(Transient(), n, policy=patient, jitter=1.0) for n in (2, 3, 4, 8)]
    assert delays == [RetryIn(delay=timedelta(seconds=s)) for s in (4, 8, 10, 10)]


def test_a_policy_of_one_attempt_never_retries() -> None:
    once = RetryPolicy(max_attempts=1)
    assert decide(Transient(), 1, policy=once, jitter=1.0) == Park(reason=Parked.ATTEMPTS_EXHAUSTED)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (StoreLocked(), ErrorCode.STORE_LOCKED),
        (Transient(code=ErrorCode.PARTIAL), ErrorCode.PARTIAL),
        (Permanent(), ErrorCode.PERMANENT),
        (RuntimeError("alice lives in Utrecht"), ErrorCode.UNKNOWN),
    ],
)
def test_the_ledger_keeps_a_code_and_not_the_text_of_an_error(error: Exception, code: ErrorCode) -> None:
    assert code_of(error) is code
