"""Taking checkpoints of an earlier job over into one that is begun now.

Principles: a checkpoint is taken over only with all of those before it, and only where the
versions that those steps were said to use are the ones that hold now. From the first step of
which that is not so, everything is done again. What is taken over is a copy, with an id of its
own: it names the row that it was made from, and keeps that one's position, so that whoever
reaches the one reaches the other. Reports are never taken over.
"""

from __future__ import annotations

from uuid import uuid4

import sqlalchemy as sa

from adapters.drafts import lineage
from adapters.drafts.dependencies import Dependencies, read, unchanged
from adapters.drafts.gate import pass_gate
from adapters.drafts.records import facts_among
from adapters.drafts.step import CHECKPOINTS, Step
from adapters.drafts.tables import drafts
from adapters.drafts.view import made, target_of
from adapters.memory.batch import Found
from adapters.memory.facts import scope_of
from orchestrator import Gate, GateRefused


def take_over(connection: sa.Connection, gate: Gate, old: Found, job: Found, now: Dependencies) -> None:
    """Copy to a new job what an old one has made from what holds; `now` is what the new one's steps use."""
    before, there = read(connection, old.tenant, old.handle), {row.step: row for row in made(connection, old)}
    for step in CHECKPOINTS:
        row = there.get(step.value)
        if row is None or not unchanged(before, now, step) or not _copy(connection, gate, row, job):
            return


def _copy(connection: sa.Connection, gate: Gate, row: Found, job: Found) -> bool:
    """Copy a checkpoint; False where the gate does not let its text in any more, and the step is to be done again."""
    used = {target_of(row), *lineage.read(connection, row.tenant, [row.handle]).get(row.handle, ())}
    scope, handle = scope_of(row.tenant, row.user_id, row.project), str(uuid4())
    if row.step != Step.COLLECT.value:
        try:
            pass_gate(connection, gate, scope, handle, row.text, facts_among(connection, row.tenant, used))
        except GateRefused:
            return False
    values = {name: getattr(row, name) for name in ("tenant", "user_id", "project", "step", "position", "text")}
    connection.execute(drafts.insert().values(**values, handle=handle, job=job.handle))
    lineage.write(connection, row.tenant, handle, used)
    return True
