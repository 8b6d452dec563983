"""Deleting whole chains, and the records of it, in the caller's transaction.

Principles: the chain is read in the transaction that deletes it, so it goes as a whole; a
record names ids, a reason and a time, and no text; nothing is recorded that is still there.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa

from adapters.memory.batch import Found, columns, look_up
from adapters.memory.chains.clock import ReadingClock, is_expired
from adapters.memory.chains.scope import TaskScope
from adapters.memory.chains.tables import deletion_tenants, deletions, memories, memory_tenants
from adapters.memory.chains.visible import CORRECTED_BY, chain_of, readable, visible
from orchestrator import ErrorCode, Permanent

EXPIRED: Final = "expired"
"""The reason of a purge."""
_ID: Final = columns(id=int)


@dataclass(frozen=True, kw_only=True, slots=True)
class Deletion:
    """What is told of a chain that was deleted. A reason may be as personal as a text."""

    memory_ids: tuple[int, ...]
    reason: str = field(repr=False)
    deleted_at: datetime


def forget(connection: sa.Connection, clock: ReadingClock, scope: TaskScope, memory_id: int, reason: str) -> list[int]:
    """Delete all versions of a chain, whichever is named, and give their ids, oldest first.

    Raises `MemoryNotFound`.
    """
    chain = chain_of(connection, visible(scope), memory_id)
    return _delete(connection, chain, reason, clock.now())


def expired(connection: sa.Connection, now: datetime, *, only: int | None = None) -> list[tuple[str, int]]:
    """Give tenant and id of each memory, of any user, that has expired at `now` and that nothing has corrected."""
    m, t = memories.c, memory_tenants.c
    query = readable().with_only_columns(t.tenant, m.id, m.expires_at)
    query = query.where(m.expires_at.is_not(None), CORRECTED_BY.is_(None)).order_by(m.id)
    rows = connection.execute(query if only is None else query.where(m.id == only))
    return [(row.tenant, row.id) for row in rows if is_expired(row.expires_at, now)]


def purge(connection: sa.Connection, memory_id: int, now: datetime) -> int:
    """Delete the chain of a memory that has expired, and give how many versions that were.

    0 where it was corrected, forgotten or revoked since it was seen to be due.
    """
    if not expired(connection, now, only=memory_id):
        return 0
    return len(_delete(connection, chain_of(connection, readable(), memory_id), EXPIRED, now))


def told(connection: sa.Connection, scope: TaskScope) -> list[Deletion]:
    """Give the records of a user, oldest first."""
    d, t = deletions.c, deletion_tenants.c
    query = sa.select(d.memory_ids, d.reason, d.deleted_at).join(deletion_tenants, t.deletion_id == d.id)
    rows = connection.execute(query.where(t.tenant == scope.tenant, d.user_id == scope.user).order_by(d.id))
    return [
        Deletion(memory_ids=tuple(json.loads(row.memory_ids)), reason=row.reason, deleted_at=row.deleted_at)
        for row in rows
    ]


def _delete(connection: sa.Connection, chain: Sequence[Found], reason: str, now: datetime) -> list[int]:
    ids: list[int] = [row.id for row in chain]
    for memory_id in reversed(ids):  # the newest first: each refers to the one before it
        connection.execute(memory_tenants.delete().where(memory_tenants.c.memory_id == memory_id))
        connection.execute(memories.delete().where(memories.c.id == memory_id))
    if look_up(connection, _ID, [(memory_id,) for memory_id in ids], _rows):
        message = "A version is still there after it was deleted."
        raise Permanent(message, code=ErrorCode.STORE_REFUSED)
    _record(connection, chain[-1], ids, reason, now)
    return ids


def _rows(given: sa.FromClause) -> sa.Select[Any]:
    return sa.select(memories.c.id).select_from(given.join(memories, memories.c.id == given.c.id))


def _record(connection: sa.Connection, newest: Found, ids: list[int], reason: str, now: datetime) -> None:
    record = {"user_id": newest.user_id, "memory_ids": json.dumps(sorted(ids)), "reason": reason, "deleted_at": now}
    deletion_id = connection.execute(deletions.insert().values(record).returning(deletions.c.id)).scalar_one()
    connection.execute(deletion_tenants.insert().values(deletion_id=deletion_id, tenant=newest.tenant))
