"""Submitting a draft job: what it is made from, the revision, and the earliest expiry, in one transaction.

Principle: an id is used once. Submitted again over the same memory it is the same job; over
another one it is refused, so that no job is ever moved to what it was not begun with.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from uuid import uuid4

import sqlalchemy as sa

from adapters.drafts import dependencies, lineage
from adapters.drafts.errors import JobTaken
from adapters.drafts.inputs import check_steps
from adapters.drafts.redo import take_over
from adapters.drafts.reports import current_report
from adapters.drafts.step import State, Step
from adapters.drafts.tables import draft_jobs
from adapters.drafts.view import JobView, job_of, known, view
from adapters.memory.facts import Fact, current, place_of, revision
from adapters.memory.sources import position_of
from adapters.memory.tables import KIND
from orchestrator import Gate, InvalidRequest, Scope, Target


def submit(
    connection: sa.Connection,
    gate: Gate,
    scope: Scope,
    name: str,
    *,
    now: float,
    keys: Collection[str] | None,
    upon: Collection[str],
    steps: Mapping[Step, Collection[str]] | None,
    redo: str | None,
) -> JobView:
    """Write a job down, or give the one that is there; `now` is in seconds since 1970."""
    check_steps(keys, steps)
    rev, there = revision(connection, scope), current(connection, scope, now)
    reports = [current_report(connection, scope, before, rev, now) for before in sorted(set(upon))]
    of_reports = {report.target for _, report in reports}
    of_steps = {step: _chosen(there, named) for step, named in (steps or {}).items()}
    facts = _used(there, keys, of_steps)
    used = _targets(facts) | of_reports
    said = {step: _targets(each) | (of_reports if step is Step.COLLECT else set()) for step, each in of_steps.items()}
    expires = _earliest([fact.expires for fact in facts], [job.memory_expires for job, _ in reports])
    old = None if redo is None else known(connection, scope, redo)
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
        dependencies.write(connection, scope.tenant, job.handle, said)
        if old is not None:
            take_over(connection, gate, old, job, said)
    told = view(connection, job)
    begun_with = (told.memory_rev, told.memory_expires, set(told.used))
    if begun_with != (rev, expires, used) or dependencies.read(connection, scope.tenant, job.handle) != said:
        raise JobTaken
    return told


def _used(there: Sequence[Fact], keys: Collection[str] | None, of_steps: Mapping[Step, Sequence[Fact]]) -> list[Fact]:
    """Give what a job uses: what its steps do, where all is said of them that a step may use."""
    if Step.COLLECT not in of_steps:
        return _chosen(there, keys)
    named = {fact.key for each in of_steps.values() for fact in each}
    return _chosen(there, named)


def _chosen(facts: Sequence[Fact], keys: Collection[str] | None) -> list[Fact]:
    if keys is None:
        return list(facts)
    if not set(keys) <= {fact.key for fact in facts}:
        message = "keys must name facts that hold now in this scope"
        raise InvalidRequest(message, field="keys")
    return [fact for fact in facts if fact.key in keys]


def _targets(facts: Collection[Fact]) -> set[Target]:
    return {Target(kind=KIND, id=fact.id, version=fact.version) for fact in facts}


def _earliest(of_facts: Sequence[float], of_reports: Sequence[float | None]) -> float | None:
    ends = [*of_facts, *(end for end in of_reports if end is not None)]
    return min((end for end in ends if not math.isinf(end)), default=None)
