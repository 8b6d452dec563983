"""Accepting a request: check it, hash what is personal, write the job. It is visible before any message."""

from __future__ import annotations

import calendar
import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import structlog

from orchestrator.domain.abilities import Expired
from orchestrator.domain.codes import CrashPoint, Reason
from orchestrator.domain.errors import InvalidRequest
from orchestrator.domain.job import NewJob, Purpose, Trigger
from orchestrator.domain.ports import Clock, Crash, Ledger
from orchestrator.domain.scope import Scope
from orchestrator.domain.selector import Selector, SelectorKind
from orchestrator.gate.fingerprint import MIN_LETTERS, candidate_tokens, fold

EXPIRY: Final = "expiry"
REFERENCE: Final = re.compile(r"[a-z0-9][a-z0-9._/-]{0,127}")
_WORD: Final = re.compile(r"\w+")
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
    log: Any = field(default_factory=structlog.get_logger)  # structlog's bound logger: its own type is Any


def accept(request: Request, using: Acceptance) -> tuple[UUID, bool]:
    """Write the job of a request; give its id and whether it is new.

    Raises `InvalidRequest` for a reference that does not match the pattern or repeats what is
    to be forgotten, and `IdempotencyConflict` for a key that was used for another request.
    """
    return accept_all([request], using)[0]


def accept_all(requests: Sequence[Request], using: Acceptance) -> Sequence[tuple[UUID, bool]]:
    """Write the jobs of requests, all or none of them; otherwise as `accept`."""
    answers = using.ledger.accept([_job(request, using) for request in requests])
    using.crash(CrashPoint.AFTER_ACCEPT, "accept")
    for request, (job, new) in zip(requests, answers, strict=True):
        if new:
            using.log.info("job.accepted", job_id=str(job), purpose=request.purpose.value)
    return answers


def accept_expired(found: Sequence[Expired], using: Acceptance) -> Sequence[UUID]:
    """Write the jobs of scopes in which something has expired; give the ids of those that are new."""
    jobs = []
    for each in found:
        asked = Request(
            scope=each.scope, selector=Selector(kind=SelectorKind.EXPIRED), reason=Reason.EXPIRED, requested_by=EXPIRY
        )
        # Opened once for the same: what is due is part of what the job is for.
        jobs.append(replace(_job(asked, using), payload_sha256=using.ref(EXPIRY, each.mark)))
    new = using.ledger.expire(jobs)
    using.crash(CrashPoint.AFTER_ACCEPT, EXPIRY)
    for job in new:
        using.log.info("job.accepted", job_id=str(job), trigger=Trigger.EXPIRY.value)
    return new


def _job(request: Request, using: Acceptance) -> NewJob:
    check_reference(request.reference, request.scope.user, request.selector)
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


def check_reference(reference: str | None, user: str, selector: Selector | None = None) -> None:
    """Raise `InvalidRequest` for a reference that does not match the pattern, or repeats what is to be forgotten.

    It may share no distinctive word with the user's id or the selection, and may not hold all
    of the selection. What leads to a source is not the source: `chat/turn-20` may ask to forget `chat/turn-6`.
    """
    if reference is None:
        return
    if not REFERENCE.fullmatch(reference):
        message = "the reference must match [a-z0-9][a-z0-9._/-]{0,127}: a case or message id, never a sentence"
        raise InvalidRequest(message, field="reference")
    if user.casefold() in reference:
        message = "the reference repeats the user's id; the ledger must not keep it: use a case number"
        raise InvalidRequest(message, field="reference")
    value = "" if selector is None else selector.value or ""
    named = value.rpartition("/")[2] if selector is not None and selector.kind is SelectorKind.SOURCE else value
    forgotten = _distinctive(user) | _distinctive(named)
    if not forgotten.isdisjoint(_distinctive(reference)) or _holds(reference, value):
        message = (
            "the reference shares a word with what is to be forgotten; the ledger must not keep it: use a case number"
        )
        raise InvalidRequest(message, field="reference")


def _distinctive(text: str) -> frozenset[str]:
    """Give the words of a text that may tell whose it is: a short number or a short common word does not."""
    return frozenset(token for token in candidate_tokens(text) if len(token) >= MIN_LETTERS)


def _holds(reference: str, value: str) -> bool:
    """Tell whether a reference is a value, or holds its words, if there are several, in their order."""
    inner, outer = _WORD.findall(fold(value)), _WORD.findall(reference)
    places = range(len(outer) - len(inner) + 1) if len(inner) > 1 else ()
    return any(outer[at : at + len(inner)] == inner for at in places) or fold(value) == reference


def _payload(request: Request, ref: Ref) -> str:
    """Hash what the request asks for: a keyed hash inside, so that guessing the text gives nothing."""
    selector = request.selector
    asked = ref("payload", request.scope.canonical(), selector.kind.value, selector.value)
    told = [asked, request.reason.value, request.reference, request.purpose.value]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()
