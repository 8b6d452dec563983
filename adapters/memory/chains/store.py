"""Memories with their provenance as a library: each method is one transaction, a purge is one for each chain."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import sqlalchemy as sa

from adapters.memory.chains import delete, inputs, write
from adapters.memory.chains.clock import ReadingClock
from adapters.memory.chains.delete import Deletion
from adapters.memory.chains.file import open_known
from adapters.memory.chains.recall import Recalled, rank
from adapters.memory.chains.schema import bring_up_shared
from adapters.memory.chains.scope import TaskScope
from adapters.memory.chains.visible import CORRECTED_BY, Version, history, visible
from adapters.memory.engine import checkpoint, reading, writing
from orchestrator import ErasureError

LIMIT: Final = 3
"""Memories that a question brings up if nobody says how many."""
_OPENING: Final = "chains"
"""Stands in for a tenant while the tables are made: whoever opens a database waits for whoever does."""


def open_file(path: Path, clock: ReadingClock, *, secure_delete: bool = True) -> ProvenanceStore:
    """Open a provenance file that stands alone; it is made where there is none, and migrated where it is old.

    An old file is vacuumed first, which takes time and room for a second copy. Without
    `secure_delete`, texts stay in the file after they were forgotten. Raises `SchemaError`.
    """
    return ProvenanceStore(open_known(path, secure_delete=secure_delete), clock)


def open_in(engine: sa.Engine, clock: ReadingClock) -> ProvenanceStore:
    """Open the chains in a source database, whose engine sets its connections up; raises `SchemaError`."""
    with writing(engine, [_OPENING]) as connection:
        bring_up_shared(connection)
    return ProvenanceStore(engine, clock)


class ProvenanceStore:
    """Chains of corrections: each memory says where it came from, and the newest of a chain is the one that holds.

    A missing memory and a foreign one raise the same `MemoryNotFound`; wrong input raises
    `MemoryInputError`, before anything is read or written. A call that is refused takes no
    reading of the clock. `forget` reaches this database and no copies: a deletion job does.
    """

    def __init__(self, engine: sa.Engine, clock: ReadingClock) -> None:
        """Bind the store to a database that `open_file` or `open_in` has opened."""
        self._engine, self._clock = engine, clock

    def remember(self, scope: TaskScope, level: str, text: str, source: str, ttl_days: int | None = None) -> int:
        """Store a memory and give its id. It expires when `ttl_days` (1 to 3650) have passed, without them never."""
        at_level = inputs.check_level(level)
        _check_statement(text, source, ttl_days)
        with writing(self._engine, [scope.tenant]) as connection:
            return write.remember(connection, self._clock, scope, at_level, text, source, ttl_days)

    def correct(self, scope: TaskScope, memory_id: int, text: str, source: str, ttl_days: int | None = None) -> int:
        """Put a new version after the newest of a chain and give its id.

        The level stays, the time to live does not: a correction without `ttl_days` never
        expires, and one of an expired memory brings the fact back.
        """
        inputs.check_id(memory_id)
        _check_statement(text, source, ttl_days)
        with writing(self._engine, [scope.tenant]) as connection:
            return write.correct(connection, self._clock, scope, memory_id, text, source, ttl_days)

    def history(self, scope: TaskScope, memory_id: int) -> list[Version]:
        """Give all versions of a chain, oldest first, whichever of them is named."""
        inputs.check_id(memory_id)
        with reading(self._engine) as connection:
            return history(connection, scope, memory_id)

    def recall(self, scope: TaskScope, query: str, limit: int = LIMIT) -> list[Recalled]:
        """Give at most `limit` (1 to 20) current, unexpired memories that share words with a question, best first."""
        inputs.check_query(query)
        inputs.check_limit(limit)
        now = self._clock.peek()
        with reading(self._engine) as connection:
            newest = visible(scope).where(CORRECTED_BY.is_(None))
            return rank(query, connection.execute(newest), now, limit)

    def forget(self, scope: TaskScope, memory_id: int, reason: str) -> list[int]:
        """Delete all versions of a chain, whichever of them is named, and give their ids, oldest first.

        The record keeps `reason` as it is given: whether it repeats what was forgotten, nobody can tell.
        """
        inputs.check_id(memory_id)
        inputs.check_text("reason", reason)
        with writing(self._engine, [scope.tenant]) as connection:
            ids = delete.forget(connection, self._clock, scope, memory_id, reason)
        checkpoint(self._engine)
        return ids

    def deletions(self, scope: TaskScope) -> list[Deletion]:
        """Give the records of what was deleted of this user, oldest first."""
        with reading(self._engine) as connection:
            return delete.told(connection, scope)

    def purge_expired(self) -> int:
        """Delete every chain of any user whose newest version has expired; give how many versions that were.

        A chain that cannot be deleted keeps no other from it: what it raised is raised at the end.
        """
        now, removed, failed = self._clock.peek(), 0, list[ErasureError]()
        with reading(self._engine) as connection:
            due = delete.expired(connection, now)
        for tenant, memory_id in due:
            try:
                with writing(self._engine, [tenant]) as connection:
                    versions = delete.purge(connection, memory_id, now)
                removed += versions
            except ErasureError as error:
                failed.append(error)
        if removed:
            checkpoint(self._engine)
        if failed:
            raise failed[0]
        return removed

    def close(self) -> None:
        """Give back connections."""
        self._engine.dispose()


def _check_statement(text: str, source: str, ttl_days: int | None) -> None:
    inputs.check_text("text", text)
    inputs.check_text("source", source)
    inputs.check_ttl(ttl_days)
