"""Rewriting one copy: got ready beside it as a whole, and moved over it in one step.

Principles: the original stays whole until the move. What the file is about to hold is written
into the manifest before it, so after a crash its bytes say which of the two it is. A file
that is not the one that the manifest names is left as it is.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from adapters.backup import disk
from adapters.backup.errors import NotAsListed
from adapters.backup.folder import Folder, done
from adapters.backup.looking import looking
from adapters.backup.manifest import Contents, Copy, Manifest
from orchestrator import Scrubbed, StoreUnreachable, sqlite_files


def folded(folder: Folder, known: Manifest, copy: Copy) -> tuple[Manifest, Copy]:
    """Take what lies in a copy's log into the copy itself, and give the manifest and its entry; the caller is alone.

    A log beside another file would be read into that. It goes last: beside the file that holds all
    of it already, it changes nothing. Raises `NotAsListed` for a file with other bytes than the
    manifest names, `Unreadable` for one that is no source database.
    """
    path = folder.path_of(copy.file)
    if disk.digest(path) != copy.sha256:
        raise NotAsListed
    beside = disk.sidecars(path)
    if any(file.stat().st_size for file in beside):
        with ready(folder, path) as work:
            with looking(path) as original:
                copied(original, work)
            known = put_in_place(folder, known, copy, work, finished(work))
    for file in beside:
        file.unlink(missing_ok=True)
    if beside:
        disk.write_through(path.parent)
    return known, next(each for each in known.copies if each.handle == copy.handle)


def rewrite(
    folder: Folder,
    known: Manifest,
    copy: Copy,
    take_out: Callable[[sqlite3.Connection], None],
    in_time: Callable[[], None],
) -> Manifest:
    """Let a copy without a log hold what `take_out` leaves of it, and give the manifest that says so.

    The caller is alone. Raises `Unreadable` for what is no source database, and what `take_out`
    raises; `in_time` may raise until the copy is moved.
    """
    path = folder.path_of(copy.file)
    with ready(folder, path) as work:
        with looking(path) as original:
            copied(original, work)
        with closing(sqlite3.connect(work, isolation_level=None)) as new:
            settle(new)
            new.execute("BEGIN IMMEDIATE")
            take_out(new)
            new.execute("COMMIT")
        vacuum(work)
        in_time()
        return put_in_place(folder, known, copy, work, finished(work))


def copied(original: sqlite3.Connection, work: Path) -> None:
    """Copy one state of a database into an empty file."""
    with closing(sqlite3.connect(work, isolation_level=None)) as new:
        new.execute("PRAGMA synchronous = OFF")
        original.backup(new)


def settle(new: sqlite3.Connection) -> None:
    """Set a connection to a file up that nobody rests on before it is written through."""
    for setting in ("synchronous = OFF", "journal_mode = DELETE", "foreign_keys = ON", "secure_delete = ON"):
        new.execute(f"PRAGMA {setting}").fetchall()


def vacuum(work: Path) -> None:
    """Write a file anew without what was deleted from it."""
    if sqlite_files.scrub(work, wait_ms=0).outcome is not Scrubbed.CLEAN:
        raise StoreUnreachable


def finished(work: Path) -> Contents:
    """Say what a file holds that is ready to be moved into its place."""
    return Contents(sha256=disk.digest(work), bytes=work.stat().st_size)


def put_in_place(folder: Folder, known: Manifest, copy: Copy, work: Path, contents: Contents) -> Manifest:
    """Move a finished file over a copy, and give the manifest that names what it holds."""
    copy = copy.model_copy(update={"pending": contents})
    known = folder.save(known.having(copy))
    disk.move_over(work, folder.root / copy.file)
    return folder.save(known.having(done(copy)))


@contextmanager
def ready(folder: Folder, place: Path) -> Iterator[Path]:
    """Give an empty file beside a place, and take away what is left of it at the end."""
    work = folder.work_file(place)
    try:
        yield work
    finally:
        disk.remove(work)
