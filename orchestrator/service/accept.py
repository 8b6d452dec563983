"""Accepting a request: check it, hash what is personal, write the job. It is visible before any message."""

from __future__ import annotations

import calendar
import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from orchestrator.domain.codes import CrashPoint, Reason
from orchestrator.domain.errors import InvalidRequest
from orchestrator.domain.job import NewJob, Purpose
from orchestrator.domain.ports import Clock, Crash, Ledger
from orchestrator.domain.scope import Scope
from orchestrator.domain.selector import Selector

REFERENCE: Final = re.compile(r"[a-z0-9][a-z0-9._/-]{0,127}")
Ref = Callable[..., str]
"""A keyed hash under the one reference key that does not rotate."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """An erasure request as it comes in: whose data, which of it, why, and who asks."""

    scope: Scope
    selector: Selector
    reason: Reason
    requested_by: str
    reference: str | None = None
    idempotency_key: str | None = None
    purpose: Purpose = Purpose.ERASE


@dataclass(frozen=True, kw_only=True)
class Acceptance:
    """What accepting needs from outside."""

    ledger: Ledger
    clock: Clock
    new_id: Callable[[], UUID]
    ref: Ref
    due: Callable[[datetime], datetime]
    crash: Crash


def accept(request: Request, using: Acceptance) -> tuple[UUID, bool]:
    """Write the job of a request; give its id and whether it is new.

    Raises `InvalidRequest` for a reference that does not match the pattern or repeats the
    user's name, and `IdempotencyConflict` for a key that was used for another request.
    """
    return accept_all([request], using)[0]


def accept_all(requests: Sequence[Request], using: Acceptance) -> Sequence[tuple[UUID, bool]]:
    """Write the jobs of requests, all or none of them; otherwise as `accept`."""
    answers = using.ledger.accept([_job(request, using) for request in requests])
    using.crash(CrashPoint.AFTER_ACCEPT, "accept")
    return answers


def _job(request: Request, using: Acceptance) -> NewJob:
    check_reference(request.reference, request.scope.user)
    scope, selector, ref, now = request.scope, request.selector, using.ref, using.clock.now()
    key = request.idempotency_key
    return NewJob(
        id=using.new_id(),
        purpose=request.purpose,
        scope=scope,
        selector=selector,
        subject_ref=subject_ref(ref, scope),
        selector_ref=ref("selector", scope.canonical(), selector.kind.value, selector.value),
        reason=request.reason,
        reference=request.reference,
        requested_by_ref=ref("requester", request.requested_by),
        idempotency_ref=None if key is None else ref("idempotency", scope.tenant, key),
        payload_sha256=_payload(request, ref),
        requested_at=now,
        due_at=using.due(now),
    )


def subject_ref(ref: Ref, scope: Scope) -> str:
    """Name a data subject, whatever the project, without saying who."""
    return ref("subject", scope.tenant, scope.user)


def one_month_later(at: datetime) -> datetime:
    """Give the same day of the next month, or its last day where it is shorter (GDPR art. 12(3))."""
    year, month = (at.year, at.month + 1) if at.month < 12 else (at.year + 1, 1)  # noqa: PLR2004 - months of a year
    return at.replace(year=year, month=month, day=min(at.day, calendar.monthrange(year, month)[1]))


def days_later(days: int) -> Callable[[datetime], datetime]:
    """Give a deadline rule of so many days."""
    return lambda at: at + timedelta(days=days)


def check_reference(reference: str | None, user: str) -> None:
    """Raise `InvalidRequest` for a reference that does not match the pattern or repeats the user's name."""
    if reference is None:
        return
    if not REFERENCE.fullmatch(reference):
        message = "the reference must match [a-z0-9][a-z0-9._/-]{0,127}: a case or message id, never a sentence"
        raise InvalidRequest(message, field="reference")
    if user.casefold() in reference:
        message = "the reference repeats the user's id; the ledger must not keep it: use a case number"
        raise InvalidRequest(message, field="reference")


def _payload(request: Request, ref: Ref) -> str:
    """Hash what the request asks for: a keyed hash inside, so that guessing the text gives nothing."""
    selector = request.selector
    asked = ref("payload", request.scope.canonical(), selector.kind.value, selector.value)
    told = [asked, request.reason.value, request.reference, request.purpose.value]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()
