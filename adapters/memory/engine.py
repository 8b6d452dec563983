"""Connections to the source database: every one proves its settings before it is used."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from adapters.memory.tables import SCHEMA_VERSION, metadata
from orchestrator import ErrorCode, InvalidRequest, Permanent, StoreLocked, StoreUnreachable, Transient

BUSY_MS: Final = 30_000
_SETTINGS: Final[Mapping[str, tuple[str, object]]] = {
    "busy_timeout": (str(BUSY_MS), BUSY_MS),
    "journal_mode": ("WAL", "wal"),
    "synchronous": ("FULL", 2),
    "foreign_keys": ("ON", 1),
    "secure_delete": ("ON", 1),
}


def open_engine(url: str) -> sa.Engine:
    """Give an engine over a SQLite file; the file and its tables are made by the first connection."""
    engine = sa.create_engine(url, hide_parameters=True)
    sa.event.listen(engine, "connect", _prepare)
    sa.event.listen(engine, "begin", _begin)
    return engine


def file_of(url: str) -> Path:
    """Give the database file of a URL; raises `InvalidRequest` for anything but a SQLite file."""
    message = "url must name a SQLite file: sqlite:///path"
    try:
        parsed = sa.make_url(url)
    except sa.exc.ArgumentError:
        raise InvalidRequest(message, field="url") from None
    if parsed.get_backend_name() != "sqlite" or not parsed.database or parsed.database == ":memory:":
        raise InvalidRequest(message, field="url")
    return Path(parsed.database).absolute()


@contextmanager
def writing(engine: sa.Engine, *, wait_ms: int = BUSY_MS) -> Iterator[sa.Connection]:
    """Open one write transaction: nobody else writes from its first line to its last."""
    with translated(), engine.execution_options(wait_ms=wait_ms).begin() as connection:
        yield connection


@contextmanager
def reading(engine: sa.Engine, *, wait_ms: int = BUSY_MS) -> Iterator[sa.Connection]:
    """Open one transaction that reads a single state and keeps no writer waiting."""
    with translated(), engine.execution_options(wait_ms=wait_ms, begin="DEFERRED").begin() as connection:
        yield connection


def checkpoint(engine: sa.Engine) -> bool:
    """Empty the write-ahead log, which still holds what was overwritten; False while others use it."""
    try:
        with translated(), engine.connect() as connection:
            return _truncate_log(connection.connection.driver_connection)
    except StoreLocked:
        return False


def insert_new(connection: sa.Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows; those that are there already stay as they are."""
    if rows:
        connection.execute(_dialect_insert(connection, table).on_conflict_do_nothing(), list(rows))


def insert_or_set(
    connection: sa.Connection, table: sa.Table, row: Mapping[str, Any], set_: Mapping[str, Any]
) -> sa.CursorResult[Any]:
    """Insert a row, or change the one with the same primary key; give the row back."""
    insert = _dialect_insert(connection, table).values(dict(row))
    keys = list(table.primary_key.columns)
    return connection.execute(insert.on_conflict_do_update(index_elements=keys, set_=dict(set_)).returning(table))


@contextmanager
def translated() -> Iterator[None]:
    """Turn the driver's errors into ours; they may quote a value, so they are not chained."""
    try:
        yield
    except sa.exc.DBAPIError as error:
        raise translate(error.orig) from None
    except sqlite3.Error as error:
        raise translate(error) from None
    except sa.exc.TimeoutError:
        raise StoreLocked from None


def translate(error: BaseException | None) -> Exception:
    """Choose the error of the contract for one of the driver's."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return StoreLocked()
    if code in {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}:
        return Permanent("The file is not a sound database.", code=ErrorCode.STORE_REFUSED)
    if isinstance(error, sqlite3.OperationalError):
        return StoreUnreachable()
    return Transient("The store refused the call.", code=ErrorCode.STORE_REFUSED)


def _prepare(driver: sqlite3.Connection, _record: object) -> None:
    driver.isolation_level = None  # the driver begins nothing by itself: `_begin` does
    for name, (wanted, expected) in _SETTINGS.items():
        driver.execute(f"PRAGMA {name} = {wanted}")
        if driver.execute(f"PRAGMA {name}").fetchone() != (expected,):
            raise Permanent(f"SQLite does not keep the setting {name}", code=ErrorCode.STORE_REFUSED)
    if driver.execute("PRAGMA user_version").fetchone()[0] != SCHEMA_VERSION:
        _create(driver)


def _create(driver: sqlite3.Connection) -> None:
    driver.execute("BEGIN IMMEDIATE")
    found = driver.execute("PRAGMA user_version").fetchone()[0]
    if found not in {0, SCHEMA_VERSION}:
        driver.execute("ROLLBACK")
        message = "The database belongs to another version of this adapter."
        raise Permanent(message, code=ErrorCode.STORE_REFUSED)
    if found == 0:
        dialect = sqlite.dialect()
        for table in metadata.sorted_tables:
            driver.execute(str(CreateTable(table).compile(dialect=dialect)))
            for index in sorted(table.indexes, key=lambda i: str(i.name)):
                driver.execute(str(CreateIndex(index).compile(dialect=dialect)))
        driver.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    driver.execute("COMMIT")


def _begin(connection: sa.Connection) -> None:
    options = connection.get_execution_options()
    connection.exec_driver_sql(f"PRAGMA busy_timeout = {int(options.get('wait_ms', BUSY_MS))}")
    connection.exec_driver_sql(f"BEGIN {options.get('begin', 'IMMEDIATE')}")


def _truncate_log(driver: Any) -> bool:  # noqa: ANN401 - SQLAlchemy does not know its driver's type
    # A reader may stay for long and nothing depends on this attempt: the next one comes.
    driver.execute("PRAGMA busy_timeout = 0")
    try:
        busy, _pages, _moved = driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    finally:
        driver.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
    return not busy


def _dialect_insert(connection: sa.Connection, table: sa.Table) -> sqlite.Insert | postgresql.Insert:
    if connection.dialect.name == "sqlite":
        return sqlite.insert(table)
    return postgresql.insert(table)
