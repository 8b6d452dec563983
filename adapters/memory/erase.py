"""Erasing: exact handles with the tenant in the statement itself, one statement for a whole batch.

Principles: an order without targets erases nothing. The version high-water mark is raised
before a row goes, in the same transaction. What is counted is what the statement gave back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

import sqlalchemy as sa

from adapters.memory.engine import insert_or_set
from adapters.memory.facts import high_water_mac, scope_of
from adapters.memory.revoke import KIND
from adapters.memory.tables import fact_high_water, facts
from orchestrator import Erased, EraseOrder, Gate

_CHUNK: Final = 1000
Handle: TypeAlias = tuple[str, str, int]


def erase(connection: sa.Connection, gate: Gate, orders: Sequence[EraseOrder]) -> list[Erased]:
    """Delete the targets of all orders and count them for each: of two that name one record, the first erased it."""
    wanted = [[(o.scope.tenant, t.id, t.version) for t in o.targets if t.kind == KIND] for o in orders]
    handles = list(dict.fromkeys(handle for of_order in wanted for handle in of_order))
    gone: set[Handle] = set()
    for chunk in _chunks(handles):
        _raise_high_water(connection, gate, chunk)
        gone.update(_delete(connection, chunk))
    left = set(_present(connection, [h for h in handles if h not in gone]))
    answers = []
    for order, of_order in zip(orders, wanted, strict=True):
        mine = gone.intersection(of_order)
        gone -= mine
        present = sum(1 for handle in of_order if handle in left)
        # Targets of a kind that this store never had are as absent as any other.
        absent = len(order.targets) - len(mine) - present
        answers.append(Erased(erased=len(mine), already_absent=absent))
    return answers


def _delete(connection: sa.Connection, chunk: Sequence[Handle]) -> Iterator[Handle]:
    f = facts.c
    query = facts.delete().where(_exactly(chunk))
    yield from connection.execute(query.returning(f.tenant, f.fact_id, f.version))


def _present(connection: sa.Connection, handles: Sequence[Handle]) -> Iterator[Handle]:
    """Look up what was not deleted, whoever in the tenant owns it."""
    f = facts.c
    for chunk in _chunks(handles):
        query = sa.select(f.tenant, f.fact_id, f.version).where(_exactly(chunk))
        yield from connection.execute(query)


def _raise_high_water(connection: sa.Connection, gate: Gate, chunk: Sequence[Handle]) -> None:
    f, mark = facts.c, fact_high_water.c.version
    query = sa.select(f.tenant, f.user_id, f.project, f.key, f.version).where(_exactly(chunk))
    highest: Counter[str] = Counter()
    for row in connection.execute(query):
        mac = high_water_mac(gate, scope_of(row.tenant, row.user_id, row.project), row.key)
        highest[mac] = max(highest[mac], row.version)
    for mac, version in highest.items():
        greatest = sa.case((mark > version, mark), else_=version)
        insert_or_set(connection, fact_high_water, {"key_mac": mac, "version": version}, {"version": greatest}).one()


def _exactly(chunk: Sequence[Handle]) -> sa.ColumnElement[bool]:
    """Give the condition for exactly these records, each with its tenant."""
    f = facts.c
    # SQLite takes no index for a list of rows; the first term leads it to the second's candidates.
    likely = f.fact_id.in_({fact_id for _, fact_id, _ in chunk})
    return likely & sa.tuple_(f.tenant, f.fact_id, f.version).in_(chunk)


def _chunks(handles: Sequence[Handle]) -> Iterator[Sequence[Handle]]:
    for start in range(0, len(handles), _CHUNK):
        yield handles[start : start + _CHUNK]
