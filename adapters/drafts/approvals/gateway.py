"""The gateway: an action that was approved reaches its tool once, and nothing reaches it after a revocation.

Principles: an action is marked as sent before the tool is called, in one transaction with the last
look at the revision, the expiry, the membership and the payload. That mark is the boundary: what
was marked before the revision moved counts as sent, whatever the tool does with it a moment later;
what was not is never sent. The tool is asked for the operation by its key before it is given
anything, so that a repeat, a process that died, and a source that was put back send nothing twice.
It decides by rules of its own: no text of a memory gives a right.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

import sqlalchemy as sa

from adapters.drafts.approvals.inputs import check_receipt
from adapters.drafts.approvals.row import known, move
from adapters.drafts.approvals.state import ApprovalState, Passing, Place, on
from adapters.drafts.approvals.validity import IsMember, payload_of
from adapters.drafts.approvals.view import Receipt
from adapters.drafts.errors import (
    ApprovalDecided,
    ApprovalPending,
    ApprovalVoid,
    DispatchRunning,
    StaleDispatch,
    ToolRefused,
)
from adapters.drafts.inputs import check_lease
from adapters.drafts.schema import open_in
from adapters.drafts.tables import approvals
from adapters.memory.batch import Found
from adapters.memory.engine import reading, writing
from adapters.memory.facts import revision as revision_of
from adapters.memory.instant import micros
from adapters.memory.replay import RANGE
from adapters.memory.tables import source_epoch
from orchestrator import AdapterContext, Refused, Scope

LEASE: Final = 30.0
"""Seconds: longer than a tool may take, as whoever comes after that asks it for the operation."""


class Tool(Protocol):
    """What has effects outside. It knows operations by their keys, and carries one out at most once."""

    def look_up(self, operation_key: str) -> str | None:
        """Give the receipt of an operation that was carried out, None where there was none."""

    def call(self, scope: Scope, action: str, payload: str, operation_key: str) -> str:
        """Carry an operation out and give its receipt, an id without text.

        Raises `Refused`, before it has done anything, for what whoever the scope is about may not do.
        """


@dataclass(frozen=True, kw_only=True)
class _Marked:
    """An action that is being sent; without a payload it may be looked up, and not be sent any more."""

    row: Found
    payload: str | None


class Gateway:
    """Sends approved actions to one tool; where it stands is in the source database, with the approval."""

    def __init__(self, engine: sa.Engine, context: AdapterContext, tool: Tool, is_member: IsMember) -> None:
        """Bind it to a source database and a tool."""
        open_in(engine)
        self._engine, self._context, self._tool, self._is_member = engine, context, tool, is_member

    def dispatch(
        self, scope: Scope, name: str, revision: int, *, lease_seconds: float = LEASE, fault: Passing = on
    ) -> Receipt:
        """Send an approved action that was prepared under a revision of its scope, and give the receipt.

        One that was sent gives the receipt that it has. Raises `StaleDispatch` for another revision
        than the scope's, `ApprovalVoid` where what was approved holds no more, `ApprovalPending`,
        `ApprovalDecided`, `ApprovalUnknown`, `DispatchRunning` while another process is sending it,
        `ToolRefused`, `InvalidRequest`, and whatever else the tool raises: then nobody knows, and the next
        dispatch asks the tool.
        """
        check_lease(lease_seconds)
        lease_us = max(1, round(lease_seconds * 1_000_000))
        with writing(self._engine, [scope.tenant]) as connection:
            marked = self._mark(connection, scope, known(connection, scope, name), revision, lease_us)
            fault(Place.WITHIN_MARK)
        if marked is None:  # and that is committed
            return self._told_by_tool(scope, name)
        if marked.row.receipt is not None:
            return _told(marked.row, str(marked.row.receipt))
        fault(Place.AFTER_MARK)
        receipt = self._send(scope, marked)
        fault(Place.AFTER_CALL)
        check_receipt(receipt)
        with writing(self._engine, [scope.tenant]) as connection:
            _keep(connection, marked.row, state=ApprovalState.DISPATCHED, receipt=receipt)
            fault(Place.WITHIN_RECEIPT)
        self._context.log.info("action.dispatched", approval=marked.row.handle)
        fault(Place.AFTER_RECEIPT)
        return _told(marked.row, receipt)

    def _mark(
        self, connection: sa.Connection, scope: Scope, row: Found, revision: int, lease_us: int
    ) -> _Marked | None:
        """Mark an action as sent by this process; None where it has become void."""
        state, now = ApprovalState(row.state), self._context.clock.now()
        if row.receipt is not None:
            return _Marked(row=row, payload=None)
        if state is ApprovalState.VOID:
            return None
        if state in _NOT_SENT:
            raise _NOT_SENT[state]
        if row.lease_until_us is not None and row.lease_until_us > micros(now):
            raise DispatchRunning
        gate, at = self._context.gate, now.timestamp()
        payload = payload_of(connection, gate, scope, row, now=at, is_member=self._is_member)
        stale = revision != revision_of(connection, scope)
        times = {"dispatched_at_us": micros(now), "lease_until_us": micros(now) + lease_us}
        if state is ApprovalState.DISPATCHED:
            _keep(connection, row, state=state, lease_until_us=times["lease_until_us"])
            return _Marked(row=row, payload=None if stale else payload)
        if payload is None:
            move(connection, row, ApprovalState.VOID)
            return None
        if stale:
            raise StaleDispatch
        move(connection, row, ApprovalState.DISPATCHED, **times)
        return _Marked(row=row, payload=payload)

    def _told_by_tool(self, scope: Scope, name: str) -> Receipt:
        """Give the receipt of an action that is void here and was sent before the source was put back.

        The source has forgotten that; the tool has not. Raises `ApprovalVoid` where nothing was sent.
        """
        with reading(self._engine, [scope.tenant]) as connection:
            row = known(connection, scope, name)
            before = connection.scalar(sa.select(source_epoch.c.epoch)) or 0
        done = self._tool.look_up(row.operation_key) if before > 1 and row.position < before * RANGE else None
        if done is None:
            raise ApprovalVoid
        check_receipt(done)
        with writing(self._engine, [scope.tenant]) as connection:
            _keep(connection, row, state=ApprovalState.DISPATCHED, receipt=done)
        return _told(row, done)

    def _send(self, scope: Scope, marked: _Marked) -> str:
        """Give the receipt of an operation, and have it carried out where the tool knows of none."""
        row = marked.row
        done = self._tool.look_up(row.operation_key)
        if done is not None:
            return done
        if marked.payload is None:
            raise ApprovalVoid
        try:
            return self._tool.call(scope, row.action, marked.payload, row.operation_key)
        except Refused:
            with writing(self._engine, [scope.tenant]) as connection:
                _keep(connection, row, state=ApprovalState.REFUSED)
            self._context.log.info("action.refused", approval=row.handle)
            raise ToolRefused from None


_NOT_SENT: Final = {
    ApprovalState.PENDING: ApprovalPending,
    ApprovalState.REFUSED: ApprovalDecided,
}


def _keep(connection: sa.Connection, row: Found, *, state: ApprovalState, **values: str | int) -> None:
    """Write down what became of an action that was marked; where there is a receipt already, that stays."""
    a = approvals.c
    here = (a.tenant == row.tenant) & (a.handle == row.handle) & a.receipt.is_(None)
    connection.execute(approvals.update().where(here).values(state=state.value, **values))


def _told(row: Found, receipt: str) -> Receipt:
    return Receipt(operation_key=row.operation_key, digest=row.payload_mac, receipt=receipt)
