"""Taking a copy: one state of the live source database, rewritten without what was deleted from it.

Principles: the folder is locked from the first byte on, so no look misses a copy that was begun.
The copy is a whole file before it has its name, and the manifest names it before that.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from adapters.backup.folder import Folder
from adapters.backup.looking import tables_of
from adapters.backup.manifest import Copy, Manifest, Policy
from adapters.backup.rewrite import copied, finished, put_in_place, ready, settle, vacuum
from orchestrator import InvalidRequest

SOURCE: Final = "memory"


def take(
    folder: Folder, source: Path, *, policy: Policy, keep_until: datetime | None, now: datetime, until: float
) -> Copy:
    """Take a copy, and give its entry in the manifest.

    Raises `InvalidRequest` for a time that does not fit the policy and for a source that is no
    source database, `StoreLocked` where others use the folder until then (monotonic seconds).
    """
    _check(policy, keep_until, now)
    with folder.alone(until, may_begin=True) as known:
        handle = _free(folder, known, now)
        with ready(folder, folder.root / f"{handle}.db") as work:
            positions = _copied(source, work)
            vacuum(work)
            contents = finished(work)
            copy = Copy(
                handle=handle,
                file=f"{handle}.db",
                taken_at=now,
                policy=policy,
                keep_until=keep_until,
                source=SOURCE,
                positions=positions,
                **contents.model_dump(),
            )
            put_in_place(folder, known, copy, work, contents)
    return copy


def _check(policy: Policy, keep_until: datetime | None, now: datetime) -> None:
    if (policy is Policy.WINDOW) is (keep_until is None):
        message = "the policy window needs --keep-until, and no other policy takes it"
        raise InvalidRequest(message, field="keep_until")
    if keep_until is not None and (keep_until.tzinfo is None or keep_until <= now):
        message = "keep_until must be a time to come, with its offset: 2027-01-31T03:00:00Z"
        raise InvalidRequest(message, field="keep_until")


def _free(folder: Folder, known: Manifest, now: datetime) -> str:
    """Give a handle that no copy has, made of the time."""
    stamp = f"{now.astimezone(UTC):%Y%m%dT%H%M%S.%fZ}-{SOURCE}"
    number, handle = 1, stamp
    while known.of(handle) is not None or not folder.is_gone(f"{handle}.db"):
        number += 1
        handle = f"{stamp}-{number}"
    return handle


def _copied(source: Path, work: Path) -> dict[str, int]:
    """Copy the source into an empty file, and give the accepted position of each tenant in it."""
    if not source.is_file():
        message = "there is no source database: set [adapters.backup] source to the file of [adapters.memory] url"
        raise InvalidRequest(message, field="adapters.backup.source")
    with closing(sqlite3.connect(f"{source.as_uri()}?mode=ro", uri=True, isolation_level=None)) as original:
        if "facts" not in tables_of(original):
            message = "[adapters.backup] source names another database than that of the memory store"
            raise InvalidRequest(message, field="adapters.backup.source")
        copied(original, work)
    with closing(sqlite3.connect(work, isolation_level=None)) as new:
        settle(new)
        return dict(new.execute("SELECT tenant, position FROM tenant_positions").fetchall())
