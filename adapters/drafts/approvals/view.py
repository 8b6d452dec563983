"""An approval as it is told, and all that is told of it when memory has been revoked."""

from __future__ import annotations

from dataclasses import dataclass, field

import sqlalchemy as sa

from adapters.drafts.approvals.cancel import outstanding
from adapters.drafts.approvals.state import ApprovalState
from adapters.drafts.errors import ApprovalUnknown
from adapters.drafts.inputs import MAX_NAME
from adapters.drafts.tables import approvals
from adapters.memory.batch import Found
from adapters.memory.facts import check_text, place_of
from orchestrator import Scope


@dataclass(frozen=True, kw_only=True, slots=True)
class ApprovalView:
    """An approval. `digest` stands for its whole description.

    `memory_expires` is in seconds since 1970, None for never. `payload` is what the tool will be
    given, told while it waits and what it was asked about holds.
    """

    name: str
    action: str
    state: ApprovalState
    memory_rev: int
    memory_expires: float | None
    digest: str
    operation_key: str
    receipt: str | None
    decided_at_us: int | None
    dispatched_at_us: int | None
    payload: str | None = field(repr=False)

    @property
    def outstanding(self) -> tuple[str, ...]:
        """Name what may be in other hands."""
        return outstanding(self.state.value)


@dataclass(frozen=True, kw_only=True, slots=True)
class Receipt:
    """What is known of an operation: its key, the digest of what was sent, and the tool's receipt where one came."""

    operation_key: str
    digest: str
    receipt: str | None


def view(row: Found, payload: str | None) -> ApprovalView:
    """Tell an approval."""
    return ApprovalView(
        name=row.name,
        action=row.action,
        state=ApprovalState(row.state),
        memory_rev=row.memory_rev,
        memory_expires=row.memory_expires,
        digest=row.payload_mac,
        operation_key=row.operation_key,
        receipt=row.receipt,
        decided_at_us=row.decided_at_us,
        dispatched_at_us=row.dispatched_at_us,
        payload=payload,
    )


def receipt_of(connection: sa.Connection, scope: Scope, operation_key: str) -> Receipt:
    """Give the three columns that stay readable whatever was revoked; raises `ApprovalUnknown` and `InvalidRequest`."""
    check_text("operation_key", operation_key, MAX_NAME)
    a, place = approvals.c, place_of(scope)
    here = (a.tenant == scope.tenant) & (a.user_id == scope.user) & (a.project == place["project"])
    query = sa.select(a.operation_key, a.payload_mac, a.receipt).where(here, a.operation_key == operation_key)
    row = connection.execute(query).one_or_none()
    if row is None:
        raise ApprovalUnknown
    return Receipt(operation_key=row.operation_key, digest=row.payload_mac, receipt=row.receipt)
