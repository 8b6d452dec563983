"""The rows of approvals: reading one of exactly a scope, and changing its state where nothing was handed to a tool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import sqlalchemy as sa

from adapters.drafts.approvals.inputs import check_name
from adapters.drafts.approvals.state import WAITING, ApprovalState
from adapters.drafts.errors import ApprovalUnknown
from adapters.drafts.tables import approvals
from adapters.memory.batch import Found
from adapters.memory.facts import place_of
from orchestrator import InvalidRequest, Scope

_WAITING: Final = tuple(state.value for state in WAITING)


def row_of(connection: sa.Connection, scope: Scope, name: str) -> Found | None:
    """Give an approval of exactly this scope by its id; raises `InvalidRequest` for what can be none."""
    check_name("approval", name)
    return connection.execute(sa.select(approvals).where(_of(scope), approvals.c.name == name)).one_or_none()


def known(connection: sa.Connection, scope: Scope, name: str) -> Found:
    """Give an approval; raises `ApprovalUnknown`, for a foreign one as for none."""
    row = row_of(connection, scope, name)
    if row is None:
        raise ApprovalUnknown
    return row


def page_of(connection: sa.Connection, scope: Scope, after: str | None, limit: int | None) -> Sequence[Found]:
    """Give the approvals of exactly this scope by id, behind `after`, and at most `limit`; None: from the first, all.

    Raises `InvalidRequest` for what can be no id, and for a limit below 1.
    """
    if limit is not None and limit < 1:
        message = "limit must be 1 or more"
        raise InvalidRequest(message, field="limit")
    query = sa.select(approvals).where(_of(scope)).order_by(approvals.c.name).limit(limit)
    if after is not None:
        check_name("after", after)
        query = query.where(approvals.c.name > after)
    return connection.execute(query).all()


def of_job(connection: sa.Connection, tenant: str, job: str) -> Sequence[Found]:
    """Give the approvals that are about the report of a job, which is named by its handle."""
    a = approvals.c
    return connection.execute(sa.select(approvals).where(a.tenant == tenant, a.job == job)).all()


def move(connection: sa.Connection, row: Found, state: ApprovalState, **values: str | int | None) -> None:
    """Change an approval that still waits; one that was sent or has ended stays as it is."""
    a = approvals.c
    here = (a.tenant == row.tenant) & (a.handle == row.handle) & a.state.in_(_WAITING)
    connection.execute(approvals.update().where(here).values(state=state.value, **values))


def void_of(given: sa.FromClause) -> sa.Update:
    """Build the statement that voids approvals which wait and whose payload has gone, by tenant and handle."""
    a = approvals.c
    these = sa.tuple_(a.tenant, a.handle).in_(sa.select(given)) & a.state.in_(_WAITING)
    return approvals.update().where(these).values(state=ApprovalState.VOID.value)


def _of(scope: Scope) -> sa.ColumnElement[bool]:
    a, place = approvals.c, place_of(scope)
    return (a.tenant == scope.tenant) & (a.user_id == scope.user) & (a.project == place["project"])
