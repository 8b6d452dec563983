"""What can go wrong with a copy, and with the folder that it lies in."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from orchestrator import ErrorCode, Permanent, StoreLocked, StoreUnreachable

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


class Unreadable(Exception):
    """A file cannot be looked at as a copy of a source database: nobody knows what it holds."""


class NotAsListed(Permanent):
    """A copy is not the one that the manifest names. Put the right file back, or correct the manifest."""

    code = ErrorCode.STORE_REFUSED


@contextmanager
def translated() -> Iterator[None]:
    """Turn errors of the file system and of SQLite into ours; they may name files, so they are not chained.

    What cannot be looked at as a copy is told as `NotAsListed`.
    """
    try:
        yield
    except Unreadable:
        raise NotAsListed from None
    except OSError:
        raise StoreUnreachable from None
    except sqlite3.Error as error:
        busy = getattr(error, "sqlite_errorcode", 0) & 0xFF in _BUSY
        raise (StoreLocked if busy else StoreUnreachable) from None
