"""The folder of one deployment: closed to everybody else, and run by one `expunge up` at a time."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from orchestrator.domain.errors import InvalidRequest, Refused

OTHERS: Final = 0o077


def make_private(folder: Path) -> None:
    """Make a folder that its owner alone may enter; close an empty one of ours, and refuse any other open one."""
    if folder.exists() and not folder.is_dir():
        message = f"{folder} is a file: name a folder that is new or empty"
        raise InvalidRequest(message, field="dir")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    about = folder.stat()
    if not about.st_mode & OTHERS:
        return
    if about.st_uid != os.geteuid() or any(folder.iterdir()):
        # What lies in it may be there for others to read: that is not ours to end.
        message = f"others may look into {folder}: run `chmod 700 {folder}` and this again, or choose another folder"
        raise InvalidRequest(message, field="dir")
    folder.chmod(0o700)


def make_file(path: Path, text: str = "") -> None:
    """Write a new file that its owner alone may read; an existing one raises `FileExistsError`.

    One that cannot be written is taken away again: the next run would take it for what it was to be.
    """
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
    except FileExistsError:
        raise
    except OSError:
        path.unlink(missing_ok=True)
        raise


def databases(folder: Path) -> list[Path]:
    """Name the database files in a folder that hold anything."""
    return sorted(path for path in folder.glob("*.db") if path.is_file() and path.stat().st_size)


def readable_by_others(folder: Path) -> list[Path]:
    """Name the folder and those of its keys and databases whose mode lets somebody else in."""
    return open_to_others([folder, folder / "keys", *folder.glob("keys/*"), *folder.glob("*.db*")])


def open_to_others(paths: Iterable[Path]) -> list[Path]:
    """Name those of these paths, each once, that are there and whose mode lets somebody else in."""
    return [path for path in dict.fromkeys(paths) if path.exists() and path.stat().st_mode & OTHERS]


@contextmanager
def held(lock: Path, refusal: str) -> Iterator[None]:
    """Hold a lock file, or raise `Refused` where another process does; the kernel lets go when a holder dies.

    The file names the holder, so that others can tell for how long it has been held without taking the lock themselves.
    """
    # Append: a second one must not empty what it cannot lock. The handle is not inherited by what we start.
    with lock.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refused(refusal) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def held_for(lock: Path) -> float | None:
    """Give for how many seconds a live process has held a lock file; None where none does."""
    try:
        os.kill(int(lock.read_text()), 0)
        return time.time() - lock.stat().st_mtime
    except (OSError, ValueError):
        return None
