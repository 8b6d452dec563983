"""Erasing: exact handles with the tenant in the statement itself, one statement for a whole batch.

Principles: an order without targets erases nothing. The version high-water mark is raised
before a row goes, in the same transaction. What is counted is what the statement gave back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any

import sqlalchemy as sa

from adapters.memory import prints
from adapters.memory.batch import look_up, raise_numbers
from adapters.memory.chains import erase as chains
from adapters.memory.chains.named import KIND as CHAINS
from adapters.memory.due import revocations
from adapters.memory.facts import high_water_mac, scope_of
from adapters.memory.keyed import erase as keyed
from adapters.memory.keyed.named import KINDS
from adapters.memory.selection import HANDLE, Handle, exactly
from adapters.memory.tables import KIND, fact_high_water, facts
from orchestrator import Clock, Erased, EraseOrder, Gate, Residual, SelectorKind


def erase(
    connection: sa.Connection, gate: Gate, clock: Clock, orders: Sequence[EraseOrder], residuals: frozenset[Residual]
) -> list[Erased]:
    """Delete the targets of all orders and count them for each: of two that name one record, the first erased it.

    `residuals` are left of every record that goes.
    """
    parts = (
        _facts(connection, gate, orders),
        chains.erase(connection, clock, orders),
        keyed.erase(connection, gate, orders),
    )
    prints.drop(connection, {(o.scope.tenant, t.kind, t.id) for o in orders for t in o.targets})
    stayed = _told_elsewhere(connection, orders)
    return [
        _together(some, residuals, stayed.intersection({str(order.job)}))
        for order, some in zip(orders, zip(*parts, strict=True), strict=True)
    ]


def _told_elsewhere(connection: sa.Connection, orders: Sequence[EraseOrder]) -> frozenset[str]:
    """Name the jobs that forgot a source and left facts that another has told."""
    made = revocations(connection, {str(o.job) for o in orders if o.selector.kind is SelectorKind.SOURCE})
    return frozenset(job for job, row in made.items() if row.repointed)


def _together(parts: Sequence[Erased], residuals: frozenset[Residual], stayed: Collection[str]) -> Erased:
    erased = sum(part.erased for part in parts)
    return Erased(
        erased=erased,
        already_absent=sum(part.already_absent for part in parts),
        extra=sum(part.extra for part in parts),
        residuals=(residuals if erased else frozenset()) | ({Residual.TOLD_ELSEWHERE} if stayed else frozenset()),
    )


def _facts(connection: sa.Connection, gate: Gate, orders: Sequence[EraseOrder]) -> list[Erased]:
    """Delete facts; targets of a kind that this store never had count among them as absent."""
    wanted = [[(o.scope.tenant, t.id, t.version) for t in o.targets if t.kind == KIND] for o in orders]
    handles = list(dict.fromkeys(handle for of_order in wanted for handle in of_order))
    _raise_high_water(connection, gate, handles)
    gone = {(tenant, fact_id, version) for tenant, fact_id, version in look_up(connection, HANDLE, handles, _delete)}
    not_gone = [handle for handle in handles if handle not in gone]
    left = {(row.tenant, row.fact_id, row.version) for row in look_up(connection, HANDLE, not_gone, _rows)}
    answers = []
    for order, of_order in zip(orders, wanted, strict=True):
        mine = gone.intersection(of_order)
        gone -= mine
        present = sum(1 for handle in of_order if handle in left)
        asked = sum(1 for target in order.targets if target.kind != CHAINS and target.kind not in KINDS)
        answers.append(Erased(erased=len(mine), already_absent=asked - len(mine) - present))
    return answers


def _delete(given: sa.FromClause) -> sa.Executable:
    f = facts.c
    these = sa.tuple_(f.tenant, f.fact_id, f.version).in_(sa.select(given))
    return facts.delete().where(these).returning(f.tenant, f.fact_id, f.version)


def _rows(given: sa.FromClause) -> sa.Select[Any]:
    """Read the records with exactly these handles, whoever in the tenant owns them."""
    f = facts.c
    columns = (f.tenant, f.user_id, f.project, f.key, f.fact_id, f.version)
    return sa.select(*columns).select_from(given.join(facts, exactly(given)))


def _raise_high_water(connection: sa.Connection, gate: Gate, handles: Sequence[Handle]) -> None:
    highest: defaultdict[tuple[str, str, str, str], int] = defaultdict(int)
    for row in look_up(connection, HANDLE, handles, _rows):
        key = (row.tenant, row.user_id, row.project, row.key)
        highest[key] = max(highest[key], row.version)
    marks = [(high_water_mac(gate, scope_of(*place), key), v) for (*place, key), v in highest.items()]
    raise_numbers(connection, fact_high_water, marks)
