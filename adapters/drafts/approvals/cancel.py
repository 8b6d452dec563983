"""Cancelling a draft job or an action that waits: it goes no further, and that is all.

Principle: cancelling erases nothing and calls nothing back. What was handed to a tool may be with
somebody else, so it is told as outstanding, whether a receipt came or not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa

from adapters.drafts.approvals.row import move, of_job
from adapters.drafts.approvals.state import ApprovalState
from adapters.drafts.step import State
from adapters.drafts.tables import draft_jobs
from adapters.memory.batch import Found

EXTERNAL_COPY: Final = "external_copy"


@dataclass(frozen=True, kw_only=True, slots=True)
class Cancelled:
    """What cancelling came to: where the job or action stands now, and what it has not reached."""

    state: str
    outstanding: tuple[str, ...]


def outstanding(*states: str) -> tuple[str, ...]:
    """Name what may be in other hands, by the states of the actions that are asked about."""
    return (EXTERNAL_COPY,) if ApprovalState.DISPATCHED.value in states else ()


def cancel_job(connection: sa.Connection, job: Found) -> Cancelled:
    """Cancel a job that is open, and each action about its report that waits."""
    j, ended = draft_jobs.c, State(job.state)
    if ended is State.OPEN:
        ended = State.CANCELLED
        here = (j.tenant == job.tenant) & (j.handle == job.handle)
        connection.execute(
            draft_jobs.update().where(here).values(state=ended.value, lease_owner=None, lease_until_us=None)
        )
    asked = of_job(connection, job.tenant, job.handle)
    for row in asked:
        move(connection, row, ApprovalState.VOID)
    return Cancelled(state=ended.value, outstanding=outstanding(*(row.state for row in asked)))


def cancel_approval(connection: sa.Connection, row: Found) -> Cancelled:
    """Cancel an action that waits; one that was sent stays as it is."""
    move(connection, row, ApprovalState.VOID)
    waits = row.state in {ApprovalState.PENDING.value, ApprovalState.APPROVED.value}
    state = ApprovalState.VOID.value if waits else str(row.state)
    return Cancelled(state=state, outstanding=outstanding(row.state))
