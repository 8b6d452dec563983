"""A unit of work: the only thing that is claimed, retried, parked and receipted."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID, uuid5

from orchestrator.domain.codes import ErrorCode, Reason, Residual
from orchestrator.domain.contract import EraseOrder, Fingerprint, Reach, Target, Tombstone
from orchestrator.domain.retry import Park, RetryIn


class Phase(StrEnum):
    """What a unit asks its adapter for."""

    REVOKE = "revoke"
    FIND = "find"
    ERASE = "erase"
    VERIFY = "verify"
    CLOSE = "close"  # is a copy that could not be edited gone, now that its window has ended?


class Outcome(StrEnum):
    """What a receipt says was done or seen."""

    REVOKED = "revoked"
    ERASED = "erased"
    NOTHING_FOUND = "nothing_found"
    SCHEDULED = "scheduled"
    ABSENT = "absent"
    PRESENT = "present"
    CLOSED = "closed"


def unit_id(job: UUID, adapter: str, phase: Phase, page: int, round_: int) -> UUID:
    """Derive a unit's id from what it is: opening it twice gives one row, and a repeat has the same key."""
    return uuid5(job, f"{adapter}/{phase}/{page}/{round_}")


@dataclass(frozen=True, kw_only=True)
class Claimed:
    """A unit that this worker holds, with the order made of it."""

    order: EraseOrder
    adapter: str
    reason: Reason
    phase: Phase
    page: int
    find_pass: int
    known_from: tuple[str, int] | None  # adapter and page of the known targets of the order
    item: str | None  # the held item that it waited for
    last_round: bool
    epoch: int  # of the adapter's store when the order was built


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """What an adapter did, held against what find had written down."""

    outcome: Outcome
    expected: int
    erased: int = 0
    already_absent: int = 0
    scheduled: int = 0
    extra: int = 0
    remaining: int = 0
    residuals: frozenset[Residual] = frozenset()
    reach: Reach | None = None  # of a look
    scrub_run: str | None = None  # on which a physical reach rests


@dataclass(frozen=True, kw_only=True)
class Finished:
    """A unit that has answered: its receipt (none for find) and what it found or set."""

    claimed: Claimed
    receipt: Receipt | None
    targets: tuple[Target, ...] = ()
    tombstones: tuple[Tombstone, ...] = ()
    fingerprints: tuple[Fingerprint, ...] = ()
    windows: tuple[tuple[str, datetime], ...] = ()
    no_lineage: int = 0
    revision: int | None = None
    left: frozenset[str] = frozenset()
    cursor: str | None = None


@dataclass(frozen=True, kw_only=True)
class Failed:
    """A unit whose attempt failed, and what follows."""

    claimed: Claimed
    code: ErrorCode
    then: RetryIn | Park


Answered = Finished | Failed
