"""Opening the database of the index: settings and transactions are those of the memory store, the tables our own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import sqlalchemy as sa

from adapters.memory import sqlite
from adapters.memory.engine import BUSY_MS, database_of
from adapters.vector.tables import SCHEMA, SCHEMA_VERSION, statements
from orchestrator import ErrorCode, Permanent

_SETTINGS: Final[Mapping[str, str | int]] = {
    "busy_timeout": BUSY_MS,
    "journal_mode": "wal",
    "synchronous": 2,  # FULL
    "secure_delete": 1,
}
_SHAPE: Final = f"SELECT version, dimensions FROM {SCHEMA}"  # noqa: S608 - a name of ours
# Two halves, as PostgreSQL keeps them apart from the locks of tenants.
_LOCK: Final = (0x6578_7075, 0x7665_6374)


def open_engine(url: sa.URL, dimensions: int) -> sa.Engine:
    """Give an engine for a URL that `parse` gave; the tables are made by the first connection."""
    database = database_of(url)
    engine = database.create_engine(url)
    prepare = partial(_on_sqlite if url.get_backend_name() == "sqlite" else _on_postgresql, dimensions=dimensions)

    def connected(driver: Any, _record: object) -> None:  # noqa: ANN401 - the driver's own connection
        try:
            prepare(driver)
        except BaseException:
            driver.close()
            raise

    def begin(connection: sa.Connection) -> None:
        database.begin(connection, int(connection.get_execution_options().get("wait_ms", BUSY_MS)))

    sa.event.listen(engine, "connect", connected)
    sa.event.listen(engine, "begin", begin)
    return engine


def _on_sqlite(driver: Any, *, dimensions: int) -> None:  # noqa: ANN401 - SQLAlchemy does not know its driver's type
    driver.isolation_level = None
    driver.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
    is_new = _is_empty(driver)
    if not is_new:
        _check(driver.execute(_SHAPE).fetchall(), dimensions)
    sqlite.settle(driver, _SETTINGS)
    if is_new:
        driver.execute("BEGIN IMMEDIATE")
        if _is_empty(driver):  # nobody was faster
            for statement in statements("sqlite", dimensions):
                driver.execute(statement)
            # A file of version 0 is anybody's: the memory store would make its tables in it.
            driver.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        driver.execute("COMMIT")
        _check(driver.execute(_SHAPE).fetchall(), dimensions)


def _is_empty(driver: Any) -> bool:  # noqa: ANN401 - as above
    """Tell whether a file is new; one that is somebody else's is refused, and left as it is."""
    tables = {name for (name,) in driver.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()}
    if SCHEMA in tables:
        return False
    if tables or driver.execute("PRAGMA user_version").fetchone()[0]:
        message = "The database belongs to something else than this adapter."
        raise Permanent(message, code=ErrorCode.STORE_REFUSED)
    return True


def _on_postgresql(driver: Any, *, dimensions: int) -> None:  # noqa: ANN401 - psycopg loads only where it is used
    with driver.transaction():
        driver.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
        driver.execute("SELECT pg_advisory_xact_lock(%s, %s)", _LOCK)
        encoding, durable, extended, offered, found = driver.execute(
            "SELECT current_setting('server_encoding'), current_setting('synchronous_commit'),"
            " (SELECT count(*) FROM pg_extension WHERE extname = 'vector'),"
            " (SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'),"
            " to_regclass('vector_schema')"
        ).fetchone()
        if encoding != "UTF8":
            _refuse("The database must have the encoding UTF8.")
        if durable == "off":
            _refuse("synchronous_commit is off: an erase could be lost after it was reported.")
        if not extended and not offered:
            _refuse("The server has no pgvector: install its extension `vector`.")
        if found is None:
            driver.execute("CREATE EXTENSION IF NOT EXISTS vector")
            for statement in statements("postgresql", dimensions):
                driver.execute(statement.encode())
        _check(driver.execute(_SHAPE.encode()).fetchall(), dimensions)


def _check(shape: Sequence[tuple[int, int]], dimensions: int) -> None:
    if len(shape) != 1 or shape[0][0] != SCHEMA_VERSION:
        _refuse("The database belongs to another version of this adapter.")
    if shape[0][1] != dimensions:
        _refuse(f"The index holds vectors of {shape[0][1]} numbers: set the option dimensions to that.")


def _refuse(message: str) -> None:
    raise Permanent(message, code=ErrorCode.STORE_REFUSED)
