"""A candidate as it is handed out, and the rows that it is read from."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, TypeAlias

import sqlalchemy as sa

from adapters.memory.batch import Found
from adapters.memory.candidates.errors import CandidateUnknown
from adapters.memory.facts import Fact
from adapters.memory.instant import EPOCH
from adapters.memory.tables import USER_WIDE, fact_candidates
from orchestrator import Gate, InvalidRequest, Scope, Selector, SelectorKind

CONFIRMATION: Final = "confirmation"
"""What stands in the place of a rule where the user has confirmed."""
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


class CandidateState(StrEnum):
    """Where a candidate stands; there is no way out of the last four."""

    PENDING = "pending"
    ACCEPTED = "accepted"  # it is a version of a fact
    REJECTED = "rejected"
    BLOCKED = "blocked"  # what it was learned from was forgotten
    EXPIRED = "expired"  # nobody accepted it in time; told by the clock, never stored


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """What was proposed. Only a pending one has a value; `expires` is in seconds since 1970.

    `decided_by` is "confirmation", in the message `decided_in`, or the name of a rule; `version` is that of the fact.
    """

    id: str
    key: str
    value: str | None = field(repr=False)
    source: str
    expires: float
    proposed_by: str
    proposed_at: datetime
    state: CandidateState
    decided_by: str | None
    decided_in: str | None
    version: int | None


Rule: TypeAlias = Callable[[Fact | None, Candidate], bool]
"""Tells from the current fact of the key, or none, whether a candidate may replace it; it has no other effect."""


def handle_of(gate: Gate, scope: Scope, key: str, value: str, source: str, expires: float) -> str:
    """Name a proposal without saying what it is: the same from the same source has one name, whoever proposes it."""
    said = (key, value, source, float(expires).hex())
    return gate.handle(scope.tenant, "candidate", scope.canonical(), *said)


def of_scope(scope: Scope) -> tuple[sa.ColumnElement[bool], ...]:
    """Give the condition for the candidates of exactly this scope."""
    c = fact_candidates.c
    return c.tenant == scope.tenant, c.user_id == scope.user, c.project == (scope.project or USER_WIDE)


def read(connection: sa.Connection, scope: Scope, candidate: str, now: float) -> Candidate:
    """Give one candidate; raises `CandidateUnknown` for what is another user's as for what is none."""
    check_id(candidate)
    query = sa.select(fact_candidates).where(*of_scope(scope), fact_candidates.c.handle == candidate)
    row = connection.execute(query).one_or_none()
    if row is None:
        raise CandidateUnknown
    return of_row(row, now)


def of_row(row: Found, now: float) -> Candidate:
    """Give the candidate of a row as it stands at a time."""
    state = CandidateState(row.state)
    if state is CandidateState.PENDING and row.expires <= now:
        state = CandidateState.EXPIRED
    return Candidate(
        id=row.handle,
        key=row.key,
        value=row.value if state is CandidateState.PENDING else None,
        source=row.source,
        expires=row.expires,
        proposed_by=row.proposed_by,
        proposed_at=EPOCH + timedelta(microseconds=row.proposed_at_us),
        state=state,
        decided_by=row.decided_by,
        decided_in=row.decided_in,
        version=row.version,
    )


def check_id(candidate: str) -> None:
    """Raise `InvalidRequest` for what can be the id of no record: a database could not even look for it."""
    Selector(kind=SelectorKind.MEMORY, value=candidate)


def check_name(field_: str, name: object) -> None:
    """Raise `InvalidRequest` for what is no name of a program or rule."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        message = f"{field_} must be a name of at most 64 lower-case letters, digits, dots, dashes and underscores"
        raise InvalidRequest(message, field=field_)
