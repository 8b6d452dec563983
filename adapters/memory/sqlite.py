"""The store in a SQLite file: every connection proves its settings before it is used.

A write transaction begins IMMEDIATE: nobody else writes from its first line to its last, so
no writer decides by a state that another is changing.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite

from adapters.memory.instant import SQLITE_NAME, micros_of_text
from adapters.memory.tables import SCHEMA_VERSION, statements, upgrade
from orchestrator import ErrorCode, Permanent, Residual, StoreLocked, StoreUnreachable, Transient

BUSY_MS: Final = 30_000
READING: Final[Mapping[str, Any]] = {"begin": "DEFERRED"}
WRITING: Final[Mapping[str, Any]] = {"begin": "IMMEDIATE"}
DRIVER_ERROR: Final = sqlite3.Error
RESIDUALS: Final[frozenset[Residual]] = frozenset()
_SETTINGS: Final[Mapping[str, str | int]] = {
    "busy_timeout": BUSY_MS,
    "journal_mode": "wal",
    "synchronous": 2,  # FULL
    "foreign_keys": 1,
    "secure_delete": 1,
}
_TABLES: Final = "SELECT name FROM sqlite_master WHERE type = 'table' AND name IN ('facts', 'memories')"


def create_engine(url: sa.URL) -> sa.Engine:
    """Give an engine that opens nothing yet."""
    return sa.create_engine(url, hide_parameters=True)


def prepare(driver: Any) -> None:  # noqa: ANN401 - SQLAlchemy does not know its driver's type
    """Set a new connection up, and make the tables where there are none; a file that is not ours stays as it is."""
    driver.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
    _judge(driver)
    settle(driver, _SETTINGS)
    driver.create_function(SQLITE_NAME, 1, micros_of_text, deterministic=True)
    if driver.execute("PRAGMA user_version").fetchone()[0] != SCHEMA_VERSION:
        _create(driver)


def settle(driver: Any, settings: Mapping[str, str | int]) -> None:  # noqa: ANN401 - as above
    """Set a connection up as a store wants it, and see that SQLite keeps to each setting."""
    driver.isolation_level = None  # the driver begins nothing by itself: `begin` does
    for name, value in settings.items():
        driver.execute(f"PRAGMA {name} = {value}")
        if driver.execute(f"PRAGMA {name}").fetchone() != (value,):
            raise Permanent(f"SQLite does not keep the setting {name}", code=ErrorCode.STORE_REFUSED)


def begin(connection: sa.Connection, wait_ms: int) -> None:
    """Begin a transaction that waits for a lock no longer than that."""
    connection.exec_driver_sql(f"PRAGMA busy_timeout = {wait_ms}")
    connection.exec_driver_sql(f"BEGIN {connection.get_execution_options().get('begin', 'IMMEDIATE')}")


def lock(_connection: sa.Connection, _tenants: Collection[str]) -> None:
    """Do nothing: a write transaction has locked the whole file since its first line."""


def empty_log(engine: sa.Engine) -> bool:
    """Empty the write-ahead log, which still holds what was overwritten; False while others use it."""
    with engine.connect() as connection:
        driver: Any = connection.connection.driver_connection
        # A reader may stay for long and nothing depends on this attempt: the next one comes.
        driver.execute("PRAGMA busy_timeout = 0")
        try:
            busy, _pages, _moved = driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        finally:
            driver.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
        return not busy


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


def _judge(driver: Any) -> None:  # noqa: ANN401 - as above
    """Refuse a file whose version is not that of our tables: the number alone might mean anybody's."""
    version = driver.execute("PRAGMA user_version").fetchone()[0]
    tables = {name for (name,) in driver.execute(_TABLES).fetchall()}
    if "facts" in tables or (version == 0 and not tables):
        return
    message = "The database belongs to something else than this adapter."
    if "memories" in tables:
        message = "The file is a provenance file that stands alone, and no source database."
    raise Permanent(message, code=ErrorCode.STORE_REFUSED)


def _create(driver: sqlite3.Connection) -> None:
    driver.execute("BEGIN IMMEDIATE")
    found = driver.execute("PRAGMA user_version").fetchone()[0]
    if not 0 <= found <= SCHEMA_VERSION:
        driver.execute("ROLLBACK")
        message = "The database belongs to another version of this adapter."
        raise Permanent(message, code=ErrorCode.STORE_REFUSED)
    dialect = sqlite.dialect()
    for statement in statements(dialect) if found == 0 else upgrade(dialect, found):
        driver.execute(statement)
    driver.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    driver.execute("COMMIT")
