"""The files of the index: what lives in them are vectors."""

from __future__ import annotations

from collections.abc import Iterator

import sqlalchemy as sa

from adapters.memory.engine import reading
from adapters.memory.physical import DatabaseFiles
from adapters.vector.options import NAME
from adapters.vector.tables import points
from orchestrator import AdapterContext


class IndexFiles(DatabaseFiles):
    """The files of the index's database."""

    def __init__(self, engine: sa.Engine, context: AdapterContext) -> None:
        """Bind it to the database; nothing is opened."""
        super().__init__(NAME, engine, context)

    def live_values(self) -> Iterator[bytes]:
        """Give the vectors of all points, as the file holds them."""
        with reading(self._engine) as connection:
            found = connection.execute(sa.select(points.c.vector).execution_options(stream_results=True))
            for (vector,) in found:
                yield vector
