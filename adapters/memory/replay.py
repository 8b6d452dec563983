"""Bringing a restored source database up to date in one transaction: what was forgotten goes before anybody reads.

Principles: what goes is told by the gate itself, asked of each record as if it were written now,
so a restore and a late writer cannot disagree. Versions of facts and whole chains go. What had
been revoked when the copy was taken goes as well: the job that hid it has erased it since.
Positions, revisions and versions begin above all that were ever given: each epoch has a range of
its own. A job that goes on knows up to where it reaches: what is told from now on is none of its.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final
from uuid import UUID

import sqlalchemy as sa

from adapters.memory.batch import PART, Found, Row, change, columns, insert_all, insert_new, look_up, raise_numbers
from adapters.memory.chains.gate import scopes_of
from adapters.memory.chains.named import any_here
from adapters.memory.chains.scope import TaskScope
from adapters.memory.chains.tables import memories, memory_tenants
from adapters.memory.confirmation import confirmation, is_used
from adapters.memory.dependents import drop_orphans
from adapters.memory.epoch import enter
from adapters.memory.facts import high_water_mac, scope_of
from adapters.memory.selection import HANDLE, Handle, handle_of
from adapters.memory.sources import origin_of
from adapters.memory.tables import (
    KIND,
    fact_high_water,
    fact_revisions,
    facts,
    record_prints,
    revocation_targets,
    source_revocations,
    source_tombstones,
    tenant_positions,
)
from adapters.memory.tombstones import LocalTombstones
from orchestrator import Gate, Replayed, Scope, Target, Tombstone, Write, fold

RANGE: Final = 2**40
"""Positions and revisions of one epoch: no source counts that far between two restores."""
_AT_ONCE: Final = 2_000
_ID: Final = columns(id=int)
_NAME: Final = columns(id=str)
# What SQLite knows of the ids that it has given lies in the copy as well, where there were any.
_NO_MEMORY_YET: Final = """INSERT INTO sqlite_sequence SELECT 'memories', 0
    WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'memories')"""
_NEXT_MEMORY: Final = {
    "sqlite": (_NO_MEMORY_YET, "UPDATE sqlite_sequence SET seq = max(seq, {base}) WHERE name = 'memories'"),
    "postgresql": (
        "SELECT setval(s, greatest(nextval(s), {base})) FROM pg_get_serial_sequence('memories', 'id') AS s",
    ),
}
_JOB: Final = columns(job=str)
_COUNT: Final = columns(job=str, targets=int)
Marks = Iterable[tuple[str, UUID, Tombstone]]
Named = Iterable[tuple[UUID, Target]]


def replay(connection: sa.Connection, gate: Gate, tombstones: Marks, epoch: int, targets: Named = ()) -> Replayed:
    """Merge tombstones, erase what they match, raise the numbers and enter the epoch.

    `targets` are what had been named to jobs that go on: backups are looked through by them.
    """
    base, reach = epoch * RANGE, _merge(connection, tombstones)
    erased = _facts(connection, gate, base)
    if any_here(connection):
        erased += _chains(connection, gate)
        for statement in _NEXT_MEMORY[connection.dialect.name]:
            connection.exec_driver_sql(statement.format(base=base))
    erased += drop_orphans(connection)
    insert_new(connection, source_revocations, [(job, cut_off, base, 0, 0) for (_, job), cut_off in reach.items()])
    _name_again(connection, targets)
    _raise(connection, {tenant for tenant, _ in reach}, base)
    enter(connection, epoch)
    jobs = connection.execute(sa.select(source_revocations.c.job)).scalars()
    return Replayed(erased=erased, jobs=frozenset(map(UUID, jobs)))


def _merge(connection: sa.Connection, tombstones: Marks) -> Mapping[tuple[str, str], int]:
    """Write the tombstones that the copy lacks; give for each tenant and job the position up to which they reach."""
    reach, marks = dict[tuple[str, str], int](), iter(tombstones)
    while some := list(islice(marks, _AT_ONCE)):
        rows = [(tenant, t.key_id, t.mac, t.kind.value, str(job), t.cut_off) for tenant, job, t in some]
        insert_new(connection, source_tombstones, rows)
        for tenant, _, _, _, job, cut_off in rows:
            reach[tenant, job] = max(reach.get((tenant, job), 0), cut_off)
    return reach


def _name_again(connection: sa.Connection, targets: Named) -> None:
    """Write the targets of jobs that the copy lacks, behind those that it has."""
    wanted = defaultdict[str, list[tuple[str, str, int]]](list)
    for of, target in targets:
        wanted[str(of)].append((target.kind, target.id, target.version))
    there = defaultdict[str, dict[tuple[str, str, int], int]](dict)
    for row in look_up(connection, _JOB, [(job,) for job in wanted], _targets):
        there[row.job][row.kind, row.handle, row.version] = row.ordinal
    rows, counts = list[Row](), list[Row]()
    for job, named in wanted.items():
        last = max(there[job].values(), default=0)
        new = [target for target in dict.fromkeys(named) if target not in there[job]]
        rows += ((job, n, *target) for n, target in enumerate(new, last + 1))
        counts.append((job, last + len(new)))
    insert_all(connection, revocation_targets, rows)
    change(connection, _COUNT, counts, _counted)


def _facts(connection: sa.Connection, gate: Gate, base: int) -> int:
    gone = {
        handle_of(row)
        for row in _parts(connection, sa.select(facts))
        if row.state == "revoked" or _is_forgotten(connection, gate, row)
    }
    _keep_high_water(connection, gate, gone, base)
    change(connection, HANDLE, sorted(gone), _without_facts)
    change(connection, HANDLE, sorted(gone), _without_prints)
    return len({(tenant, fact) for tenant, fact, _ in gone})


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


def _keep_high_water(connection: sa.Connection, gate: Gate, gone: Collection[Handle], base: int) -> None:
    """Let the next version of a fact that stays begin above all that were given: later ones may not be in the copy."""
    last = dict[tuple[str, str, str, str], int]()
    for row in _parts(connection, sa.select(facts)):
        place = (row.tenant, row.user_id, row.project, row.key)
        last[place] = max(last.get(place, 0), row.version if handle_of(row) in gone else base)
    marks = [(high_water_mac(gate, scope_of(*place), key), number) for (*place, key), number in last.items()]
    raise_numbers(connection, fact_high_water, sorted(marks))


def _raise(connection: sa.Connection, tenants: set[str], base: int) -> None:
    raise_numbers(connection, tenant_positions, [(tenant, base) for tenant in sorted(tenants)])
    for number in (tenant_positions.c.position, fact_revisions.c.rev):
        connection.execute(number.table.update().where(number < base).values({number: base}))


def _parts(connection: sa.Connection, query: sa.Select[Any]) -> Iterator[Found]:
    with connection.execute(query.execution_options(stream_results=True)) as found:
        for part in found.partitions(PART):
            yield from part


def _targets(given: sa.FromClause) -> sa.Select[Any]:
    t = revocation_targets
    return sa.select(t).select_from(given.join(t, t.c.job == given.c.job))


def _counted(given: sa.FromClause) -> sa.Update:
    r = source_revocations
    return r.update().where(r.c.job == given.c.job).values(targets=given.c.targets)


def _without_facts(given: sa.FromClause) -> sa.Delete:
    f = facts.c
    return facts.delete().where(sa.tuple_(f.tenant, f.fact_id, f.version).in_(sa.select(given)))


def _without_prints(given: sa.FromClause) -> sa.Delete:
    p = record_prints.c
    these = sa.tuple_(p.tenant, p.handle, p.version).in_(sa.select(given))
    return record_prints.delete().where(p.kind == KIND, these)


def _without_tenants(given: sa.FromClause) -> sa.Delete:
    return memory_tenants.delete().where(memory_tenants.c.memory_id.in_(sa.select(given)))


def _without_memories(given: sa.FromClause) -> sa.Delete:
    return memories.delete().where(memories.c.id.in_(sa.select(given)))


def _without_chain_prints(given: sa.FromClause) -> sa.Delete:
    return record_prints.delete().where(record_prints.c.kind != KIND, record_prints.c.handle.in_(sa.select(given)))
