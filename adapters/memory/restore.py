"""Putting the source database back: a copy is brought up to date beside it, and takes its place in one transaction.

Principles: what is wrong with the copy is found before anything has changed. Who has the
database open sees all of the copy or nothing of it. The copy itself stays as it is.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TypeAlias

import sqlalchemy as sa

from adapters.memory import sqlite
from adapters.memory.chains.schema import bring_up_shared
from adapters.memory.engine import BUSY_MS, checkpoint, open_engine, translated, writing
from adapters.memory.replay import Kept, Marks, Named, replay
from adapters.memory.tables import source_epoch
from orchestrator import Gate, InvalidRequest, Permanent, Replayed, StoreLocked, sqlite_files

"""Milliseconds for which those who use a file are waited for."""
NextEpoch: TypeAlias = Callable[[], int]
"""Begins a new epoch in the control database and gives it: until it stands here, too, nothing is served."""


def in_place(
    engine: sa.Engine, gate: Gate, tombstones: Marks, epoch: NextEpoch, targets: Named, kept: Kept
) -> Replayed:
    """Bring a database up to date that was put back by its own means; raises `SchemaError` for unknown chains."""
    begun = epoch()
    with writing(engine, [], any_epoch=True) as connection:
        bring_up_shared(connection)
        found = replay(connection, gate, tombstones, begun, targets, kept)
    checkpoint(engine)
    return found


def from_copy(
    live: Path,
    copy: Path,
    gate: Gate,
    tombstones: Marks,
    epoch: NextEpoch,
    targets: Named,
    kept: Kept,
    *,
    known: int | None,
) -> Replayed:
    """Bring a copy of a SQLite file up to date and put it in the place of the live one.

    `known` is the epoch of the control database, before it begins the next one; None where there is none.
    Raises `InvalidRequest` for what is no sound copy, `Permanent` for a live file that is damaged, and `Transient`
    where that one cannot be written now, or another restore is under way.
    """
    with _beside(live) as folder:
        prepared = folder / "restored.db"
        _take(copy, prepared)
        with _opened(prepared) as engine:
            of_copy = _epoch_of(engine)
            if known is not None and of_copy > known:
                message = "the copy is of a later epoch than the control database knows: restore that one first"
                raise InvalidRequest(message, field="copy")
            begun = epoch()
            with writing(engine, []) as connection:
                found = replay(connection, gate, tombstones, begun, targets, kept)
        sqlite_files.scrub(prepared, wait_ms=BUSY_MS)
        _put(prepared, live)
    return found


@contextmanager
def _beside(live: Path) -> Iterator[Path]:
    """Give a folder for the copy; until that is up to date, who was forgotten is in it, so none is left behind.

    It always has the same name: what a process has left that was killed goes with the next restore.
    """
    folder = live.with_name(f"{live.name}.restoring")
    folder.mkdir(mode=0o700, exist_ok=True)
    with ExitStack() as at_the_end:
        handle = os.open(folder, os.O_RDONLY)
        at_the_end.callback(os.close, handle)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreLocked from None
        at_the_end.callback(shutil.rmtree, folder)
        yield folder


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
    engine = open_engine(sa.URL.create("sqlite", database=str(prepared)))
    try:
        yield engine
        checkpoint(engine)
    finally:
        engine.dispose()


def _epoch_of(engine: sa.Engine) -> int:
    """Bring the tables of a copy up to this version, those of the chains among them, and give its epoch."""
    try:
        with writing(engine, []) as connection:
            bring_up_shared(connection)
            return connection.scalar(sa.select(source_epoch.c.epoch)) or 0
    except Permanent:
        message = "the copy was made by another version of this adapter: restore it with that version"
        raise InvalidRequest(message, field="copy") from None


def _put(prepared: Path, live: Path) -> None:
    try:
        with translated(sqlite), closing(sqlite3.connect(prepared)) as source, closing(sqlite3.connect(live)) as target:
            target.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
            source.backup(target)
            target.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except Permanent as error:
        message = "The file that is there is damaged: move it away with what lies beside it, then restore again."
        raise Permanent(message, code=error.code) from None
