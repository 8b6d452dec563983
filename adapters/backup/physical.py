"""The files of the copies that can be edited: scrubbed as they are rewritten, kept still while they are looked at.

Copies with a window are not among them: what they hold is scheduled, and a look at their bytes
would say no more. A marker lies in a database of its own in the folder: planted in every copy
it would change files that hold nothing of what is to go, and their hashes with them.
"""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Final

from adapters.backup import disk
from adapters.backup.errors import Unreadable, translated
from adapters.backup.folder import MARKER, Folder
from adapters.backup.looking import looking, tables_of
from adapters.backup.manifest import Manifest, Policy
from adapters.backup.rewrite import ready
from orchestrator import Residual, Scrubbed, ScrubReport, StoreLocked

_KEPT: Final = ("", "-wal", "-journal")
_MORE_VALUES: Final = ("preference_events", "preferences", "fact_candidates")
_MORE_TEXTS: Final = ("memories", "drafts")


class CopiesFiles:
    """What the engine asks of copies whose bytes it looks at."""

    def __init__(self, folder: Folder, patience: timedelta) -> None:
        """Bind it to the folder; each call waits for others no longer than `patience`."""
        self._folder, self._patience = folder, patience
        self._marker = folder.root / MARKER
        self.file_group = f"backup-{hashlib.sha256(str(folder.root).encode()).hexdigest()[:16]}"

    @translated()
    def scrub(self) -> ScrubReport:
        """Take away what a crash has left; a copy itself was written anew when something was erased from it."""
        try:
            with self._folder.alone(self._until()) as known:
                windows = any(copy.policy is Policy.WINDOW for copy in known.copies)
        except StoreLocked:
            return ScrubReport(outcome=Scrubbed.BUSY)
        kept = {Residual.PROVIDER_COPY} if windows else set[Residual]()
        return ScrubReport(outcome=Scrubbed.CLEAN, residuals=frozenset({Residual.FILE_SYSTEM, *kept}))

    @contextmanager
    def live_files(self) -> Iterator[Sequence[Path]]:
        """Give the files that may be edited or have no entry, with what lies beside them; keep all still meanwhile."""
        with ExitStack() as lock:
            with translated():
                known = lock.enter_context(self._folder.shared(self._until()))
                names = (*_editable(known), *self._folder.unlisted(known).values(), MARKER)
                files = [self._folder.root / f"{name}{end}" for name in names for end in _KEPT]
                there = [file for file in files if file.exists() and file.stat().st_size]
            yield there

    def live_values(self) -> Iterator[bytes]:
        """Give the texts of all records in the copies that may be edited, as the files hold them."""
        with self._folder.shared(self._until()) as known:
            for name in _editable(known):
                try:
                    with looking(self._folder.path_of(name)) as copy:
                        yield from _texts(copy)
                except Unreadable:
                    continue  # it explains nothing that is seen elsewhere

    @translated()
    def plant(self, marker: bytes) -> None:
        """Store a marker in the place of any earlier one."""
        with self._folder.alone(self._until()), ready(self._folder, self._marker) as work:
            with closing(sqlite3.connect(work, isolation_level=None)) as database:
                database.execute("CREATE TABLE scan_markers (marker TEXT NOT NULL)")
                database.execute("INSERT INTO scan_markers VALUES (?)", (marker.decode(),))
            disk.move_over(work, self._marker)

    @translated()
    def uproot(self, marker: bytes) -> None:
        """Take a marker away, unless a later scan has put its own there."""
        with self._folder.alone(self._until()):
            if self._marker.exists() and marker in self._marker.read_bytes():
                self._marker.unlink()

    def _until(self) -> float:
        return time.monotonic() + self._patience.total_seconds()


def _editable(known: Manifest) -> list[str]:
    return [copy.file for copy in known.copies if copy.policy is Policy.REWRITE]


def _texts(copy: sqlite3.Connection) -> Iterator[bytes]:
    yield from (str(text).encode() for (text,) in copy.execute("SELECT value FROM facts"))
    for table in tables_of(copy).intersection(_MORE_VALUES):
        values = copy.execute(f"SELECT value FROM {table} WHERE value IS NOT NULL")  # noqa: S608 - ours
        yield from (str(text).encode() for (text,) in values)
    for table in tables_of(copy).intersection(_MORE_TEXTS):
        yield from (str(text).encode() for (text,) in copy.execute(f"SELECT text FROM {table}"))  # noqa: S608 - ours
