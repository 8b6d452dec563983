"""The files of a SQLite database: rewritten without what was deleted, and kept still while they are looked at.

The sequence was measured to leave nothing of deleted rows in the live files: full-text indexes
merged, statistics sampled anew, the database rewritten, the log emptied. Each step alone
leaves something: VACUUM alone the log and the words of full-text indexes, a checkpoint alone
the pages of a file that was written to without `secure_delete`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from orchestrator.domain.codes import Residual
from orchestrator.domain.contract import Scrubbed, ScrubReport

SIDECARS: Final = ("-wal", "-shm", "-journal")
_BUSY: Final = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_FULL_TEXT: Final = (
    "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL TABLE%USING fts5%'"
)
_SAMPLED: Final = "SELECT count(*) FROM sqlite_master WHERE name IN ('sqlite_stat1', 'sqlite_stat4')"


def scrub(path: Path, *, wait_ms: int) -> ScrubReport:
    """Rewrite a database without what was deleted; needs room for a second copy, and time for the whole file.

    Busy where somebody reads or writes for longer than `wait_ms`: then everything may still be there.
    """
    try:
        with closing(_opened(path, wait_ms)) as database:
            for (name,) in database.execute(_FULL_TEXT).fetchall():
                quoted = '"' + name.replace('"', '""') + '"'
                # The name is the database's own, and quoted.
                database.execute(f"INSERT INTO {quoted} ({quoted}) VALUES ('optimize')")  # noqa: S608
            if database.execute(_SAMPLED).fetchone()[0]:
                database.execute("ANALYZE")
            database.execute("VACUUM")
            if database.execute("PRAGMA journal_mode").fetchone()[0] == "persist":
                # A journal that stays keeps the pages of before.
                database.execute("PRAGMA journal_mode = DELETE")
                database.execute("PRAGMA journal_mode = PERSIST")
            # The row says whether it was kept from emptying the log: it raises nothing.
            busy = database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    except sqlite3.OperationalError as error:
        outcome = Scrubbed.BUSY if error.sqlite_errorcode & 0xFF in _BUSY else Scrubbed.FAILED
        return ScrubReport(outcome=outcome)
    if busy:
        return ScrubReport(outcome=Scrubbed.BUSY)
    return ScrubReport(outcome=Scrubbed.CLEAN, residuals=frozenset({Residual.FILE_SYSTEM}))


@contextmanager
def kept_still(path: Path, *, wait_ms: int) -> Iterator[Sequence[Path]]:
    """Give a database and its sidecars, and keep everybody from writing meanwhile.

    Raises `sqlite3.OperationalError` where somebody writes for longer than `wait_ms`.
    """
    with closing(_opened(path, wait_ms)) as database:
        database.execute("BEGIN IMMEDIATE")
        try:
            yield [file for file in (path, *(Path(f"{path}{suffix}") for suffix in SIDECARS)) if file.exists()]
        finally:
            database.execute("ROLLBACK")


def _opened(path: Path, wait_ms: int) -> sqlite3.Connection:
    database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None)
    database.execute(f"PRAGMA busy_timeout = {wait_ms}")
    database.execute("PRAGMA secure_delete = ON")
    return database
