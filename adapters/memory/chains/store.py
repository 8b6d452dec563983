"""Memories with their provenance as a library: each method is one transaction, a purge is one for each chain."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa

from adapters.memory.chains import delete, inputs, write
from adapters.memory.chains.clock import ReadingClock
from adapters.memory.chains.file import open_known
from adapters.memory.chains.reading import ChainReader
from adapters.memory.chains.scope import TaskScope
from adapters.memory.engine import checkpoint, reading, writing
from orchestrator import ErasureError


def open_file(path: Path, clock: ReadingClock, *, secure_delete: bool = True) -> ProvenanceStore:
    """Open a provenance file that stands alone; it is made where there is none, and migrated where it is old.

    An old file is vacuumed first, which takes time and room for a second copy. Without
    `secure_delete`, texts stay in the file after they were forgotten. Raises `SchemaError`.
    """
    return ProvenanceStore(open_known(path, secure_delete=secure_delete), clock)


class ProvenanceStore(ChainReader):
    """Memories that say where they came from. What is corrected stays, and the newest of a chain is the one that holds.

    A missing memory and a foreign one raise the same `MemoryNotFound`; wrong input raises
    `MemoryInputError`, before anything is read or written. A call that is refused takes no
    reading of the clock. `forget` reaches this database and no copies: a deletion job does.
    """

    def __init__(self, engine: sa.Engine, clock: ReadingClock) -> None:
        """Bind the store to a database that `open_file` has opened."""
        super().__init__(engine, clock)

    def remember(self, scope: TaskScope, level: str, text: str, source: str, ttl_days: int | None = None) -> int:
        """Store a memory and give its id. It expires when `ttl_days` (1 to 3650) have passed, without them never."""
        at_level = inputs.check_level(level)
        inputs.check_statement(text, source, ttl_days)
        with writing(self._engine, [scope.tenant]) as connection:
            return write.remember(connection, self._clock, scope, at_level, text, source, ttl_days)

    def correct(self, scope: TaskScope, memory_id: int, text: str, source: str, ttl_days: int | None = None) -> int:
        """Put a new version after the newest of a chain and give its id.

        The level stays, the time to live does not: a correction without `ttl_days` never
        expires, and one of an expired memory brings the fact back.
        """
        inputs.check_id(memory_id)
        inputs.check_statement(text, source, ttl_days)
        with writing(self._engine, [scope.tenant]) as connection:
            old = write.newest(connection, scope, memory_id)
            return write.correct(connection, self._clock, scope, old, text, source, ttl_days)

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
