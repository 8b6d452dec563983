"""The files of a SQLite database: rewritten without what was deleted, and kept still while they are looked at.

The sequence was measured to leave nothing of deleted rows in the live files: full-text indexes
merged, statistics sampled anew, the database rewritten, the log emptied. Each step alone
leaves something: VACUUM alone the log and the words of full-text indexes, a checkpoint alone
the pages of a file that was written to without `secure_delete`.

A journal that other connections keep (PERSIST, TRUNCATE) needs no step of its own: VACUUM here
writes over it and takes it away, because the mode of a rollback journal belongs to a connection.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Final

from orchestrator.domain.codes import Residual
from orchestrator.domain.contract import Scrubbed, ScrubReport
from orchestrator.domain.errors import StoreLocked, StoreUnreachable

# Without -shm: it indexes the pages of the log and never holds a value, and readers may touch it.
KEPT: Final = ("", "-wal", "-journal")
_BUSY: Final = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_VIRTUAL: Final = "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL TABLE%'"
_FULL_TEXT: Final = re.compile(r"\sUSING\s+[\"'`\[]?fts[345]\b", re.IGNORECASE)
_SAMPLED: Final = "SELECT count(*) FROM sqlite_master WHERE name GLOB 'sqlite_stat[1-4]'"


def scrub(path: Path, *, wait_ms: int) -> ScrubReport:
    """Rewrite a database without what was deleted; needs room for a second copy, and time for the whole file.

    Busy where somebody reads or writes for longer than `wait_ms`: then everything may still be there.
    """
    try:
        with closing(_opened(path, wait_ms)) as database:
            for name, sql in database.execute(_VIRTUAL).fetchall():
                if _FULL_TEXT.search(sql):
                    quoted = '"' + name.replace('"', '""') + '"'
                    # The name is the database's own, and quoted.
                    database.execute(f"INSERT INTO {quoted} ({quoted}) VALUES ('optimize')")  # noqa: S608
            if database.execute(_SAMPLED).fetchone()[0]:
                database.execute("ANALYZE")
            database.execute("VACUUM")
            # The row says whether it was kept from emptying the log: it raises nothing.
            busy = database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    except sqlite3.DatabaseError as error:
        return ScrubReport(outcome=Scrubbed.BUSY if _is_busy(error) else Scrubbed.FAILED)
    if busy:
        return ScrubReport(outcome=Scrubbed.BUSY)
    return ScrubReport(outcome=Scrubbed.CLEAN, residuals=frozenset({Residual.FILE_SYSTEM}))


@contextmanager
def kept_still(path: Path, *, wait_ms: int) -> Iterator[Sequence[Path]]:
    """Give a database and its sidecars, and keep everybody from writing meanwhile; readers go on.

    An empty log is left out: it stays empty, and opening it as root changes its stamp. Raises
    `StoreLocked` where somebody writes for longer than `wait_ms`, and `StoreUnreachable` where
    there is no database.
    """
    with ExitStack() as stack:
        try:
            database = stack.enter_context(closing(_opened(path, wait_ms)))
            database.execute("BEGIN IMMEDIATE")
        except sqlite3.DatabaseError as error:
            raise (StoreLocked if _is_busy(error) else StoreUnreachable) from None
        # SQLite puts the sidecars beside the file that a link leads to.
        files = [Path(f"{path.resolve()}{suffix}") for suffix in KEPT]
        yield [file for file in files if file.exists() and file.stat().st_size]


def _opened(path: Path, wait_ms: int) -> sqlite3.Connection:
    database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None)
    database.execute(f"PRAGMA busy_timeout = {wait_ms}")
    database.execute("PRAGMA secure_delete = ON")
    return database


def _is_busy(error: sqlite3.DatabaseError) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _BUSY
