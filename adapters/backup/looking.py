"""Opening one copy to look at it: nothing is created, nothing is written, and what is no copy is said to be none."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from adapters.backup import disk
from adapters.backup.errors import Unreadable

_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table'"


@contextmanager
def looking(path: Path) -> Iterator[sqlite3.Connection]:
    """Give a connection that reads one state of a copy, its log included.

    Raises `Unreadable` for what is no source database, also while it is read. That the disk is full
    says nothing of a copy: then the driver's error is raised.
    """
    try:
        with closing(_opened(path)) as connection:
            connection.execute("BEGIN")
            if "facts" not in tables_of(connection):
                raise Unreadable
            yield connection
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
            raise
        raise Unreadable from None


def tables_of(connection: sqlite3.Connection) -> frozenset[str]:
    """Name the tables of a copy: an older one has fewer."""
    return frozenset(name for (name,) in connection.execute(_TABLES))


def _opened(path: Path) -> sqlite3.Connection:
    # Without a log or journal nothing can be missing, and SQLite makes no files beside a copy that it calls immutable.
    alone = not any(file.stat().st_size for file in disk.sidecars(path))
    uri = f"{path.as_uri()}?mode=ro{'&immutable=1' if alone else ''}"
    return sqlite3.connect(uri, uri=True, isolation_level=None)
