"""Which records are handed out now: what is made from any other must neither be written nor shown.

Principles: what no read of this store would give is no master, whatever the reason; a record of
another scope is none either. An id and a version are compared as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final

import sqlalchemy as sa

from adapters.memory.batch import Found, columns, look_up
from adapters.memory.chains.named import KIND as CHAINS
from adapters.memory.chains.named import any_here, number_of
from adapters.memory.chains.tables import memories, memory_tenants
from adapters.memory.chains.visible import CORRECTED_BY
from adapters.memory.engine import reading
from adapters.memory.facts import place_of
from adapters.memory.instant import InstantUs, micros
from adapters.memory.tables import KIND, USER_WIDE, fact_revisions, facts
from orchestrator import Clock, Scope, Target

_FACT: Final = columns(tenant=str, user_id=str, project=str, handle=str, version=int, at_us=int)
_MEMORY: Final = columns(tenant=str, user_id=str, project=str, chain=int, version=int, at_us=int)
_VERSIONS_END: Final = 2**63


class MemoryMasters:
    """Facts and memories of a source database as the records that other things are made from."""

    def __init__(self, engine: sa.Engine, clock: Clock) -> None:
        """Read that database, which stays the caller's to close, by that clock."""
        self._engine, self._clock = engine, clock

    def active(self, scope: Scope, records: Collection[Target]) -> dict[Target, int]:
        """Give those of the records that are handed out in exactly this scope now, each with the scope's revision.

        A fact is handed out while it is active, confirmed, unexpired and not revoked; a memory while
        it is the newest of its chain, unexpired and not revoked. A record names all of that: kind, id
        and version. One statement a kind; raises `Transient` where the database does not answer.
        """
        now_us = micros(self._clock.now())
        place = tuple(place_of(scope).values())
        asked = sorted({(t.kind, t.id, t.version) for t in records if 0 < t.version < _VERSIONS_END})
        of_facts = [(*place, handle, version, now_us) for kind, handle, version in asked if kind == KIND]
        of_chains = [
            (*place, chain, version, now_us)
            for kind, handle, version in asked
            if kind == CHAINS and (chain := number_of(handle)) is not None
        ]
        with reading(self._engine, [scope.tenant]) as connection:
            rows = _found(connection, of_facts, of_chains)
            found = {(kind, str(row.handle), row.version): row.revision for kind, row in rows}
        return {t: found[key] for t in records if (key := (t.kind, t.id, t.version)) in found}


def _found(connection: sa.Connection, of_facts: list[Any], of_chains: list[Any]) -> Iterator[tuple[str, Found]]:
    for row in look_up(connection, _FACT, of_facts, _facts):
        yield KIND, row
    if of_chains and any_here(connection):
        for row in look_up(connection, _MEMORY, of_chains, _memories):
            yield CHAINS, row


def _revision(given: sa.FromClause) -> sa.ColumnElement[int]:
    r, g = fact_revisions.c, given.c
    here = (r.tenant == g.tenant) & (r.user_id == g.user_id) & (r.project == g.project)
    return sa.func.coalesce(sa.select(r.rev).where(here).scalar_subquery(), 0).label("revision")


def _facts(given: sa.FromClause) -> sa.Select[Any]:
    f, g = facts.c, given.c
    named = (f.tenant == g.tenant) & (f.fact_id == g.handle) & (f.version == g.version)
    here = (f.user_id == g.user_id) & (f.project == g.project)
    unexpired = f.expires > sa.cast(g.at_us, sa.Double()) / 1e6
    valid = here & (f.active == 1) & (f.confirmed == 1) & unexpired
    columns = (g.handle, g.version, _revision(given))
    return sa.select(*columns).select_from(given.join(facts, named)).where(valid)


def _memories(given: sa.FromClause) -> sa.Select[Any]:
    m, t, g = memories.c, memory_tenants.c, given.c
    older = memories.alias("back")
    # From each version back to the first of its chain: that one's id is the chain's.
    back = sa.select(g.version.label("start"), m.id, m.supersedes).join(memories, m.id == g.version)
    chain = back.cte("chain", recursive=True)
    chain = chain.union(
        sa.select(chain.c.start, older.c.id, older.c.supersedes).where(older.c.id == chain.c.supersedes)
    )
    begins = (
        sa.exists()
        .where(chain.c.start == g.version, chain.c.id == g.chain, chain.c.supersedes.is_(None))
        .correlate_except(chain)
    )
    here = (t.tenant == g.tenant) & (m.user_id == g.user_id) & (sa.func.coalesce(m.task_id, USER_WIDE) == g.project)
    # A time that names no instant compares with nothing: such a memory is none to build on.
    unexpired = m.expires_at.is_(None) | (InstantUs(m.expires_at) > g.at_us)
    valid = here & (t.revoked == 0) & CORRECTED_BY.is_(None) & unexpired & begins
    joined = given.join(memories, m.id == g.version).join(memory_tenants, t.memory_id == m.id)
    columns = (g.chain.label("handle"), g.version, _revision(given))
    return sa.select(*columns).select_from(joined).where(valid)
