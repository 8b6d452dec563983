"""Placing a legal hold: whose data, which record of it, why, and who decided."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from orchestrator.domain.codes import CrashPoint, HoldReason
from orchestrator.domain.hold import NewHold
from orchestrator.domain.scope import Scope
from orchestrator.domain.selector import Selector, SelectorKind
from orchestrator.service.accept import Acceptance, check_reference, subject_ref


@dataclass(frozen=True, kw_only=True)
class HoldRequest:
    """A hold on all of a user's data (no `items`), or on records by their store's own ids."""

    tenant: str
    user: str
    items: tuple[str, ...] = ()
    reason: HoldReason
    requested_by: str
    reference: str | None = None


def place(request: HoldRequest, using: Acceptance) -> list[UUID]:
    """Write one hold, or one for each record, all or none; give their ids.

    Raises `InvalidRequest` for a name or reference that cannot be.
    """
    scope = Scope(tenant=request.tenant, user=request.user)
    for item in request.items:
        Selector(kind=SelectorKind.MEMORY, value=item)  # what no selector could name, no hold can
    check_reference(request.reference, request.user)
    holds = [
        NewHold(
            id=using.new_id(),
            tenant=scope.tenant,
            subject_ref=subject_ref(using.ref, scope),
            item=item,
            reason=request.reason,
            reference=request.reference,
            placed_by_ref=using.ref("requester", request.requested_by),
            placed_at=using.clock.now(),
        )
        for item in request.items or (None,)
    ]
    using.ledger.place(holds)
    using.crash(CrashPoint.AFTER_ACCEPT, "hold")
    return [hold.id for hold in holds]
