"""What the source has revoked for a job: an order to erase names copies, and this says which records are meant."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Mapping
from contextlib import closing
from pathlib import Path
from typing import Final
from uuid import UUID

from orchestrator import Target

_TARGETS: Final = """
    SELECT t.job, t.kind, t.handle, t.version FROM json_each(?) AS j CROSS JOIN revocation_targets AS t
    WHERE t.job = j.value
"""


def revoked(source: Path, jobs: Collection[UUID], *, wait: float) -> Mapping[UUID, list[Target]]:
    """Read the targets of jobs from the source database, which never purges them; waits no longer than `wait` seconds.

    A job that the source does not know has none. Raises the driver's error.
    """
    found = defaultdict[UUID, list[Target]](list)
    uri = f"{source.as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True, timeout=wait, isolation_level=None)) as connection:
        for job, kind, handle, version in connection.execute(_TARGETS, (json.dumps(sorted(map(str, set(jobs)))),)):
            found[UUID(job)].append(Target(kind=kind, id=handle, version=version))
    return found
