"""Events and candidates of a restored source database that had been forgotten: they go before anybody reads.

Principles: the gate tells it, as of facts, and is asked about the handle as well, which stands
for what was forgotten by it alone. What had been revoked when the copy was taken goes, too. An
event leaves its mark, so that what came before it does not answer in its place. What a job has left because of a hold
stays until it is free.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import sqlalchemy as sa

from adapters.memory import prints
from adapters.memory.batch import Found, in_parts
from adapters.memory.forgotten import Left
from adapters.memory.judged import is_forgotten
from adapters.memory.keyed.erase import drop_candidates, drop_events
from adapters.memory.keyed.named import CANDIDATE, EVENT, any_here
from adapters.memory.sources import ancestors_of
from adapters.memory.tables import fact_candidates, preference_events, preferences
from adapters.memory.tombstones import LocalTombstones
from orchestrator import Gate

_e, _p = preference_events.c, preferences.c
# What holds rests on an event; where that is gone, whoever has put it there, nothing does.
_WITHOUT_EVENT: Final = preferences.delete().where(
    ~sa.exists().where(_e.tenant == _p.tenant, _e.handle == _p.handle, _e.sequence == _p.sequence)
)


def drop_keyed(connection: sa.Connection, gate: Gate, left: Left) -> int:
    """Erase what had been forgotten, and give how many records that were."""
    if not any_here(connection):
        return 0
    events = [
        (row.tenant, row.handle, row.sequence)
        for part in in_parts(connection, sa.select(preference_events))
        for row in part
        if row.state == "revoked" or _is_forgotten(connection, gate, row, left.get(row.handle, ()))
    ]
    candidates = [
        (row.tenant, row.handle, 0)
        for part in in_parts(connection, sa.select(fact_candidates))
        for row in part
        if row.state == "blocked" or _is_forgotten_candidate(connection, gate, row, left.get(row.handle, ()))
    ]
    gone = {(tenant, EVENT, handle) for tenant, handle, _ in drop_events(connection, gate, events)}
    gone |= {(tenant, CANDIDATE, handle) for tenant, handle, _ in drop_candidates(connection, candidates)}
    connection.execute(_WITHOUT_EVENT)
    prints.drop(connection, gone)
    return len(gone)


def _is_forgotten(connection: sa.Connection, gate: Gate, row: Found, but: Collection[str]) -> bool:
    return any(is_forgotten(connection, gate, row, text, but) for text in (row.value or "", row.handle))


def _is_forgotten_candidate(connection: sa.Connection, gate: Gate, row: Found, but: Collection[str]) -> bool:
    """Tell whether a candidate was forgotten, or the message in which it was confirmed."""
    if _is_forgotten(connection, gate, row, but):
        return True
    if row.decided_in is None:
        return False
    told_in = {row.decided_in, *ancestors_of(connection, row.tenant, row.decided_in)}
    return gate.source_refused(row.tenant, told_in, LocalTombstones(connection, but)) is not None
