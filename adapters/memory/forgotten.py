"""Facts and chains of a restored source database that had been forgotten: they go before anybody reads.

Principle: the gate tells it, asked of each record as if it were written now.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

import sqlalchemy as sa

from adapters.memory.batch import PART, Found, change, columns, raise_numbers
from adapters.memory.chains.gate import scopes_of
from adapters.memory.chains.scope import TaskScope
from adapters.memory.chains.tables import memories, memory_tenants
from adapters.memory.confirmation import confirmation, is_used
from adapters.memory.facts import high_water_mac, scope_of
from adapters.memory.judged import is_forgotten
from adapters.memory.repoint import ALWAYS, put_again, standing
from adapters.memory.selection import HANDLE, Handle, handle_of
from adapters.memory.sources import origin_of
from adapters.memory.tables import KIND, fact_high_water, facts, record_prints
from adapters.memory.tombstones import LocalTombstones
from orchestrator import Gate, Scope, Write, fold

_ID: Final = columns(id=int)
_NAME: Final = columns(id=str)


def drop_facts(connection: sa.Connection, gate: Gate, base: int) -> int:
    """Erase the facts that had been forgotten, and give how many those were; versions of others go on above `base`.

    A fact whose active version goes holds by another that said the same, as it did when its source was forgotten.
    """
    gone, active = set[Handle](), list[Found]()
    for row in in_parts(connection, sa.select(facts)):
        if row.state == "revoked" or is_forgotten(connection, gate, row, row.value):
            gone.add(handle_of(row))
            active += [row] if row.active else []
    _keep_high_water(connection, gate, gone, base)
    change(connection, HANDLE, sorted(gone), _without_facts)
    change(connection, HANDLE, sorted(gone), _without_prints)
    stays = standing(connection, gate, active, sources={}, at_us=ALWAYS)
    put_again(connection, gate, stays.successors(active))
    return len({(tenant, fact) for tenant, fact, _ in gone})


def drop_chains(connection: sa.Connection, gate: Gate) -> int:
    """Erase the chains that had been forgotten, and give how many those were."""
    m, t = memories.c, memory_tenants.c
    query = sa.select(memories, t.tenant, t.revoked).join(memory_tenants, t.memory_id == m.id).order_by(m.id)
    newer, gone = dict[int, int](), set[int]()
    for row in in_parts(connection, query):
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
    for row in in_parts(connection, sa.select(facts)):
        place = (row.tenant, row.user_id, row.project, row.key)
        last[place] = max(last.get(place, 0), row.version if handle_of(row) in gone else base)
    marks = [(high_water_mac(gate, scope_of(*place), key), number) for (*place, key), number in last.items()]
    raise_numbers(connection, fact_high_water, sorted(marks))


def in_parts(connection: sa.Connection, query: sa.Select[Any]) -> Iterator[Found]:
    """Read rows, some at a time in hand."""
    with connection.execute(query.execution_options(stream_results=True)) as found:
        for part in found.partitions(PART):
            yield from part


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
