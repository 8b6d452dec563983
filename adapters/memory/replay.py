"""Bringing a restored source database up to date in one transaction: what was forgotten goes before anybody reads.

Principles: what goes is told by the gate itself, asked of each record as if it were written now,
so a restore and a late writer cannot disagree. Versions of facts, events, candidates and whole
chains go (`forgotten`, `keyed.restored`). What had been revoked when the copy was taken goes as
well: the job that hid it has erased it since.
Positions, revisions and versions begin above all that were ever given: each epoch has a range of
its own. A job that goes on knows up to where it reaches: what is told from now on is none of its.
What it has left because of a hold stays, and goes when it is free.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from typing import Any, Final, TypeAlias
from uuid import UUID

import sqlalchemy as sa

from adapters.memory.batch import PART, Row, change, columns, insert_all, insert_new, look_up, raise_numbers
from adapters.memory.dependents import drop_orphans
from adapters.memory.epoch import enter
from adapters.memory.forgotten import drop_chains, drop_facts
from adapters.memory.keyed.restored import drop_keyed
from adapters.memory.tables import (
    fact_revisions,
    revocation_left,
    revocation_targets,
    source_revocations,
    source_tombstones,
    tenant_positions,
)
from orchestrator import Gate, Replayed, Target, Tombstone

RANGE: Final = 2**40
"""Positions and revisions of one epoch: no source counts that far between two restores."""
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
Marks: TypeAlias = Iterable[tuple[str, UUID, Tombstone]]
Named: TypeAlias = Iterable[tuple[UUID, Target]]
Kept: TypeAlias = Iterable[tuple[UUID, str]]


def replay(
    connection: sa.Connection, gate: Gate, tombstones: Marks, epoch: int, targets: Named = (), kept: Kept = ()
) -> Replayed:
    """Merge tombstones, erase what they match, raise the numbers and enter the epoch.

    The tables of the chains are there. `targets` are what had been named to jobs that go on: backups are looked
    through by them. `kept` are the items that these jobs have left because of a hold.
    """
    base, reach = epoch * RANGE, _merge(connection, tombstones)
    left = _leave_again(connection, kept, {job for _, job in reach})
    erased = drop_facts(connection, gate, base, left) + drop_keyed(connection, gate, left)
    erased += drop_chains(connection, gate, left)
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
    while some := list(islice(marks, PART)):
        rows = [(tenant, t.key_id, t.mac, t.kind.value, str(job), t.cut_off) for tenant, job, t in some]
        insert_new(connection, source_tombstones, rows)
        for tenant, _, _, _, job, cut_off in rows:
            reach[tenant, job] = max(reach.get((tenant, job), 0), cut_off)
    return reach


def _leave_again(connection: sa.Connection, kept: Kept, answered: Collection[str]) -> Mapping[str, Collection[str]]:
    """Write what jobs have left because of a hold, where the copy lacks it; give the jobs of each item.

    Of a job that has not `answered` for all that the control database knows, the copy alone tells what it has left.
    """
    rows = [(str(job), item) for job, item in kept]
    insert_new(connection, revocation_left, rows)
    known = {job for job, _ in rows}.union(answered)
    there = connection.execute(sa.select(revocation_left.c.job, revocation_left.c.fact_id))
    left = defaultdict[str, set[str]](set)
    for job, item in [*rows, *((row.job, row.fact_id) for row in there if row.job not in known)]:
        left[item].add(job)
    return left


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


def _raise(connection: sa.Connection, tenants: set[str], base: int) -> None:
    raise_numbers(connection, tenant_positions, [(tenant, base) for tenant in sorted(tenants)])
    for number in (tenant_positions.c.position, fact_revisions.c.rev):
        connection.execute(number.table.update().where(number < base).values({number: base}))


def _targets(given: sa.FromClause) -> sa.Select[Any]:
    t = revocation_targets
    return sa.select(t).select_from(given.join(t, t.c.job == given.c.job))


def _counted(given: sa.FromClause) -> sa.Update:
    r = source_revocations
    return r.update().where(r.c.job == given.c.job).values(targets=given.c.targets)
