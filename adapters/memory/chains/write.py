"""Remembering and correcting, in the caller's transaction: the clock is read when nothing can be refused any more."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from adapters.memory.batch import Found
from adapters.memory.chains.clock import ReadingClock, expiry
from adapters.memory.chains.errors import MemoryInputError, MemoryNotFound
from adapters.memory.chains.scope import Level, TaskScope
from adapters.memory.chains.tables import memories, memory_tenants
from adapters.memory.chains.visible import visible


def remember(
    connection: sa.Connection,
    clock: ReadingClock,
    scope: TaskScope,
    level: Level,
    text: str,
    source: str,
    ttl_days: int | None,
) -> int:
    """Begin a chain, and give the id of its first version."""
    task = scope.task if level is Level.TASK else None
    return _insert(connection, scope, task, text, source, clock.now(), ttl_days)


def newest(connection: sa.Connection, scope: TaskScope, memory_id: int) -> Found:
    """Give the version that may be corrected.

    Raises `MemoryNotFound`, and `MemoryInputError` for a version that is not the newest.
    """
    old = connection.execute(visible(scope).where(memories.c.id == memory_id)).one_or_none()
    if old is None:
        raise MemoryNotFound(memory_id)
    if old.corrected_by is not None:
        message = f"already corrected by {old.corrected_by}; correct the newest"
        raise MemoryInputError(message, field="memory_id")
    return old


def correct(
    connection: sa.Connection,
    clock: ReadingClock,
    scope: TaskScope,
    old: Found,
    text: str,
    source: str,
    ttl_days: int | None,
) -> int:
    """Put a version after the newest one, at its level, and give the new id; the time to live is not inherited."""
    return _insert(connection, scope, old.task_id, text, source, clock.now(), ttl_days, supersedes=old.id)


def _insert(
    connection: sa.Connection,
    scope: TaskScope,
    task: str | None,
    text: str,
    source: str,
    now: datetime,
    ttl_days: int | None,
    *,
    supersedes: int | None = None,
) -> int:
    row = memories.insert().values(
        user_id=scope.user,
        task_id=task,
        text=text,
        source=source,
        created_at=now,
        expires_at=expiry(now, ttl_days),
        supersedes=supersedes,
    )
    memory_id: int = connection.execute(row).inserted_primary_key[0]  # type: ignore[index]  # one row has one
    connection.execute(memory_tenants.insert().values(memory_id=memory_id, tenant=scope.tenant, revoked=0))
    return memory_id
