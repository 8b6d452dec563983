"""Facts and chains of a restored source database that had been forgotten: they go before anybody reads.

Principles: the gate tells it, asked of each record as if it were written now. What a job has left because of a hold
is not told by that job's tombstones: it stays until it is free.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, TypeAlias

import sqlalchemy as sa

from adapters.memory import prints
from adapters.memory.batch import Found, change, columns, in_parts, look_up, raise_numbers
from adapters.memory.chains.gate import scopes_of
from adapters.memory.chains.named import KIND as CHAINS
from adapters.memory.chains.named import onwards
from adapters.memory.chains.scope import TaskScope
from adapters.memory.chains.tables import memories, memory_tenants
from adapters.memory.confirmation import confirmation, is_used
from adapters.memory.facts import high_water_mac, scope_of
from adapters.memory.judged import is_forgotten
from adapters.memory.repoint import ALWAYS, put_again, standing
from adapters.memory.selection import HANDLE, Handle, handle_of
from adapters.memory.sources import origin_of
from adapters.memory.tables import KIND, fact_high_water, facts
from adapters.memory.tombstones import LocalTombstones
from orchestrator import Gate, Scope, Write, fold

Left: TypeAlias = Mapping[str, Collection[str]]
"""The jobs that have left each item because of a hold."""
_ID: Final = columns(id=int)


def drop_facts(connection: sa.Connection, gate: Gate, base: int, left: Left) -> int:
    """Erase the facts that had been forgotten, and give how many those were; versions of others go on above `base`.

    A fact whose active version goes holds by another that said the same, as it did when its source was forgotten.
    """
    gone, active = set[Handle](), list[Found]()
    for part in in_parts(connection, sa.select(facts)):
        for row in part:
            if row.state == "revoked" or is_forgotten(connection, gate, row, row.value, left.get(row.fact_id, ())):
                gone.add(handle_of(row))
                active += [row] if row.active else []
    _keep_high_water(connection, gate, gone, base)
    change(connection, HANDLE, sorted(gone), _without_facts)
    prints.drop(connection, {(tenant, KIND, fact) for tenant, fact, _ in gone})
    stays = standing(connection, gate, active, sources={}, at_us=ALWAYS)
    put_again(connection, gate, stays.successors(active))
    return len({(tenant, fact) for tenant, fact, _ in gone})


def drop_chains(connection: sa.Connection, gate: Gate, left: Left) -> int:
    """Erase the chains that had been forgotten, and give how many those were."""
    m, t = memories.c, memory_tenants.c
    query = sa.select(memories, t.tenant, t.revoked).join(memory_tenants, t.memory_id == m.id).order_by(m.id)
    first, gone = dict[int, int](), list[tuple[int]]()
    for part in in_parts(connection, query):
        for row in part:
            first[row.id] = first.get(row.supersedes, row.id)
            but = left.get(str(first[row.id]), ())
            if row.revoked or _is_forgotten_chain(connection, gate, row, but):
                gone.append((row.id,))
    whole = look_up(connection, _ID, gone, _whole)
    for build in (_without_tenants, _without_memories):
        change(connection, _ID, [(row.id,) for row in whole], build)
    prints.drop(connection, {(row.tenant, CHAINS, str(row.chain)) for row in whole if row.tenant is not None})
    return len({row.chain for row in whole})


def _is_forgotten_chain(connection: sa.Connection, gate: Gate, row: Found, but: Collection[str]) -> bool:
    at_level = scope_of(row.tenant, row.user_id, row.task_id)
    origin = origin_of(connection, at_level, row.source)
    confirmed = is_used(connection, confirmation(gate, at_level, row.source, None, fold(row.text)))
    tombstones = LocalTombstones(connection, but)
    return any(
        gate.decide(Write(scope=scope, key=None, text=row.text, origin=origin, confirmed=confirmed), tombstones)
        is not None
        for scope in _seen_from(row, at_level)
    )


def _seen_from(row: Found, at_level: Scope) -> Sequence[Scope]:
    return [at_level] if row.task_id is None else scopes_of(TaskScope(row.user_id, row.task_id, row.tenant))


def _whole(given: sa.FromClause) -> sa.Select[Any]:
    """Read all versions of the chains that some memories are of, with the tenant of each that has one."""
    m, t = memories.c, memory_tenants.c
    whole = onwards(sa.select(m.id, m.supersedes).join(given, given.c.id == m.id))
    joined = whole.outerjoin(memory_tenants, t.memory_id == whole.c.id)
    return sa.select(whole.c.chain, whole.c.id, t.tenant).select_from(joined)


def _keep_high_water(connection: sa.Connection, gate: Gate, gone: Collection[Handle], base: int) -> None:
    """Let the next version of a fact that stays begin above all that were given: later ones may not be in the copy."""
    last = dict[tuple[str, str, str, str], int]()
    for part in in_parts(connection, sa.select(facts)):
        for row in part:
            place = (row.tenant, row.user_id, row.project, row.key)
            last[place] = max(last.get(place, 0), row.version if handle_of(row) in gone else base)
    marks = [(high_water_mac(gate, scope_of(*place), key), number) for (*place, key), number in last.items()]
    raise_numbers(connection, fact_high_water, sorted(marks))


def _without_facts(given: sa.FromClause) -> sa.Delete:
    f = facts.c
    return facts.delete().where(sa.tuple_(f.tenant, f.fact_id, f.version).in_(sa.select(given)))


def _without_tenants(given: sa.FromClause) -> sa.Delete:
    return memory_tenants.delete().where(memory_tenants.c.memory_id.in_(sa.select(given)))


def _without_memories(given: sa.FromClause) -> sa.Delete:
    return memories.delete().where(memories.c.id.in_(sa.select(given)))
