"""One function turns an error into a decision: try again after a pause, or park."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from orchestrator.domain.codes import ErrorCode, Parked
from orchestrator.domain.errors import ErasureError, NeedsConfirmation, Permanent


@dataclass(frozen=True, kw_only=True)
class RetryPolicy:
    """How often and how late a failed unit is tried again.

    `base` is doubled with each attempt up to `cap`; `max_attempts` failures in a row park.
    """

    base: timedelta = timedelta(seconds=2)
    cap: timedelta = timedelta(minutes=15)
    max_attempts: int = 5


@dataclass(frozen=True, kw_only=True)
class RetryIn:
    """Try the unit again after this pause."""

    delay: timedelta


@dataclass(frozen=True, kw_only=True)
class Park:
    """Leave the unit to a person."""

    reason: Parked


def decide(error: Exception, attempt: int, *, policy: RetryPolicy, jitter: float, parks: bool = True) -> RetryIn | Park:
    """Decide what follows the `attempt`-th failure in a row (counted from 1).

    `jitter` in [0, 1] spreads the pause over the upper half of its length, so that units
    that failed together do not come back together. What never `parks` is asked again for ever:
    nobody can do more about a copy that lives longer than it should than to look again.
    """
    # The exponent is bounded so that a long row of failures cannot overflow the pause.
    full = min(policy.base * 2 ** min(attempt - 1, 32), policy.cap)
    again = RetryIn(delay=full * (0.5 + 0.5 * jitter))
    if not parks:
        return again
    match error:
        case NeedsConfirmation():
            return Park(reason=Parked.NEEDS_CONFIRMATION)
        case Permanent(code=ErrorCode.UNSUPPORTED):
            return Park(reason=Parked.UNSUPPORTED)
        case Permanent(code=ErrorCode.STILL_PRESENT):
            return Park(reason=Parked.ATTEMPTS_EXHAUSTED)
        case Permanent():
            return Park(reason=Parked.PERMANENT_ERROR)
        case _ if attempt < policy.max_attempts:
            return again
        case _:
            return Park(reason=Parked.ATTEMPTS_EXHAUSTED)


def code_of(error: Exception) -> ErrorCode:
    """Give the code that the ledger keeps of an error: the error's own text may be personal."""
    return error.code if isinstance(error, ErasureError) else ErrorCode.UNKNOWN


_OUTAGE = frozenset(
    {
        ErrorCode.STORE_UNREACHABLE,
        ErrorCode.STORE_LOCKED,
        ErrorCode.DEADLINE_PASSED,
        ErrorCode.TRANSIENT,
        ErrorCode.UNKNOWN,
    }
)


def is_outage(code: ErrorCode) -> bool:
    """Tell whether an error says that the store itself does not work now, rather than one order of it."""
    return code in _OUTAGE
