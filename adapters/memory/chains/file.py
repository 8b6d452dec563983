"""A provenance file that stands alone: every connection proves its settings before it is used.

The journal mode is left as the file has it, and a file that is not known is not touched.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import sqlalchemy as sa

from adapters.memory import sqlite
from adapters.memory.chains.schema import bring_up, judge
from adapters.memory.engine import BUSY_MS, checkpoint, reading, translated, writing
from orchestrator import StoreLocked


def engine_of(path: Path, *, secure_delete: bool) -> sa.Engine:
    """Give an engine for a file; it opens nothing yet."""
    engine = sqlite.create_engine(sa.URL.create("sqlite+pysqlite", database=str(path.absolute())))
    settings = {
        "busy_timeout": BUSY_MS,
        "synchronous": 2,
        "foreign_keys": 1,
        # Said in both cases: what SQLite does unasked differs from build to build.
        "secure_delete": int(secure_delete),
    }

    def prepare(driver: Any, _record: object) -> None:  # noqa: ANN401 - SQLAlchemy does not know its driver's type
        try:
            sqlite.settle(driver, settings)
        except BaseException:
            driver.close()
            raise

    def begin(connection: sa.Connection) -> None:
        sqlite.begin(connection, int(connection.get_execution_options().get("wait_ms", BUSY_MS)))

    sa.event.listen(engine, "connect", prepare)
    sa.event.listen(engine, "begin", begin)
    return engine


def open_known(path: Path, *, secure_delete: bool) -> sa.Engine:
    """Open a file, and bring it up to the version of this store; one that cannot be is closed as it was."""
    engine = engine_of(path, secure_delete=secure_delete)
    try:
        with reading(engine) as connection:
            found = judge(connection)
        if found.is_old:
            _clean(engine)
        with writing(engine, ()) as connection:
            bring_up(connection)
    except BaseException:
        engine.dispose()
        raise
    return engine


def _clean(engine: sa.Engine) -> None:
    """Overwrite what was deleted from a file before it came to us.

    It comes before the migration: after a crash in between, the file is still an old one.
    """
    with translated(sqlite), engine.connect() as connection:
        driver: Any = connection.connection.driver_connection  # no transaction: VACUUM takes none
        driver.execute("VACUUM")
    if not checkpoint(engine):
        raise StoreLocked
