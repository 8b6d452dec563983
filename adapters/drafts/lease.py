"""Who runs a draft job: one runner at a time, until its lease has ended, and whoever claims it then.

Principles: a claim gives the job an owner of its own, and every later write is refused to
whoever is not that owner. A runner that dies leaves its lease to end by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from uuid import uuid4

import sqlalchemy as sa

from adapters.drafts.errors import JobCancelled, JobLeased, LeaseLost, MemoryChanged
from adapters.drafts.step import State, Step
from adapters.drafts.tables import draft_jobs
from adapters.drafts.view import known, made
from adapters.memory.batch import Found
from orchestrator import Scope

LEASE: Final = 2.0
"""Seconds."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A job that a runner has, and the steps that were done when it was claimed."""

    scope: Scope
    job: str
    owner: str
    lease_us: int
    done: frozenset[Step]


def claim(connection: sa.Connection, scope: Scope, name: str, *, now_us: int, lease_us: int) -> Claim | None:
    """Take a job, at the very instant at which the lease of another runner ends or later; None where it is published.

    Raises `JobUnknown`, `JobLeased`, `MemoryChanged` for one that has failed, and `JobCancelled`.
    """
    job = known(connection, scope, name)
    _goes_on(job)
    if job.state == State.PUBLISHED.value:
        return None
    if job.lease_until_us is not None and job.lease_until_us > now_us:
        raise JobLeased
    done = frozenset(Step(row.step) for row in made(connection, job))
    taken = Claim(scope=scope, job=name, owner=str(uuid4()), lease_us=lease_us, done=done)
    renew(connection, job, taken, now_us)
    return taken


def owned(connection: sa.Connection, claim: Claim) -> Found:
    """Give the job of a claim that still stands; raises as `claim`, and `LeaseLost`."""
    job = known(connection, claim.scope, claim.job)
    _goes_on(job)
    if job.lease_owner != claim.owner:
        raise LeaseLost
    return job


def renew(connection: sa.Connection, job: Found, claim: Claim, now_us: int) -> None:
    """Let the lease of a claim run from now."""
    _set(connection, job, {"lease_owner": claim.owner, "lease_until_us": now_us + claim.lease_us})


def end(connection: sa.Connection, job: Found) -> None:
    """Let a job be published, which nobody runs any more."""
    _set(connection, job, {"state": State.PUBLISHED.value, "lease_owner": None, "lease_until_us": None})


def _goes_on(job: Found) -> None:
    if job.state == State.FAILED.value:
        raise MemoryChanged
    if job.state == State.CANCELLED.value:
        raise JobCancelled


def _set(connection: sa.Connection, job: Found, values: dict[str, str | int | None]) -> None:
    j = draft_jobs.c
    connection.execute(draft_jobs.update().where(j.tenant == job.tenant, j.handle == job.handle).values(values))
