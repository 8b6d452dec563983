"""A deletion job: our durable record that carries one accepted request to its end."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from orchestrator.domain.codes import Reason, WaiverReason
from orchestrator.domain.contract import Role
from orchestrator.domain.scope import Scope
from orchestrator.domain.selector import Selector, SelectorKind
from orchestrator.domain.states import JobState


class Purpose(StrEnum):
    """What a job is for."""

    ERASE = "erase"
    PREVIEW = "preview"  # find only: counts, and nothing is changed


class Trigger(StrEnum):
    """What made a job."""

    REQUEST = "request"
    EXPIRY = "expiry"  # the clock: something has expired


class Result(StrEnum):
    """What a job came to; told from its receipts."""

    ERASED = "erased"
    NOTHING_FOUND = "nothing_found"
    WAIVED = "waived"  # something is left, in stores that somebody has waived by name


@dataclass(frozen=True, kw_only=True)
class Store:
    """An enabled adapter as the engine knows it before it opens anything."""

    name: str
    role: Role
    required: bool = True
    max_batch: int = 50


@dataclass(frozen=True, kw_only=True)
class NewJob:
    """An accepted request, ready to be written. `*_ref` are keyed hashes."""

    id: UUID
    purpose: Purpose
    scope: Scope
    selector: Selector
    subject_ref: str
    selector_ref: str
    reason: Reason
    reference: str | None
    requested_by_ref: str
    idempotency_ref: str | None
    payload_sha256: str
    requested_at: datetime
    due_at: datetime

    @property
    def trigger(self) -> Trigger:
        """What made it."""
        return Trigger.EXPIRY if self.selector.kind is SelectorKind.EXPIRED else Trigger.REQUEST


@dataclass(frozen=True, kw_only=True)
class Waiver:
    """Somebody's word that a job may pass a store that still holds something."""

    adapter: str
    reason: WaiverReason
    granted_by_ref: str


@dataclass(frozen=True, kw_only=True)
class WindowView:
    """A copy that cannot be edited, until when it lives, and when it was seen to be gone."""

    adapter: str
    copy: str
    until: datetime
    closed_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class JobView:
    """What anybody may know of a job: ids, codes, counts and times."""

    id: str
    tenant: str
    state: JobState
    purpose: Purpose
    trigger: Trigger
    selector: str
    reason: str
    reference: str | None
    round: int
    requested_at: datetime
    due_at: datetime
    verified_at: datetime | None
    completed_at: datetime | None
    parked: tuple[tuple[str, str, str], ...]  # adapter, phase, reason
    held: bool  # a hold keeps a unit of it waiting
    waived: tuple[str, ...]  # adapters that the job may pass
    windows: tuple[WindowView, ...]  # copies that outlive the erasure
    last_error: str | None  # code of the latest failed attempt of a unit that is not done
    failed_in: str | None  # adapter of that unit
    attempts: int
    result: Result | None

    @property
    def waits_for_a_person(self) -> bool:
        """Tell whether a unit is parked or held, so that not everything moves by itself."""
        return bool(self.parked) or self.held


@dataclass(frozen=True, kw_only=True)
class ReceiptView:
    """A receipt as it is shown."""

    adapter: str
    phase: str
    outcome: str
    page: int
    round: int
    attempt: int
    expected: int
    erased: int
    already_absent: int
    scheduled: int
    extra: int
    remaining: int
    reach: str | None  # how far a verify looked
    residuals: tuple[str, ...]
    finished_at: datetime
