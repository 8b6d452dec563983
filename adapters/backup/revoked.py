"""What the source has revoked for a job: which records it took, and up to where it reaches.

Principle: the source tells it and no copy. A source that was put back revokes anew for a job that had no answer yet,
and reaches further then than a copy knows that was taken in between.
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from orchestrator import Target

_TARGETS: Final = """
    SELECT t.job, t.kind, t.handle, t.version FROM json_each(?) AS j CROSS JOIN revocation_targets AS t
    WHERE t.job = j.value
"""
_CUT_OFFS: Final = (
    "SELECT r.job, r.cut_off FROM json_each(?) AS j CROSS JOIN source_revocations AS r WHERE r.job = j.value"
)


def revoked(source: Path, jobs: Collection[UUID], *, wait: float) -> Mapping[UUID, list[Target]]:
    """Read the targets of jobs from the source database, which never purges them; waits no longer than `wait` seconds.

    A job that the source does not know has none. Raises the driver's error.
    """
    found = defaultdict[UUID, list[Target]](list)
    for job, kind, handle, version in _read(source, _TARGETS, jobs, wait):
        found[UUID(job)].append(Target(kind=kind, id=handle, version=version))
    return found


def cut_offs(source: Path, jobs: Collection[UUID], *, wait: float) -> Mapping[UUID, int]:
    """Read the last position that each job reaches, as `revoked` does; a job that the source does not know has none."""
    return {UUID(job): cut_off for job, cut_off in _read(source, _CUT_OFFS, jobs, wait)}


def _read(source: Path, query: str, jobs: Collection[UUID], wait: float) -> list[tuple[Any, ...]]:
    if not jobs:
        return []
    uri = f"{source.as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True, timeout=wait, isolation_level=None)) as connection:
        return connection.execute(query, (json.dumps(sorted(map(str, set(jobs)))),)).fetchall()
