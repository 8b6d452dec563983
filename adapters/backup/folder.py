"""The folder of copies: locked while it is looked at or changed, and put right after a crash.

Principles: who looks keeps writers out, so a copy that was begun is finished by the time it is
looked for. Whatever lies in the folder and is not ours may be a copy: it is named, and never
edited or removed. No link is followed.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Final
from uuid import uuid4

from adapters.backup import disk, manifest
from adapters.backup.errors import Unreadable
from adapters.backup.manifest import UNLISTED, Copy, Manifest
from orchestrator import StoreLocked, StoreUnreachable

BOOK: Final = ".windows.db"
MARKER: Final = ".marker.db"
_WORK: Final = ".work-"
_POLL: Final = 0.01


class Folder:
    """The folder of one manifest. `is_ours`: nobody else makes it, so where there is none no copy was ever taken."""

    def __init__(self, path: Path, *, is_ours: bool) -> None:
        """Bind it to the manifest's path; nothing is opened."""
        self.manifest, self.root, self._is_ours = path, path.parent, is_ours

    @contextmanager
    def shared(self, until: float) -> Iterator[Manifest]:
        """Keep writers out and give the manifest; `StoreLocked` where that takes until then (monotonic seconds)."""
        if self._is_ours and not self.root.exists():
            yield Manifest()
            return
        with self._locked(fcntl.LOCK_SH, until):
            yield self._read(may_begin=False)

    @contextmanager
    def alone(self, until: float, *, may_begin: bool = False) -> Iterator[Manifest]:
        """Keep everybody out, put right what a crash has left, and give the manifest.

        `may_begin` lets a manifest that is not there be made by whoever saves one.
        """
        if self._is_ours and not self.root.exists():
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            disk.write_through(self.root.parent)
        with self._locked(fcntl.LOCK_EX, until):
            yield self._recovered(self._read(may_begin=may_begin))

    def save(self, new: Manifest) -> Manifest:
        """Write a manifest, and give it back; the caller is alone."""
        manifest.write(self.manifest, new)
        return new

    def path_of(self, name: str) -> Path:
        """Give the path of a file, whether it is there or not; `Unreadable` where a link or a folder stands."""
        return _plain(self.root, name)

    def is_gone(self, name: str) -> bool:
        """Tell whether neither a file of that name nor anything that SQLite keeps beside it is there."""
        path = self.root / name
        return not (path.exists() or path.is_symlink() or disk.sidecars(path))

    def files(self) -> list[str]:
        """Name every file and link below the folder that is not one of our own books, databases with their sidecars."""
        names = list(self._names())
        beside = {name + suffix for name in names for suffix in disk.SIDECARS}
        return [name for name in names if name not in beside]

    def unlisted(self, known: Manifest) -> Mapping[str, str]:
        """Name by handle the files that the manifest does not, by their names below the folder."""
        listed = {copy.file for copy in known.copies}
        listed |= {file + suffix for file in listed for suffix in disk.SIDECARS}
        return {handle_of(name): name for name in self.files() if name not in listed}

    def work_file(self, beside: Path) -> Path:
        """Make an empty file in which a copy is got ready, on the same disk as its place."""
        path = beside.parent / f"{_WORK}{uuid4().hex}.db"
        disk.make_private(path)
        return path

    @contextmanager
    def _locked(self, how: int, until: float) -> Iterator[None]:
        try:
            handle = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            # It is not made here: a disk that is not mounted looks the same.
            message = f"The folder {self.root} of the backup manifest is missing: make it, or mount its disk."
            raise StoreUnreachable(message) from None
        try:
            while True:
                try:
                    fcntl.flock(handle, how | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() >= until:
                        raise StoreLocked from None
                    time.sleep(_POLL)
            yield
        finally:
            os.close(handle)  # the kernel lets go of the lock with it, or when the process dies

    def _read(self, *, may_begin: bool) -> Manifest:
        try:
            return manifest.read(self.manifest)
        except FileNotFoundError:
            if self._is_ours or may_begin:
                return Manifest()
            # A disk that is not mounted looks the same.
            message = "There is no backup manifest where the configuration says: `expunge backup take` makes one."
            raise StoreUnreachable(message) from None

    def _recovered(self, found: Manifest) -> Manifest:
        """Take away what was not finished, and tell for each pending copy what its file holds."""
        for name in list(self._names()):
            if name.rpartition("/")[2].startswith(_WORK):
                disk.remove(self.root / name)
        settled, died = found, []
        for copy in found.copies:
            if copy.pending is None:
                continue
            path = self.root / copy.file
            holds = disk.digest(path) if path.is_file() and not path.is_symlink() else None
            if holds == copy.pending.sha256:
                settled = settled.having(done(copy))
            elif holds == copy.sha256:
                settled = settled.having(copy.model_copy(update={"pending": None}))
            elif holds is None and copy.pending == copy.contents:
                died.append(copy.handle)  # it never came into being
        settled = settled.without(died)
        return found if settled == found else self.save(settled)

    def _names(self) -> Iterator[str]:
        """Give every file and link below the folder that is not one of our own books."""

        def refuse(error: OSError) -> None:
            raise error

        if self._is_ours and not self.root.exists():
            return
        own = {self.manifest.name, *(name + end for name in (BOOK, MARKER) for end in ("", *disk.SIDECARS))}
        for place, folders, files in os.walk(self.root, onerror=refuse):
            links = [name for name in folders if Path(place, name).is_symlink()]
            for name in sorted((*files, *links)):
                below = Path(place, name).relative_to(self.root).as_posix()
                if below not in own and not manifest.is_ours(below):
                    yield below


def handle_of(name: str) -> str:
    """Give the handle of a file that the manifest does not name: nobody knows what such a name says."""
    return f"{UNLISTED}{sha256(name.encode(errors='surrogateescape')).hexdigest()[:32]}"


def done(copy: Copy) -> Copy:
    """Give a copy whose file holds by now what was pending."""
    assert copy.pending is not None  # noqa: S101 - the caller has asked
    return copy.model_copy(update={**copy.pending.model_dump(), "pending": None})


def _plain(root: Path, name: str) -> Path:
    path = root
    for part in name.split("/"):
        path /= part
        if path.is_symlink():
            raise Unreadable
    if (path.exists() and not path.is_file()) or any(file.is_symlink() for file in disk.sidecars(path)):
        raise Unreadable
    return path
