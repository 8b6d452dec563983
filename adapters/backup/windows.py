"""The windows: which copies are left to their time for which job, and whether their time has closed them.

Principles: written down before an answer is given, so that a look at the job leaves out what was
scheduled for it and nothing else. A copy is closed when its time is over and its file is seen to
be gone: neither of the two alone says so.
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

from adapters.backup import disk
from adapters.backup.folder import BOOK, Folder
from adapters.backup.manifest import Copy, Manifest
from orchestrator import Seen

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TABLES: Final = (
    """CREATE TABLE IF NOT EXISTS copies (handle TEXT PRIMARY KEY, file TEXT NOT NULL, sha256 TEXT NOT NULL,
    bytes INTEGER NOT NULL, until_us INTEGER NOT NULL) WITHOUT ROWID""",
    """CREATE TABLE IF NOT EXISTS scheduled (job TEXT, handle TEXT, until_us INTEGER NOT NULL,
    PRIMARY KEY (job, handle)) WITHOUT ROWID""",
)


class _Window(NamedTuple):
    """What is known of a copy with a window, though the manifest may name it no more."""

    file: str
    sha256: str
    bytes: int
    until_us: int


class Windows:
    """The book beside the manifest: ids and times alone. Its folder is locked by the caller."""

    def __init__(self, folder: Folder) -> None:
        """Bind it to the folder; nothing is opened."""
        self._folder, self._path = folder, folder.root / BOOK

    def schedule(self, scheduled: Iterable[tuple[UUID, Copy]], now: datetime) -> None:
        """Write down which copies are left to their time for which job; what is over is none of a job's any more."""
        rows = [(str(job), copy, _us(copy)) for job, copy in scheduled]
        if not rows:
            return
        if not self._path.exists():
            disk.make_private(self._path)
        with self._opened() as book:
            book.execute("BEGIN IMMEDIATE")
            for table in _TABLES:
                book.execute(table)
            copies = {copy.handle: (copy.handle, copy.file, copy.sha256, copy.bytes, us) for _, copy, us in rows}
            book.executemany("INSERT OR REPLACE INTO copies VALUES (?, ?, ?, ?, ?)", list(copies.values()))
            handles = [(job, copy.handle, us) for job, copy, us in rows]
            book.executemany("INSERT OR REPLACE INTO scheduled VALUES (?, ?, ?)", handles)
            book.execute("DELETE FROM scheduled WHERE until_us <= ?", (_micros(now),))
            book.execute("COMMIT")

    def open_for(self, jobs: Collection[UUID], now: datetime) -> Mapping[UUID, set[str]]:
        """Name the copies that are still left to their time for each job."""
        found = defaultdict[UUID, set[str]](set)
        if not self._is_there():
            return found
        query = """SELECT s.job, s.handle FROM json_each(?) AS j CROSS JOIN scheduled AS s
            WHERE s.job = j.value AND s.until_us > ?"""
        with self._opened() as book:
            for job, handle in book.execute(query, (json.dumps(sorted(map(str, jobs))), _micros(now))):
                found[UUID(job)].add(handle)
        return found

    def closed(self, known: Manifest, handles: Sequence[str], now: datetime) -> list[Seen]:
        """Tell for each copy whether it is seen to be gone; one that nobody has heard of is inconclusive."""
        windows = {**self._noted(handles), **{c.handle: _window(c) for c in known.copies if c.keep_until is not None}}
        strays = list(self._folder.unlisted(known).values())
        editable = {copy.handle for copy in known.copies if copy.keep_until is None}
        return [
            Seen(remaining=1)
            if handle in editable
            else self._seen(windows[handle], strays, now)
            if handle in windows
            else Seen(inconclusive=True)
            for handle in handles
        ]

    def _seen(self, window: _Window, strays: Sequence[str], now: datetime) -> Seen:
        over = window.until_us <= _micros(now)
        if not over or not self._folder.is_gone(window.file):
            return Seen(remaining=1)
        # Whoever gave it another name has not taken it away.
        paths = [self._folder.root / name for name in strays]
        same = (path for path in paths if path.is_file() and path.stat().st_size == window.bytes)
        return Seen(remaining=int(any(disk.digest(path) == window.sha256 for path in same)))

    def _noted(self, handles: Sequence[str]) -> Mapping[str, _Window]:
        if not self._is_there():
            return {}
        query = """SELECT c.handle, c.file, c.sha256, c.bytes, c.until_us FROM json_each(?) AS h
            CROSS JOIN copies AS c WHERE c.handle = h.value"""
        with self._opened() as book:
            return {row[0]: _Window(*row[1:]) for row in book.execute(query, (json.dumps(list(handles)),))}

    def _is_there(self) -> bool:
        """Tell whether anything was ever written down: who dies while beginning leaves an empty file."""
        return self._path.exists() and self._path.stat().st_size > 0

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        # Whoever reads may have to take back what a writer that died had begun.
        with closing(sqlite3.connect(f"{self._path.as_uri()}?mode=rw", uri=True, isolation_level=None)) as book:
            book.execute("PRAGMA synchronous = FULL")
            yield book


def _window(copy: Copy) -> _Window:
    return _Window(copy.file, copy.sha256, copy.bytes, _us(copy))


def _us(copy: Copy) -> int:
    assert copy.keep_until is not None  # noqa: S101 - the manifest says so of the policy window
    return _micros(copy.keep_until)


def _micros(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(microseconds=1)
