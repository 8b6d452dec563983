"""Whether a draft job may go on: asked before every step, and again in the transaction that keeps what the step made.

Principles: any change of the scope ends it, whatever it used; expiry alone does as well, at
equality. There is no way to move a job to another revision: that would stamp an old draft as
current.
"""

from __future__ import annotations

import sqlalchemy as sa

from adapters.drafts.lineage import read
from adapters.drafts.records import are_there
from adapters.drafts.step import State
from adapters.drafts.tables import draft_jobs
from adapters.memory.batch import Found
from adapters.memory.facts import revision, scope_of


def holds(connection: sa.Connection, job: Found, now: float) -> bool:
    """Tell whether the scope is as it was when the job was submitted; `now` is in seconds since 1970."""
    scope = scope_of(job.tenant, job.user_id, job.project)
    if not is_current(job, revision(connection, scope), now):
        return False
    # A job that nothing was used for has nothing else to be checked.
    return are_there(connection, job.tenant, read(connection, job.tenant, [job.handle]).get(job.handle, []))


def is_current(job: Found, revision: int, now: float) -> bool:
    """Tell whether a job was submitted under this revision, and nothing that it used has expired."""
    return bool(job.memory_rev == revision and (job.memory_expires is None or job.memory_expires > now))


def fail(connection: sa.Connection, job: Found) -> None:
    """Let a job fail for good, and give up its lease; one that has ended already stays as it is."""
    j = draft_jobs.c
    open_ = (j.tenant == job.tenant) & (j.handle == job.handle) & (j.state == State.OPEN.value)
    ended = {"state": State.FAILED.value, "lease_owner": None, "lease_until_us": None}
    connection.execute(draft_jobs.update().where(open_).values(ended))
