"""Which erasures a copy has not seen: the tombstones that were set since it was taken, which hold no text.

Whoever puts a copy back by other means than `expunge restore` can keep them and leave out what they match.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from adapters.backup.looking import looking, tables_of

_MARKS: Final = "SELECT tenant, job, kind, key_id, mac, cut_off FROM source_tombstones ORDER BY 1, 2, 3, 4, 5"


@dataclass(frozen=True, kw_only=True, slots=True)
class Unseen:
    """A tombstone that a copy lacks: a keyed hash, the key that it was made under, and the job that set it."""

    tenant: str
    job: str
    kind: str
    key_id: str
    mac: str
    cut_off: int


def unseen(copy: Path, source: Path, *, wait: float) -> list[Unseen]:
    """Compare a copy with the source as it is, for which it waits no longer than `wait` seconds.

    Raises the driver's error where the source cannot be read, and `Unreadable` for a file that is no copy of one.
    """
    uri = f"{source.as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True, timeout=wait, isolation_level=None)) as live:
        rows = live.execute(_MARKS).fetchall()
    with looking(copy) as opened:
        there = set(opened.execute(_MARKS)) if "source_tombstones" in tables_of(opened) else set[object]()
    names = Unseen.__slots__
    return [Unseen(**dict(zip(names, row, strict=True))) for row in rows if row not in there]
