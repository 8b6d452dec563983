"""Opening the control database with the settings that were measured to lose nothing.

SQLite: the driver begins no transaction of its own and every one of ours is BEGIN IMMEDIATE
(a deferred one loses updates or fails when it turns from reading to writing); WAL,
synchronous=FULL, foreign keys and secure_delete. Each is read back, because SQLite accepts
an unknown or refused pragma without a word.
"""

from __future__ import annotations

from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import event

from orchestrator.domain.errors import ExpungeError

PRAGMAS: Final = {
    "journal_mode": ("WAL", "wal"),
    "busy_timeout": ("30000", 30000),
    "synchronous": ("FULL", 2),
    "foreign_keys": ("ON", 1),
    "secure_delete": ("ON", 1),
    # Without it INSERT OR REPLACE deletes the row that it replaces and no trigger is asked.
    "recursive_triggers": ("ON", 1),
}


class PragmaRefused(ExpungeError):
    """SQLite did not take a setting that the ledger rests on."""


def open_database(url: str, *, pooled: bool = True) -> sa.Engine:
    """Open a database by its SQLAlchemy URL; bound values never reach an error or a log.

    Without a pool nothing stays open between two transactions, and nobody has to close it.
    """
    # A connection that a restart of the server has cut is noticed before it is used.
    kept: dict[str, Any] = {"pool_pre_ping": True} if pooled else {"poolclass": sa.NullPool}
    engine = sa.create_engine(url, hide_parameters=True, **kept)
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _configure)
        event.listen(engine, "begin", _begin_immediate)
    return engine


def pragmas(engine: sa.Engine) -> dict[str, object]:
    """Read back every setting that the ledger rests on."""
    with engine.connect() as connection:
        return {name: connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in PRAGMAS}


def checkpoint(engine: sa.Engine) -> bool:
    """Empty SQLite's write-ahead log, which keeps what its tables have overwritten; tell whether it is empty.

    Somebody who reads or writes at the moment can keep it from being emptied: call again. Other
    databases have nothing to empty here.
    """
    if engine.dialect.name != "sqlite":
        return True
    # Not `connect`: it begins a transaction, and inside of one there is no checkpoint.
    connection = engine.raw_connection()
    try:
        cursor = connection.cursor()
        # Whoever reads is waited for briefly: writers have to wait as long.
        cursor.execute("PRAGMA busy_timeout = 100")
        try:
            (busy, *_) = cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        finally:
            cursor.execute(f"PRAGMA busy_timeout = {PRAGMAS['busy_timeout'][0]}")
            cursor.close()
    finally:
        connection.close()
    return bool(busy == 0)


def _configure(connection: Any, _record: object) -> None:  # noqa: ANN401 - the driver's own connection
    connection.isolation_level = None
    cursor = connection.cursor()
    for name, (wanted, expected) in PRAGMAS.items():
        cursor.execute(f"PRAGMA {name} = {wanted}")
        cursor.execute(f"PRAGMA {name}")
        (got,) = cursor.fetchone()
        if got != expected:
            message = f"SQLite did not take {name}={wanted}; it answers {got!r}"
            raise PragmaRefused(message)
    cursor.close()


def _begin_immediate(connection: sa.Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")
