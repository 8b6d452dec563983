"""Erasing events and candidates: exact handles with the tenant in the statement itself.

Principles: an event leaves that there was one, under a keyed hash, before it goes: no older
answer of its key comes back. What holds now of a key goes with its event. What is counted is
what the statement gave back.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

import sqlalchemy as sa

from adapters.memory.batch import Found, change, columns, insert_new, look_up
from adapters.memory.facts import scope_of
from adapters.memory.keyed.named import CANDIDATE, EVENT, KINDS
from adapters.memory.preferences.marks import key_mac
from adapters.memory.selection import Handle
from adapters.memory.tables import erased_events, fact_candidates, preference_events, preferences
from orchestrator import Erased, EraseOrder, Gate

_HANDLE: Final = columns(tenant=str, handle=str, version=int)


def erase(connection: sa.Connection, gate: Gate, orders: Sequence[EraseOrder]) -> list[Erased]:
    """Delete the events and candidates among the targets: of two orders that name one, the first erased it."""
    wanted = [[(t.kind, (o.scope.tenant, t.id, t.version)) for t in o.targets if t.kind in KINDS] for o in orders]
    every = {record for of_order in wanted for record in of_order}
    events, candidates = (sorted(handle for of, handle in every if of == kind) for kind in (EVENT, CANDIDATE))
    gone = {(EVENT, handle) for handle in drop_events(connection, gate, events)}
    gone |= {(CANDIDATE, handle) for handle in drop_candidates(connection, candidates)}
    left = {(EVENT, _event(row)) for row in look_up(connection, _HANDLE, events, _events)}
    left |= {(CANDIDATE, _candidate(row)) for row in look_up(connection, _HANDLE, candidates, _candidates)}
    answers = []
    for of_order in wanted:
        mine = gone.intersection(of_order)
        gone -= mine
        present = sum(1 for record in of_order if record in left)
        answers.append(Erased(erased=len(mine), already_absent=len(of_order) - len(mine) - present))
    return answers


def drop_events(connection: sa.Connection, gate: Gate, handles: Collection[Handle]) -> set[Handle]:
    """Delete events and what holds of their keys by them, and leave their marks; give those that were there."""
    rows = list(handles)
    marks = {
        (row.tenant, key_mac(gate, scope_of(row.tenant, row.user_id, row.project), row.key), row.sequence)
        for row in look_up(connection, _HANDLE, rows, _events)
    }
    insert_new(connection, erased_events, sorted(marks))
    change(connection, _HANDLE, rows, _in_force_no_longer)
    return {_event(row) for row in look_up(connection, _HANDLE, rows, _without_events)}


def drop_candidates(connection: sa.Connection, handles: Collection[Handle]) -> set[Handle]:
    """Delete candidates; give those that were there."""
    return {_candidate(row) for row in look_up(connection, _HANDLE, list(handles), _without_candidates)}


def _event(row: Found) -> Handle:
    return row.tenant, row.handle, row.sequence


def _candidate(row: Found) -> Handle:
    return row.tenant, row.handle, 0


def _events(given: sa.FromClause) -> sa.Select[Any]:
    e, g = preference_events.c, given.c
    same = (e.tenant == g.tenant) & (e.handle == g.handle) & (e.sequence == g.version)
    columns = (e.tenant, e.user_id, e.project, e.key, e.handle, e.sequence)
    return sa.select(*columns).select_from(given.join(preference_events, same))


def _candidates(given: sa.FromClause) -> sa.Select[Any]:
    c, g = fact_candidates.c, given.c
    same = (c.tenant == g.tenant) & (c.handle == g.handle) & (g.version == 0)
    return sa.select(c.tenant, c.handle).select_from(given.join(fact_candidates, same))


def _in_force_no_longer(given: sa.FromClause) -> sa.Delete:
    p = preferences.c
    return preferences.delete().where(sa.tuple_(p.tenant, p.handle, p.sequence).in_(sa.select(given)))


def _without_events(given: sa.FromClause) -> sa.Executable:
    e = preference_events.c
    these = sa.tuple_(e.tenant, e.handle, e.sequence).in_(sa.select(given))
    return preference_events.delete().where(these).returning(e.tenant, e.handle, e.sequence)


def _without_candidates(given: sa.FromClause) -> sa.Executable:
    c = fact_candidates.c
    these = sa.select(given.c.tenant, given.c.handle).where(given.c.version == 0)
    return fact_candidates.delete().where(sa.tuple_(c.tenant, c.handle).in_(these)).returning(c.tenant, c.handle)
