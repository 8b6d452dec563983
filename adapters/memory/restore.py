"""Putting the source database back: a copy is brought up to date beside it, and takes its place in one transaction.

Principles: what is wrong with the copy is found before anything has changed. Who has the
database open sees all of the copy or nothing of it. The copy itself stays as it is.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import sqlalchemy as sa

from adapters.memory.engine import checkpoint, open_engine, reading, writing
from adapters.memory.replay import Marks, Named, replay
from adapters.memory.tables import source_epoch
from orchestrator import Gate, InvalidRequest, Permanent, Replayed, StoreLocked, sqlite_files

BUSY_MS: Final = 30_000
NextEpoch = Callable[[], int]
"""Begins a new epoch in the control database and gives it: until it stands here, too, nothing is served."""


def in_place(engine: sa.Engine, gate: Gate, tombstones: Marks, epoch: NextEpoch, targets: Named) -> Replayed:
    """Bring a database up to date that was put back by its own means."""
    begun = epoch()
    with writing(engine, [], any_epoch=True) as connection:
        found = replay(connection, gate, tombstones, begun, targets)
    checkpoint(engine)
    return found


def from_copy(live: Path, copy: Path, gate: Gate, tombstones: Marks, epoch: NextEpoch, targets: Named) -> Replayed:
    """Bring a copy of a SQLite file up to date and put it in the place of the live one."""
    with tempfile.TemporaryDirectory(dir=live.parent) as folder:
        prepared = Path(folder) / "restored.db"
        _take(copy, prepared)
        with _opened(prepared) as engine:
            with reading(engine) as connection:
                of_copy = connection.scalar(sa.select(source_epoch.c.epoch)) or 0
            begun = epoch()
            if of_copy >= begun:
                message = "the copy is of a later epoch than the control database knows: restore that one first"
                raise InvalidRequest(message, field="copy")
            with writing(engine, []) as connection:
                found = replay(connection, gate, tombstones, begun, targets)
        sqlite_files.scrub(prepared, wait_ms=BUSY_MS)
        _put(prepared, live)
    return found


def _take(copy: Path, prepared: Path) -> None:
    """Copy with the log beside it; raises `InvalidRequest` for what is no database."""
    if not copy.is_file():
        message = f"there is no file {copy.name}"
        raise InvalidRequest(message, field="copy")
    try:
        with (
            closing(sqlite3.connect(f"{copy.resolve().as_uri()}?mode=ro", uri=True)) as source,
            closing(sqlite3.connect(prepared)) as target,
        ):
            source.backup(target)
            sound = target.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            tables = {name for (name,) in target.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.Error:
        sound, tables = False, set()
    if not sound or "facts" not in tables:
        message = f"{copy.name} is no sound copy of a source database"
        raise InvalidRequest(message, field="copy")


@contextmanager
def _opened(prepared: Path) -> Iterator[sa.Engine]:
    engine = open_engine(f"sqlite:///{prepared}")
    try:
        yield engine
        checkpoint(engine)
    except Permanent:
        message = "the copy was made by another version of this adapter"
        raise InvalidRequest(message, field="copy") from None
    finally:
        engine.dispose()


def _put(prepared: Path, live: Path) -> None:
    try:
        with closing(sqlite3.connect(prepared)) as source, closing(sqlite3.connect(live)) as target:
            target.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
            source.backup(target)
            target.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.OperationalError:
        raise StoreLocked from None
