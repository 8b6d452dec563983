"""A store that lies in PostgreSQL, seen and cut off by the suite over connections of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import psycopg
import sqlalchemy as sa

from orchestrator.testing import StoreUnderTest


class OnPostgres(StoreUnderTest):
    """Stands before the same store on SQLite; the suite looks over one connection, which `close` ends."""

    database: sa.URL

    row_id = "ctid::text"
    _eyes: psycopg.Connection[tuple[Any, ...]] | None = None

    def run(self, statement: str, values: Sequence[Any] = ()) -> Sequence[tuple[Any, ...]]:
        cursor = self.eyes().execute(statement.encode(), values or None)
        return cursor.fetchall() if cursor.description else []

    def tables(self) -> set[str]:
        return {row[0] for row in self.run("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")}

    @contextmanager
    def unreachable(self) -> Iterator[None]:
        """Throw everybody out of the database, and let nobody in."""
        name = self.database.database
        self.close()
        with closing(self._connect("postgres")) as connection:
            connection.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false'.encode())
            connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,))
            try:
                yield
            finally:
                connection.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true'.encode())

    def close(self) -> None:
        if self._eyes is not None:
            self._eyes.close()
            self._eyes = None

    def eyes(self) -> psycopg.Connection[tuple[Any, ...]]:
        self._eyes = self._eyes or self._connect(str(self.database.database))
        return self._eyes

    def _connect(self, database: str) -> psycopg.Connection[tuple[Any, ...]]:
        url = self.database.set(drivername="postgresql", database=database)
        return psycopg.connect(url.render_as_string(hide_password=False), autocommit=True)
