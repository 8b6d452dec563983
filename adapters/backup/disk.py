"""What has to survive a crash: files are made beside their place, written through, and moved there in one step."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Final

SIDECARS: Final = ("-wal", "-shm", "-journal")
"""What SQLite keeps beside a database."""


def make_private(path: Path) -> None:
    """Make an empty file that its owner alone may read; raises `FileExistsError` where there is one."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


def write_through(path: Path) -> None:
    """Have a file, or a folder's list of names, written to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def move_over(new: Path, place: Path) -> None:
    """Put a finished file in its place; a crash leaves the one or the other there, and never a part."""
    write_through(new)
    os.replace(new, place)  # noqa: PTH105 - named as the system call that makes it one step
    write_through(place.parent)


def digest(path: Path) -> str:
    """Give the SHA-256 of a file in hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sidecars(path: Path) -> list[Path]:
    """Give what lies beside a database, links included."""
    beside = (path.with_name(path.name + suffix) for suffix in SIDECARS)
    return [file for file in beside if file.exists() or file.is_symlink()]


def remove(path: Path) -> None:
    """Take a database and its sidecars away, those first: what is left after a crash can still be looked at."""
    for file in (*sidecars(path), path):
        file.unlink(missing_ok=True)
