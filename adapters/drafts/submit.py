"""Submitting a draft job: what it is made from, the revision, and the earliest expiry, in one transaction.

Principle: an id is used once. Submitted again over the same memory it is the same job; over
another one it is refused, so that no job is ever moved to what it was not begun with.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from uuid import uuid4

import sqlalchemy as sa

from adapters.drafts import lineage
from adapters.drafts.errors import JobTaken, ReportUnusable
from adapters.drafts.step import State
from adapters.drafts.tables import draft_jobs
from adapters.drafts.validity import is_current
from adapters.drafts.view import JobView, job_of, view
from adapters.memory.batch import Found
from adapters.memory.facts import Fact, current, place_of, revision
from adapters.memory.sources import position_of
from adapters.memory.tables import KIND
from orchestrator import InvalidRequest, Scope, Target


def submit(
    connection: sa.Connection,
    scope: Scope,
    name: str,
    *,
    now: float,
    keys: Collection[str] | None,
    upon: Collection[str],
) -> JobView:
    """Write a job down, or give the one that is there; `now` is in seconds since 1970."""
    rev = revision(connection, scope)
    facts = _chosen(current(connection, scope, now), keys)
    reports = [_report(connection, scope, before, rev, now) for before in sorted(set(upon))]
    used = {Target(kind=KIND, id=fact.id, version=fact.version) for fact in facts} | {r[0] for r in reports}
    expires = _earliest([fact.expires for fact in facts], [report[1] for report in reports])
    job = job_of(connection, scope, name)
    if job is None:
        row = {
            **place_of(scope),
            "handle": str(uuid4()),
            "name": name,
            "state": State.OPEN.value,
            "memory_rev": rev,
            "memory_expires": expires,
            "position": position_of(connection, scope.tenant),
        }
        job = connection.execute(draft_jobs.insert().values(row).returning(draft_jobs)).one()
        lineage.write(connection, scope.tenant, job.handle, used)
    told = view(connection, job)
    if (told.memory_rev, told.memory_expires, set(told.used)) != (rev, expires, used):
        raise JobTaken
    return told


def _chosen(facts: Sequence[Fact], keys: Collection[str] | None) -> list[Fact]:
    if keys is None:
        return list(facts)
    if not set(keys) <= {fact.key for fact in facts}:
        message = "keys must name facts that hold now in this scope"
        raise InvalidRequest(message, field="keys")
    return [fact for fact in facts if fact.key in keys]


def _report(
    connection: sa.Connection, scope: Scope, name: str, revision: int, now: float
) -> tuple[Target, float | None]:
    """Give the report of an earlier job and when it expires: what could not be published now is not built on."""
    job: Found | None = job_of(connection, scope, name)
    report = None if job is None else view(connection, job).report
    if job is None or report is None or not is_current(job, revision, now):
        raise ReportUnusable
    return report.target, job.memory_expires


def _earliest(of_facts: Sequence[float], of_reports: Sequence[float | None]) -> float | None:
    ends = [*of_facts, *(end for end in of_reports if end is not None)]
    return min((end for end in ends if not math.isinf(end)), default=None)
