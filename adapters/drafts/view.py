"""A draft job as it is told: where it stands, and what it has made so far."""

from __future__ import annotations

from dataclasses import dataclass, field

import sqlalchemy as sa

from adapters.drafts.errors import MEMORY_CHANGED, JobUnknown
from adapters.drafts.inputs import MAX_NAME
from adapters.drafts.lineage import read
from adapters.drafts.step import State, Step, kind_of
from adapters.drafts.tables import draft_jobs, drafts
from adapters.memory.batch import Found
from adapters.memory.facts import check_text, place_of
from orchestrator import Scope, Target


@dataclass(frozen=True, kw_only=True, slots=True)
class Draft:
    """A checkpoint or the report: what a step has made, and everything that it was made from."""

    target: Target
    step: Step
    text: str = field(repr=False)
    used: tuple[Target, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class JobView:
    """A draft job. `memory_expires` is in seconds since 1970, None where nothing that it used expires.

    `used` are the records that it was submitted over; `failure` says what to do where it has failed.
    """

    job: str
    state: State
    memory_rev: int
    memory_expires: float | None
    lease_until_us: int | None
    used: tuple[Target, ...]
    drafts: tuple[Draft, ...]

    @property
    def failure(self) -> str | None:
        """Give the reason for which it has failed: there is but one."""
        return MEMORY_CHANGED if self.state is State.FAILED else None

    @property
    def report(self) -> Draft | None:
        """Give what was published, while it is there."""
        return next((draft for draft in self.drafts if draft.step is Step.PUBLISH), None)


def job_of(connection: sa.Connection, scope: Scope, name: str) -> Found | None:
    """Give the row of a job of exactly this scope; raises `InvalidRequest` for what can be no id of one."""
    check_text("job", name, MAX_NAME)
    j, place = draft_jobs.c, place_of(scope)
    here = (j.tenant == scope.tenant) & (j.user_id == scope.user) & (j.project == place["project"])
    return connection.execute(sa.select(draft_jobs).where(here, j.name == name)).one_or_none()


def known(connection: sa.Connection, scope: Scope, name: str) -> Found:
    """Give the row of a job; raises `JobUnknown`, for a foreign one as for none."""
    job = job_of(connection, scope, name)
    if job is None:
        raise JobUnknown
    return job


def made(connection: sa.Connection, job: Found) -> list[Found]:
    """Give what a job has made so far, in the order of its steps."""
    d, steps = drafts.c, list(Step)
    rows = connection.execute(sa.select(drafts).where(d.tenant == job.tenant, d.job == job.handle))
    return sorted(rows, key=lambda row: steps.index(Step(row.step)))


def view(connection: sa.Connection, job: Found) -> JobView:
    """Tell a job."""
    rows = made(connection, job)
    used = read(connection, job.tenant, [job.handle, *(row.handle for row in rows)])
    return JobView(
        job=job.name,
        state=State(job.state),
        memory_rev=job.memory_rev,
        memory_expires=job.memory_expires,
        lease_until_us=job.lease_until_us,
        used=tuple(used.get(job.handle, ())),
        drafts=tuple(_draft(row, used.get(row.handle, ())) for row in rows),
    )


def target_of(row: Found) -> Target:
    """Name a draft; it has one version."""
    return Target(kind=kind_of(row.step), id=row.handle)


def _draft(row: Found, used: list[Target] | tuple[()]) -> Draft:
    return Draft(target=target_of(row), step=Step(row.step), text=row.text, used=tuple(used))
