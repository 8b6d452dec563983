"""Reports that something may be made from now, by the id of the job that published them."""

from __future__ import annotations

import sqlalchemy as sa

from adapters.drafts.errors import ReportUnusable
from adapters.drafts.validity import is_current
from adapters.drafts.view import Draft, job_of, view
from adapters.memory.batch import Found
from orchestrator import Scope


def current_report(
    connection: sa.Connection, scope: Scope, name: str, revision: int, now: float
) -> tuple[Found, Draft]:
    """Give a job and its report; raises `ReportUnusable` for what could not be published now."""
    job = job_of(connection, scope, name)
    report = None if job is None else view(connection, job).report
    if job is None or report is None or not is_current(job, revision, now):
        raise ReportUnusable
    return job, report
