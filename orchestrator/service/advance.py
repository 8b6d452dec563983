"""What follows for a job, told from its units alone: the same question always has the same answer.

The ledger asks it after every commit and in every sweep, under a lock on the job, so two
last units that commit together cannot both miss the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from orchestrator.domain.job import Purpose, Store
from orchestrator.domain.states import JobState
from orchestrator.domain.unit import Phase


@dataclass(frozen=True, kw_only=True)
class Tally:
    """Units of one adapter, phase and find pass in the job's current round."""

    adapter: str
    phase: Phase
    find_pass: int
    unfinished: int
    of_items: bool = False  # units that wait for, or follow, an item that a hold covered


@dataclass(frozen=True, kw_only=True)
class Standing:
    """Where a job stands."""

    id: str
    state: JobState
    purpose: Purpose
    round: int
    tallies: tuple[Tally, ...]
    found_in_last_pass: bool  # something new, from which one more pass could find more
    seen_present: bool  # a look of this round has found a copy
    open_windows: bool
    waived: frozenset[str] = frozenset()  # stores that are left out of every need
    unopened: bool = False  # an item that was freed late has led to targets that no erase has taken up


@dataclass(frozen=True)
class Move:
    """Move the job to its next state."""

    to: JobState


@dataclass(frozen=True)
class OpenFind:
    """Open the first find unit of a pass in each of these adapters."""

    find_pass: int
    adapters: tuple[str, ...]


@dataclass(frozen=True)
class OpenErase:
    """Open an erase unit for each page of targets that has none; every adapter gets at least one."""

    adapters: tuple[str, ...]


@dataclass(frozen=True)
class OpenVerify:
    """Open the verify units of every adapter, due when quiet time has passed."""

    adapters: tuple[str, ...]


@dataclass(frozen=True)
class NewRound:
    """Begin again with find in every adapter; what was written down before stays written down."""

    adapters: tuple[str, ...]


Action = Move | OpenFind | OpenErase | OpenVerify | NewRound


def what_follows(job: Standing, stores: Sequence[Store]) -> list[Action]:
    """Give the actions that a job is ready for; none while something is unfinished."""
    match job.state:
        case JobState.REQUESTED if job.purpose is Purpose.PREVIEW:
            return _previewed(job, stores)
        case JobState.REQUESTED:
            return _revoked(job, stores)
        case JobState.SOURCE_REVOKED | JobState.DERIVED_CLEANUP:
            return _cleaned(job, stores)
        case JobState.VERIFIED:
            return [] if job.open_windows else [Move(JobState.COMPLETED)]
        case JobState.COMPLETED | JobState.CANCELLED:
            return []
        case _:
            assert_never(job.state)


def _revoked(job: Standing, stores: Sequence[Store]) -> list[Action]:
    # An item under a hold is revoked when it is free; the rest of the job goes on without it.
    answered = [t for t in job.tallies if t.phase is Phase.REVOKE and not t.of_items]
    if not answered or any(t.unfinished for t in answered):
        return []
    return [Move(JobState.SOURCE_REVOKED), OpenFind(1, _names(stores))]


def _previewed(job: Standing, stores: Sequence[Store]) -> list[Action]:
    if _unfinished(job, Phase.FIND):
        return []
    last = _last_pass(job)
    if last == 0 or job.found_in_last_pass:
        return [OpenFind(last + 1, _names(stores))]
    return [Move(JobState.CANCELLED)]


def _cleaned(job: Standing, stores: Sequence[Store]) -> list[Action]:
    required = [store for store in stores if store.required and store.name not in job.waived]
    if _unfinished(job, Phase.FIND, required):
        return []
    last = _last_pass(job)
    for number in range(1, max(1, last) + 1):
        finding = {t.adapter for t in job.tallies if (t.phase, t.find_pass, t.of_items) == (Phase.FIND, number, False)}
        late = tuple(store.name for store in stores if store.name not in finding)
        if late:  # an adapter that was registered while the job ran
            return [NewRound(_names(stores))] if _has(job, Phase.VERIFY) else [OpenFind(number, late)]
    # What was made from what was made: a pass finds it that looks from all that the one before has found.
    if job.found_in_last_pass:
        return [OpenFind(last + 1, _names(stores))]
    # A store that nobody waits for is erased in once it has been looked through, if that is before the last look.
    looked = [s for s in stores if s.required or not _unfinished(job, Phase.FIND, [s])]
    if job.unopened or (not _has(job, Phase.VERIFY) and set(_names(looked)) - _adapters(job, Phase.ERASE)):
        first: list[Action] = [Move(JobState.DERIVED_CLEANUP)] if job.state is JobState.SOURCE_REVOKED else []
        return [*first, OpenErase(_names(looked))]
    if _unfinished(job, Phase.ERASE, required) or _unfinished(job, Phase.REVOKE, required):
        return []
    if not _has(job, Phase.VERIFY):
        return [OpenVerify(_names(looked))]
    if _unfinished(job, Phase.VERIFY, required):
        return []
    if job.seen_present:
        return [NewRound(_names(stores))]
    done: list[Action] = [Move(JobState.VERIFIED)]
    return done if job.open_windows else [*done, Move(JobState.COMPLETED)]


def _names(stores: Sequence[Store]) -> tuple[str, ...]:
    return tuple(store.name for store in stores)


def _last_pass(job: Standing) -> int:
    return max((t.find_pass for t in job.tallies if t.phase is Phase.FIND and not t.of_items), default=0)


def _adapters(job: Standing, phase: Phase) -> frozenset[str]:
    return frozenset(t.adapter for t in job.tallies if t.phase is phase)


def _has(job: Standing, phase: Phase) -> bool:
    return bool(_adapters(job, phase))


def _unfinished(job: Standing, phase: Phase, among: Sequence[Store] | None = None) -> bool:
    names = None if among is None else _names(among)
    return any(t.unfinished for t in job.tallies if t.phase is phase and (names is None or t.adapter in names))
