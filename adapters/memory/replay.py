"""Bringing a restored source database up to date in one transaction: what was forgotten goes before anybody reads.

Principles: what goes is told by the gate itself, asked of each record as if it were written now,
so a restore and a late writer cannot disagree. Whole facts and whole chains go. What had been
revoked when the copy was taken goes as well: the job that hid it has erased it since. Positions
and revisions begin above all that were ever given: each epoch has a range of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final
from uuid import UUID

import sqlalchemy as sa

from adapters.memory.batch import PART, Found, change, columns, insert_new, raise_numbers
from adapters.memory.chains.gate import scopes_of
from adapters.memory.chains.named import any_here
from adapters.memory.chains.scope import TaskScope
from adapters.memory.chains.tables import memories, memory_tenants
from adapters.memory.confirmation import confirmation, is_used
from adapters.memory.dependents import drop_orphans
from adapters.memory.epoch import enter
from adapters.memory.facts import high_water_mac, scope_of
from adapters.memory.sources import origin_of
from adapters.memory.tables import (
    KIND,
    fact_high_water,
    fact_revisions,
    facts,
    record_prints,
    source_revocations,
    source_tombstones,
    tenant_positions,
)
from adapters.memory.tombstones import LocalTombstones
from orchestrator import Gate, Replayed, Scope, Tombstone, Write, fold

RANGE: Final = 2**40
"""Positions and revisions of one epoch: no source counts that far between two restores."""
_AT_ONCE: Final = 2_000
_FACT: Final = columns(tenant=str, fact_id=str)
_ID: Final = columns(id=int)
_NAME: Final = columns(id=str)
Marks = Iterable[tuple[str, UUID, Tombstone]]


def replay(connection: sa.Connection, gate: Gate, tombstones: Marks, epoch: int) -> Replayed:
    """Merge tombstones, erase what they match, raise the numbers and enter the epoch."""
    tenants = _merge(connection, tombstones)
    erased = _facts(connection, gate)
    if any_here(connection):
        erased += _chains(connection, gate)
    erased += drop_orphans(connection)
    _raise(connection, tenants, epoch * RANGE)
    enter(connection, epoch)
    jobs = connection.execute(sa.select(source_revocations.c.job)).scalars()
    return Replayed(erased=erased, jobs=frozenset(map(UUID, jobs)))


def _merge(connection: sa.Connection, tombstones: Marks) -> set[str]:
    """Write the tombstones that the copy lacks; name the tenants that have any."""
    tenants, marks = set[str](), iter(tombstones)
    while some := list(islice(marks, _AT_ONCE)):
        tenants.update(tenant for tenant, _, _ in some)
        rows = [(tenant, t.key_id, t.mac, t.kind.value, str(job), t.cut_off) for tenant, job, t in some]
        insert_new(connection, source_tombstones, rows)
    return tenants


def _facts(connection: sa.Connection, gate: Gate) -> int:
    gone = {
        (row.tenant, row.fact_id)
        for row in _parts(connection, sa.select(facts))
        if row.state == "revoked" or _is_forgotten(connection, gate, row)
    }
    _keep_high_water(connection, gate, gone)
    change(connection, _FACT, sorted(gone), _without_facts)
    change(connection, _FACT, sorted(gone), _without_prints)
    return len(gone)


def _is_forgotten(connection: sa.Connection, gate: Gate, row: Found) -> bool:
    scope = scope_of(row.tenant, row.user_id, row.project)
    said = confirmation(gate, scope, row.source, row.key)
    origin = origin_of(connection, scope, row.source)
    confirmed = is_used(connection, said)
    write = Write(scope=scope, key=row.key, text=row.value, origin=origin, confirmed=confirmed)
    return gate.decide(write, LocalTombstones(connection)) is not None


def _chains(connection: sa.Connection, gate: Gate) -> int:
    m, t = memories.c, memory_tenants.c
    query = sa.select(memories, t.tenant, t.revoked).join(memory_tenants, t.memory_id == m.id).order_by(m.id)
    newer, gone = dict[int, int](), set[int]()
    for row in _parts(connection, query):
        if row.supersedes is not None:
            newer[row.id] = row.supersedes
        if row.revoked or _is_forgotten_chain(connection, gate, row):
            gone.add(row.id)
    whole = _whole(newer, gone)
    rows = [(memory,) for memory in sorted(whole, reverse=True)]
    for build in (_without_tenants, _without_memories):
        change(connection, _ID, rows, build)
    change(connection, _NAME, [(str(memory),) for memory in sorted(whole)], _without_chain_prints)
    return sum(1 for memory in whole if memory not in newer)


def _is_forgotten_chain(connection: sa.Connection, gate: Gate, row: Found) -> bool:
    at_level = scope_of(row.tenant, row.user_id, row.task_id)
    origin = origin_of(connection, at_level, row.source)
    confirmed = is_used(connection, confirmation(gate, at_level, row.source, None, fold(row.text)))
    return any(
        gate.decide(
            Write(scope=scope, key=None, text=row.text, origin=origin, confirmed=confirmed), LocalTombstones(connection)
        )
        is not None
        for scope in _seen_from(row, at_level)
    )


def _seen_from(row: Found, at_level: Scope) -> Sequence[Scope]:
    return [at_level] if row.task_id is None else scopes_of(TaskScope(row.user_id, row.task_id, row.tenant))


def _whole(newer: dict[int, int], some: set[int]) -> set[int]:
    """Give all versions of the chains that some versions are of; `newer` names the one before each."""
    after = {old: new for new, old in newer.items()}
    whole = set[int]()
    for memory in some:
        first = memory
        while first in newer:
            first = newer[first]
        step: int | None = first
        while step is not None and step not in whole:
            whole.add(step)
            step = after.get(step)
    return whole


def _keep_high_water(connection: sa.Connection, gate: Gate, gone: Collection[tuple[str, str]]) -> None:
    f = facts.c
    query = sa.select(f.tenant, f.user_id, f.project, f.key, f.fact_id, sa.func.max(f.version).label("last"))
    marks = dict[str, int]()
    for row in connection.execute(query.group_by(f.tenant, f.user_id, f.project, f.key, f.fact_id)):
        if (row.tenant, row.fact_id) in gone:
            mac = high_water_mac(gate, scope_of(row.tenant, row.user_id, row.project), row.key)
            marks[mac] = max(marks.get(mac, 0), row.last)
    raise_numbers(connection, fact_high_water, sorted(marks.items()))


def _raise(connection: sa.Connection, tenants: set[str], base: int) -> None:
    raise_numbers(connection, tenant_positions, [(tenant, base) for tenant in sorted(tenants)])
    for number in (tenant_positions.c.position, fact_revisions.c.rev):
        connection.execute(number.table.update().where(number < base).values({number: base}))


def _parts(connection: sa.Connection, query: sa.Select[Any]) -> Iterator[Found]:
    with connection.execute(query.execution_options(stream_results=True)) as found:
        for part in found.partitions(PART):
            yield from part


def _without_facts(given: sa.FromClause) -> sa.Delete:
    return facts.delete().where(sa.tuple_(facts.c.tenant, facts.c.fact_id).in_(sa.select(given)))


def _without_prints(given: sa.FromClause) -> sa.Delete:
    p = record_prints.c
    return record_prints.delete().where(p.kind == KIND, sa.tuple_(p.tenant, p.handle).in_(sa.select(given)))


def _without_tenants(given: sa.FromClause) -> sa.Delete:
    return memory_tenants.delete().where(memory_tenants.c.memory_id.in_(sa.select(given)))


def _without_memories(given: sa.FromClause) -> sa.Delete:
    return memories.delete().where(memories.c.id.in_(sa.select(given)))


def _without_chain_prints(given: sa.FromClause) -> sa.Delete:
    return record_prints.delete().where(record_prints.c.kind != KIND, record_prints.c.handle.in_(sa.select(given)))
