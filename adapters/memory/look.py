"""A raw, read-only connection that shows one state of the database, for looking again.

It shares nothing with the engine: no pool, no query builder, no way to write.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

import sqlalchemy as sa

from adapters.memory.engine import database_of, translated

Given: TypeAlias = Sequence[Sequence[str | int | None]]
_TYPES: Final[Mapping[str, str]] = {"number": "bigint", "version": "bigint"}


class Look(Protocol):
    """Runs one statement in which `{given}` stands for rows that are handed in as a table of that name."""

    def __call__(self, statement: str, columns: Sequence[str], rows: Given) -> Iterator[tuple[Any, ...]]:
        """Give what the statement finds; without rows, nothing."""


@contextmanager
def looking(url: sa.URL, *, wait_ms: int) -> Iterator[Look]:
    """Open a connection that cannot write and wait no longer than that."""
    with translated(database_of(url)):
        if url.get_backend_name() == "sqlite":
            with _sqlite(Path(str(url.database)), wait_ms) as look:
                yield look
        else:
            with _postgresql(url, wait_ms) as look:
                yield look


@contextmanager
def _sqlite(file: Path, wait_ms: int) -> Iterator[Look]:
    uri = f"{file.as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True, timeout=wait_ms / 1000, isolation_level=None)) as connection:
        connection.execute("BEGIN")

        def look(statement: str, columns: Sequence[str], rows: Given) -> Iterator[tuple[Any, ...]]:
            if rows:
                parts = ", ".join(f"json_extract(value, '$[{n}]') AS {name}" for n, name in enumerate(columns))
                table = f"(SELECT {parts} FROM json_each(?)) AS given"  # noqa: S608 - names of ours
                yield from connection.execute(statement.replace("{given}", table), (json.dumps(rows),))

        yield look


@contextmanager
def _postgresql(url: sa.URL, wait_ms: int) -> Iterator[Look]:
    import psycopg  # noqa: PLC0415 - the driver loads only where it is used

    from adapters.memory.postgresql import LIMITS, PATIENCE, limits  # noqa: PLC0415 - as above

    arguments, parameters = url.get_dialect()().create_connect_args(url)
    with closing(psycopg.connect(*arguments, **{**PATIENCE, **parameters})) as connection:
        connection.read_only = True
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.execute(LIMITS.encode(), limits(wait_ms))

        def look(statement: str, columns: Sequence[str], rows: Given) -> Iterator[tuple[Any, ...]]:
            if rows:
                arrays = ", ".join(f"%s::{_TYPES.get(name, 'text')}[]" for name in columns)
                table = f"unnest({arrays}) AS given ({', '.join(columns)})"
                yield from connection.execute(
                    statement.replace("{given}", table).encode(), [list(column) for column in zip(*rows, strict=True)]
                )

        yield look
