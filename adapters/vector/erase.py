"""Erasing: exact handles with tenant and user in the statement itself, one statement for a whole batch.

Principles: an order without targets erases nothing. What is counted is what the statement gave
back; a point of another user of the tenant is left over, and not absent. Of each vector that
goes a sketch stays, in the same transaction, until a look has found nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import sqlalchemy as sa

from adapters.memory.batch import columns, insert_or_replace, look_up
from adapters.vector.probe import sketch
from adapters.vector.tables import KIND, points, probes
from orchestrator import Erased, EraseOrder, Gate, Residual

_HANDLE: Final = columns(tenant=str, user_id=str, id=str)
HANDLE: Final = columns(tenant=str, id=str)


def erase(
    connection: sa.Connection, gate: Gate, orders: Sequence[EraseOrder], residuals: frozenset[Residual]
) -> list[Erased]:
    """Delete the targets of all orders and count them for each: of two that name one point the first erased it.

    `residuals` are left of every point that goes.
    """
    wanted = [[(o.scope.tenant, o.scope.user, t.id) for t in o.targets if t.kind == KIND] for o in orders]
    handles = list(dict.fromkeys(handle for of_order in wanted for handle in of_order))
    rows = look_up(connection, _HANDLE, handles, _delete)
    insert_or_replace(connection, probes, [(r.tenant, r.id, sketch(gate, r.tenant, r.id, r.vector)) for r in rows])
    gone = {(row.tenant, row.user_id, row.id) for row in rows}
    not_gone = {(tenant, id_) for tenant, user, id_ in handles if (tenant, user, id_) not in gone}
    left = {(row.tenant, row.id) for row in look_up(connection, HANDLE, sorted(not_gone), _there)}
    answers = []
    for order, of_order in zip(orders, wanted, strict=True):
        mine = gone.intersection(of_order)
        gone -= mine
        present = sum(1 for tenant, _, id_ in of_order if (tenant, id_) in left)
        answers.append(
            Erased(
                erased=len(mine),
                already_absent=len(order.targets) - len(mine) - present,
                residuals=residuals if mine else frozenset(),
            )
        )
    return answers


def _delete(given: sa.FromClause) -> sa.Executable:
    p = points.c
    these = sa.tuple_(p.tenant, p.user_id, p.id).in_(sa.select(given))
    return points.delete().where(these).returning(p.tenant, p.user_id, p.id, p.vector)


def _there(given: sa.FromClause) -> sa.Select[Any]:
    """Read which of these points there are, whoever in the tenant owns them."""
    p, g = points.c, given.c
    return sa.select(p.tenant, p.id).select_from(given.join(points, (p.tenant == g.tenant) & (p.id == g.id)))
