"""What is outstanding of a job: why units are not done, when the next attempt comes, and what a person can do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from orchestrator.domain.codes import Code, ErrorCode, HoldReason, Parked
from orchestrator.domain.job import JobView
from orchestrator.domain.states import OVER
from orchestrator.domain.unit import Phase

_FIRST: Final[Mapping[Parked | None, str]] = {
    Parked.ATTEMPTS_EXHAUSTED: "See that the store answers",
    Parked.PERMANENT_ERROR: "Put right what the last error names",
    Parked.NEEDS_CONFIRMATION: "Look at what the store holds beyond what was found",
    Parked.UNSUPPORTED: "Take an adapter that can erase this",
}


class Why(Code):
    """Why units of a job are not done."""

    WAITING = "waiting", "Its turn is still to come."
    RUNNING = "running", "A worker is at it."
    RETRIED = "retried", "The last attempt failed, and it is tried again by itself."
    PARKED = "parked", "It waits for a person."
    HELD = "held", "A legal hold keeps it waiting."
    LEFT_UNDONE = "left_undone", "The job has ended without it."


@dataclass(frozen=True, kw_only=True)
class HoldOn:
    """A hold that keeps something waiting."""

    id: str
    reason: HoldReason


@dataclass(frozen=True, kw_only=True)
class Undone:
    """Units of one store and phase that are not done and stand alike.

    `attempts` is the most that any of them has made, `due_at` when the first is due, None where nobody waits for
    it any more. A held one without `holds` follows an item that its source has still to revoke.
    """

    adapter: str
    phase: Phase
    units: int
    attempts: int
    due_at: datetime | None
    running: bool = False
    held: bool = False
    parked: Parked | None = None
    last_error: ErrorCode | None = None
    holds: tuple[HoldOn, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Outstanding:
    """Units that are not done: why, when the next attempt comes if one does, and what a person can do."""

    adapter: str
    phase: Phase
    why: Why
    units: int
    attempts: int
    next_attempt_at: datetime | None
    last_error: ErrorCode | None
    parked: Parked | None
    holds: tuple[HoldOn, ...]
    to_do: str | None


def outstanding(undone: Undone, job: JobView) -> Outstanding:
    """Tell why units are not done, and what a person can do."""
    why = _why(undone, job)
    return Outstanding(
        adapter=undone.adapter,
        phase=undone.phase,
        why=why,
        units=undone.units,
        attempts=undone.attempts,
        next_attempt_at=undone.due_at if why in {Why.WAITING, Why.RETRIED} else None,
        last_error=undone.last_error,
        parked=undone.parked,
        holds=undone.holds,
        to_do=_to_do(why, undone, job.id),
    )


def _why(undone: Undone, job: JobView) -> Why:
    if undone.running:
        return Why.RUNNING
    if job.state in OVER and undone.phase is not Phase.CLOSE:
        return Why.LEFT_UNDONE
    if undone.parked is not None:
        return Why.PARKED
    if undone.held:
        return Why.HELD
    return Why.WAITING if undone.last_error is None else Why.RETRIED


def _to_do(why: Why, undone: Undone, job: str) -> str | None:
    match why:
        case Why.PARKED:
            return _of_parked(undone, job)
        case Why.RETRIED if undone.phase is Phase.CLOSE:
            return f"Its date is over: delete the copy, and then: expunge retry {job}"
        case Why.RETRIED:
            return f"To have it tried at once: expunge retry {job}"
        case Why.LEFT_UNDONE:
            return "No attempt will follow; a new request asks this store again."
        case Why.HELD if undone.holds:
            return "It goes on by itself when the hold is lifted: expunge hold release HOLD"
        case _:
            return None


def _of_parked(undone: Undone, job: str) -> str:
    again, passing = f"expunge retry {job}", f"expunge waive {job} --adapter {undone.adapter} --reason CODE"
    text = f"{_FIRST[undone.parked]}, then: {again}"
    # A source that has not revoked still hands the data out, so that nobody can waive it.
    return text if undone.phase is Phase.REVOKE else f"{text} - or let the job pass the store: {passing}"
