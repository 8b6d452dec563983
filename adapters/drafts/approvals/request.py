"""Asking for an action: its description and its payload, in one transaction with the check of what it rests on.

Principle: an id is used once. Asked again with the same description it is the same approval; with
another one it is refused, so that no approval is ever about what nobody has read.
"""

from __future__ import annotations

from uuid import uuid4

import sqlalchemy as sa

from adapters.drafts import lineage
from adapters.drafts.approvals.description import digest, operation_key
from adapters.drafts.approvals.row import known, row_of
from adapters.drafts.approvals.state import ApprovalState
from adapters.drafts.errors import ApprovalTaken
from adapters.drafts.gate import pass_gate
from adapters.drafts.inputs import MAX_TEXT
from adapters.drafts.records import facts_among
from adapters.drafts.reports import current_report
from adapters.drafts.step import APPROVAL
from adapters.drafts.tables import approvals, drafts
from adapters.memory.batch import Found
from adapters.memory.facts import check_text, place_of, revision
from orchestrator import Gate, Scope


def request(
    connection: sa.Connection,
    gate: Gate,
    scope: Scope,
    name: str,
    action: str,
    *,
    report: str,
    payload: str | None,
    now: float,
) -> Found:
    """Write an approval down, or give the one that is there; `now` is in seconds since 1970."""
    job, made = current_report(connection, scope, report, revision(connection, scope), now)
    text = made.text if payload is None else payload
    check_text("payload", text, MAX_TEXT)
    rests_on = {"memory_rev": job.memory_rev, "memory_expires": job.memory_expires}
    described = digest(gate, scope, name, action, text, **rests_on)
    there = row_of(connection, scope, name)
    if there is not None:
        if (there.payload_mac, there.job) != (described, job.handle):
            raise ApprovalTaken
        return there
    place, handle, used = place_of(scope), str(uuid4()), {made.target, *made.used}
    pass_gate(connection, gate, scope, handle, text, facts_among(connection, scope.tenant, used))
    row = {
        **place,
        **rests_on,
        "handle": handle,
        "name": name,
        "action": action,
        "job": job.handle,
        "state": ApprovalState.PENDING.value,
        "payload_mac": described,
        "operation_key": operation_key(gate, scope, name),
        "position": job.position,
    }
    connection.execute(approvals.insert().values(row))
    of_payload = str(uuid4())
    kept = {**place, "handle": of_payload, "job": handle, "step": APPROVAL, "position": job.position, "text": text}
    connection.execute(drafts.insert().values(kept))
    lineage.write(connection, scope.tenant, of_payload, used)
    return known(connection, scope, name)
