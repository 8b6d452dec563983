"""Erasing: exact handles with the tenant in the statement itself, one statement for a whole batch.

Principles: an order without targets erases nothing. What was made from a draft goes by its own
handle, never by a rule of the database. A job whose text is gone stays as a row without one, and
fails if it was not published: what it was begun with is not there any more. An approval whose
payload is gone is void, unless it was sent. What is counted is what the statement gave back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import sqlalchemy as sa

from adapters.drafts import lineage
from adapters.drafts.approvals.row import void_of
from adapters.drafts.schema import is_here
from adapters.drafts.step import APPROVAL, INPUT, KINDS, State, Step, kind_of
from adapters.drafts.tables import draft_jobs, drafts
from adapters.memory.batch import change, columns, look_up
from orchestrator import Erased, EraseOrder, Residual, Target

_DRAFT: Final = columns(tenant=str, handle=str, kind=str)
_KIND: Final = {step.value: kind_of(step) for step in Step} | {kind: kind for kind in (INPUT, APPROVAL)}


def erase(connection: sa.Connection, orders: Sequence[EraseOrder], residuals: frozenset[Residual]) -> list[Erased]:
    """Delete the targets of all orders and count them for each: of two that name one draft, the first erased it.

    `residuals` are left of every draft that goes.
    """
    wanted = [[_draft(o.scope.tenant, t) for t in o.targets if _may_be_here(t)] for o in orders]
    handles = list(dict.fromkeys(draft for of_order in wanted for draft in of_order))
    rows = look_up(connection, _DRAFT, handles, _delete) if handles and is_here(connection) else []
    lineage.drop(connection, [(row.tenant, row.handle) for row in rows])
    behind = sorted({(row.tenant, row.job) for row in rows})
    for build in (_stop, void_of):
        change(connection, lineage.HANDLE, behind, build)
    gone = {(row.tenant, row.handle, kind_of(row.step)) for row in rows}
    answers = []
    for order, of_order in zip(orders, wanted, strict=True):
        mine = gone.intersection(of_order)
        gone -= mine
        # Whoever in the tenant owns it: what was not given back is not there.
        absent = len(order.targets) - len(mine)
        answers.append(Erased(erased=len(mine), already_absent=absent, residuals=residuals if mine else frozenset()))
    return answers


def _may_be_here(target: Target) -> bool:
    return target.kind in KINDS and target.version == 0


def _draft(tenant: str, target: Target) -> tuple[str, str, str]:
    return tenant, target.id, target.kind


def _delete(given: sa.FromClause) -> sa.Executable:
    d = drafts.c
    kind = sa.case(_KIND, value=d.step)
    these = sa.tuple_(d.tenant, d.handle, kind).in_(sa.select(given))
    return drafts.delete().where(these).returning(d.tenant, d.handle, d.job, d.step)


def _stop(given: sa.FromClause) -> sa.Update:
    j = draft_jobs.c
    these = sa.tuple_(j.tenant, j.handle).in_(sa.select(given)) & (j.state == State.OPEN.value)
    return draft_jobs.update().where(these).values(state=State.FAILED.value, lease_owner=None, lease_until_us=None)
