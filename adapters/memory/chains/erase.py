"""Erasing chains: each as a whole, with the tenant in the statement itself, one statement for all of a batch.

Principles: a chain goes when one of its versions is named by its exact handle; what nobody
named of it has come since it was found, and is counted as extra. One statement deletes all of
a chain, so that no version is left behind another. Each chain leaves a record of ids, a job
and a time.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any, Final, TypeAlias

import sqlalchemy as sa

from adapters.memory.batch import as_table, change, columns, look_up, run
from adapters.memory.chains.delete import EXPIRED
from adapters.memory.chains.named import KIND, any_here, number_of, of_roots
from adapters.memory.chains.tables import Instant, deletion_tenants, deletions, memories, memory_tenants
from orchestrator import Clock, Erased, EraseOrder, ErrorCode, Permanent, SelectorKind, Target

Handle: TypeAlias = tuple[str, int, int]
"""Tenant, chain and memory."""
Chain: TypeAlias = tuple[str, int]
_CHAIN: Final = columns(tenant=str, chain=int)
_ID: Final = columns(id=int)
_RECORD: Final = columns(user_id=str, memory_ids=str, reason=str)
_TENANT: Final = columns(deletion_id=int, tenant=str)


def erase(connection: sa.Connection, clock: Clock, orders: Sequence[EraseOrder]) -> list[Erased]:
    """Delete the chains among the targets of all orders: of two that name one version, the first erased it."""
    wanted = [[_handle(o.scope.tenant, t) for t in o.targets if t.kind == KIND] for o in orders]
    first: dict[Chain, int] = {}
    handles = {handle for of_order in wanted for handle in of_order if handle is not None}
    there = _versions(connection, {handle[:2] for handle in handles}) if handles and any_here(connection) else {}
    for number, of_order in enumerate(wanted):
        for handle in of_order:
            if handle is not None and handle[2] in there.get(handle[:2], {}):
                first.setdefault(handle[:2], number)
    going = {chain: there[chain] for chain in first}
    _delete(connection, [memory for versions in going.values() for memory in versions])
    _record(connection, going, {chain: orders[number] for chain, number in first.items()}, clock.now)
    gone = {(*chain, memory) for chain, versions in going.items() for memory in versions}
    counts = []
    for of_order in wanted:
        mine = gone.intersection(of_order)
        gone -= mine
        counts.append([len(mine), len(of_order) - len(mine), 0])
    for tenant, chain, _memory in gone:  # nobody named these
        counts[first[tenant, chain]][0] += 1
        counts[first[tenant, chain]][2] += 1
    return [Erased(erased=erased, already_absent=absent, extra=extra) for erased, absent, extra in counts]


def _handle(tenant: str, target: Target) -> Handle | None:
    chain = number_of(target.id)
    return None if chain is None else (tenant, chain, target.version)


def _versions(connection: sa.Connection, chains: Collection[Chain]) -> Mapping[Chain, Mapping[int, str]]:
    """Give the versions of chains, each with its user."""
    found = defaultdict[Chain, dict[int, str]](dict)
    for tenant, chain, memory, user in run(connection, _whole(connection.dialect.name), _CHAIN, sorted(chains)):
        found[tenant, chain][memory] = user
    return found


def _delete(connection: sa.Connection, memory_ids: Sequence[int]) -> None:
    rows = [(memory_id,) for memory_id in memory_ids]
    change(connection, _ID, rows, _tenants_gone)
    change(connection, _ID, rows, _gone)
    if look_up(connection, _ID, rows, _left):
        message = "A version is still there after it was deleted."
        raise Permanent(message, code=ErrorCode.STORE_REFUSED)


def _record(
    connection: sa.Connection,
    going: Mapping[Chain, Mapping[int, str]],
    orders: Mapping[Chain, EraseOrder],
    now: Callable[[], datetime],
) -> None:
    if not going:
        return
    tenants = {json.dumps(sorted(versions)): tenant for (tenant, _), versions in going.items()}
    rows = [
        (versions[min(versions)], json.dumps(sorted(versions)), _reason(orders[chain]))
        for chain, versions in going.items()
    ]
    told = run(connection, _told(connection.dialect.name, now()), _RECORD, rows).all()
    change(connection, _TENANT, [(row.id, tenants[row.memory_ids]) for row in told], _tenants_told)


def _reason(order: EraseOrder) -> str:
    return EXPIRED if order.selector.kind is SelectorKind.EXPIRED else f"expunge job {order.job}"


@cache
def _whole(dialect: str) -> sa.Select[Any]:
    given, m, t = as_table(dialect, _CHAIN), memories.c, memory_tenants.c
    begun = given.join(memories, (m.id == given.c.chain) & m.supersedes.is_(None))
    of_tenant = begun.join(memory_tenants, (t.memory_id == m.id) & (t.tenant == given.c.tenant))
    whole = of_roots(sa.select(m.id).select_from(of_tenant))
    versions = whole.join(memories, m.id == whole.c.id).join(memory_tenants, t.memory_id == m.id)
    return sa.select(t.tenant, whole.c.chain, m.id, m.user_id).select_from(versions)


def _tenants_gone(given: sa.FromClause) -> sa.Delete:
    return memory_tenants.delete().where(memory_tenants.c.memory_id.in_(sa.select(given)))


def _gone(given: sa.FromClause) -> sa.Delete:
    return memories.delete().where(memories.c.id.in_(sa.select(given)))


def _left(given: sa.FromClause) -> sa.Select[Any]:
    return sa.select(memories.c.id).select_from(given.join(memories, memories.c.id == given.c.id))


def _told(dialect: str, now: datetime) -> sa.Executable:
    d, given = deletions.c, as_table(dialect, _RECORD).c
    rows = sa.select(given.user_id, given.memory_ids, given.reason, sa.literal(now, Instant()))
    insert = deletions.insert().from_select([d.user_id, d.memory_ids, d.reason, d.deleted_at], rows)
    return insert.returning(d.id, d.memory_ids)


def _tenants_told(given: sa.FromClause) -> sa.Insert:
    names = [deletion_tenants.c.deletion_id, deletion_tenants.c.tenant]
    return deletion_tenants.insert().from_select(names, sa.select(given.c.deletion_id, given.c.tenant))
