"""What anybody may read of the chains, in a file or in the source database."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from adapters.memory.chains import delete, inputs
from adapters.memory.chains.clock import ReadingClock
from adapters.memory.chains.delete import Deletion
from adapters.memory.chains.recall import Recalled, rank
from adapters.memory.chains.scope import TaskScope
from adapters.memory.chains.visible import CORRECTED_BY, Version, history, visible
from adapters.memory.engine import reading

LIMIT: Final = 3
"""Memories that a question brings up if nobody says how many."""


class ChainReader:
    """The reads of a store of chains; each is one transaction that keeps no writer waiting."""

    def __init__(self, engine: sa.Engine, clock: ReadingClock) -> None:
        """Bind to a database that holds the tables of the chains."""
        self._engine, self._clock = engine, clock

    def history(self, scope: TaskScope, memory_id: int) -> list[Version]:
        """Give all versions of a chain, oldest first, whichever of them is named."""
        inputs.check_id(memory_id)
        with reading(self._engine, [scope.tenant]) as connection:
            return history(connection, scope, memory_id)

    def recall(self, scope: TaskScope, query: str, limit: int = LIMIT) -> list[Recalled]:
        """Give at most `limit` (1 to 20) current, unexpired memories that share words with a question, best first."""
        inputs.check_query(query)
        inputs.check_limit(limit)
        now = self._clock.peek()
        with reading(self._engine, [scope.tenant]) as connection:
            newest = visible(scope).where(CORRECTED_BY.is_(None))
            return rank(query, connection.execute(newest), now, limit)

    def deletions(self, scope: TaskScope) -> list[Deletion]:
        """Give the records of what was deleted of this user, oldest first."""
        with reading(self._engine, [scope.tenant]) as connection:
            return delete.told(connection, scope)

    def close(self) -> None:
        """Give back connections."""
        self._engine.dispose()
