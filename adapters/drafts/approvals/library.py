"""Actions that wait for approval, as a library: asked for, decided, cancelled, and told.

Principles: what a decision is about rests on one revision of the memory, and on who is a member;
both are checked in the transaction that decides. A decision is made once. No text leaves here but
to whoever has to decide, and to the tool.
"""

from __future__ import annotations

from collections import Counter

import sqlalchemy as sa

from adapters.drafts.approvals.cancel import Cancelled, cancel_approval
from adapters.drafts.approvals.inputs import check_name
from adapters.drafts.approvals.request import request
from adapters.drafts.approvals.row import known, move, page_of
from adapters.drafts.approvals.state import WAITING, Answer, ApprovalState, Passing, Place, on
from adapters.drafts.approvals.validity import IsMember, admits, payload_of
from adapters.drafts.approvals.view import ApprovalView, Receipt, receipt_of, view
from adapters.drafts.errors import ApprovalDecided, ApprovalVoid, NoMember
from adapters.drafts.schema import open_in
from adapters.memory.batch import Found
from adapters.memory.engine import reading, writing
from adapters.memory.instant import micros
from orchestrator import AdapterContext, GateRefused, InvalidRequest, Refusal, Scope


class Approvals:
    """Asks for actions, decides on them and tells them; each is known in exactly its own scope, to nobody else.

    The caller vouches for the scope, and `is_member` for whoever it names, anew each time.
    `refused` counts what the gate refused in this process, by code.
    """

    def __init__(self, engine: sa.Engine, context: AdapterContext, is_member: IsMember) -> None:
        """Bind it to a source database; its tables are made where there are none."""
        open_in(engine)
        self._engine, self._context, self._is_member = engine, context, is_member
        self.refused: Counter[Refusal] = Counter()

    def request(
        self, scope: Scope, name: str, action: str, *, report: str, payload: str | None = None, fault: Passing = on
    ) -> ApprovalView:
        """Ask for an action about the current report of the job `report`; the tool will be given the payload.

        Without a payload it is the report itself. The same again is the same approval; raises
        `ApprovalTaken` for another description under this id, `ReportUnusable`, `NoMember`,
        `GateRefused` for a text that was forgotten, and `InvalidRequest`.
        """
        check_name("approval", name)
        check_name("action", action)
        try:
            with writing(self._engine, [scope.tenant]) as connection:
                self._admit(scope)
                row = request(
                    connection, self._context.gate, scope, name, action, report=report, payload=payload, now=self._now()
                )
                fault(Place.WITHIN_REQUEST)
                return view(row, self._payload(connection, scope, row))
        except GateRefused as error:
            self.refused[error.refusal] += 1
            self._context.log.info("gate.refused", code=error.refusal.value)
            raise

    def decide(self, scope: Scope, name: str, answer: Answer, *, fault: Passing = on) -> ApprovalView:
        """Approve or refuse an action that waits; the same answer again changes nothing.

        Raises `ApprovalVoid` where the memory has changed, anything has expired, or membership is
        lost, and voids it for good; `ApprovalDecided` where it was decided otherwise; `ApprovalUnknown`.
        """
        if answer not in set(Answer):
            raise InvalidRequest(f"answer must be {' or '.join(Answer)}", field="answer")
        decided = ApprovalState.APPROVED if answer is Answer.APPROVE else ApprovalState.REFUSED
        with writing(self._engine, [scope.tenant]) as connection:
            row = known(connection, scope, name)
            payload = self._payload(connection, scope, row)
            holds = row.state not in _WAITING or payload is not None
            if not holds:
                move(connection, row, ApprovalState.VOID)
            elif row.state == ApprovalState.PENDING.value:
                move(connection, row, decided, decided_at_us=micros(self._context.clock.now()))
            told = view(known(connection, scope, name), payload)
            fault(Place.WITHIN_DECISION)
        # Raised when the end of it is committed.
        self._context.log.info("approval.decided", approval=row.handle, state=told.state.value)
        fault(Place.AFTER_DECISION)
        if told.state is ApprovalState.VOID:
            raise ApprovalVoid
        if not _is_answered(told.state, answer):
            raise ApprovalDecided
        return told

    def cancel(self, scope: Scope, name: str) -> Cancelled:
        """Let an action that waits go no further; what was sent is outstanding. Raises `ApprovalUnknown`."""
        with writing(self._engine, [scope.tenant]) as connection:
            return cancel_approval(connection, known(connection, scope, name))

    def list(self, scope: Scope, *, after: str | None = None, limit: int | None = None) -> tuple[ApprovalView, ...]:
        """Tell the approvals of a scope, by id, with the payloads of those that can be decided; all, or a page.

        A page holds at most `limit`, and begins behind the id `after`, which need not be there. Raises
        `NoMember` and `InvalidRequest`.
        """
        with reading(self._engine, [scope.tenant]) as connection:
            self._admit(scope)
            rows = page_of(connection, scope, after, limit)
            return tuple(view(row, self._payload(connection, scope, row)) for row in rows)

    def receipt(self, scope: Scope, operation_key: str) -> Receipt:
        """Give key, digest and receipt of an operation, and read nothing else; raises `ApprovalUnknown`.

        It works whatever was revoked since: it says that something was sent, and nothing of what.
        """
        with reading(self._engine, [scope.tenant]) as connection:
            return receipt_of(connection, scope, operation_key)

    def _admit(self, scope: Scope) -> None:
        if not admits(self._is_member, scope):
            raise NoMember

    def _payload(self, connection: sa.Connection, scope: Scope, row: Found) -> str | None:
        if row.state not in _WAITING:
            return None
        gate, now = self._context.gate, self._now()
        return payload_of(connection, gate, scope, row, now=now, is_member=self._is_member)

    def _now(self) -> float:
        return self._context.clock.now().timestamp()


_WAITING = frozenset(state.value for state in WAITING)


def _is_answered(state: ApprovalState, answer: Answer) -> bool:
    """Tell whether an approval stands where an answer leads: what was sent had been approved."""
    if answer is Answer.APPROVE:
        return state in {ApprovalState.APPROVED, ApprovalState.DISPATCHED}
    return state is ApprovalState.REFUSED
