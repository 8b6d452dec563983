"""Draft jobs as a library: facts of a scope become a report in three steps, and whoever dies is taken over from.

Principles: each step leaves a checkpoint, and what is done is not done again. Before each step
that is not done, and again in the transaction that keeps what it made, the job has to be valid
still; otherwise it fails for good. Nothing of this reads the source without the revision under
which it was submitted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

import sqlalchemy as sa

from adapters.drafts import lease, work
from adapters.drafts.approvals.cancel import Cancelled, cancel_job
from adapters.drafts.errors import MemoryChanged
from adapters.drafts.inputs import MAX_NAME, check_lease
from adapters.drafts.lease import LEASE, Claim
from adapters.drafts.schema import open_in
from adapters.drafts.step import Fault, Pass, Step, after, never, within
from adapters.drafts.submit import submit
from adapters.drafts.validity import fail, holds
from adapters.drafts.view import JobView, known, view
from adapters.drafts.work import Writer, compose
from adapters.memory.batch import Found
from adapters.memory.engine import reading, writing
from adapters.memory.facts import check_text
from adapters.memory.instant import micros
from orchestrator import AdapterContext, GateRefused, Refusal, Scope

T = TypeVar("T")


class DraftRuntime:
    """Submits, runs and tells draft jobs; a job is known in exactly its own scope, to nobody else.

    The caller vouches for the scope: it comes from a session, never from a request's body.
    `refused` counts what the gate refused in this process, by code.
    """

    def __init__(self, engine: sa.Engine, context: AdapterContext) -> None:
        """Bind it to a source database; its tables are made where there are none."""
        open_in(engine)
        self._engine, self._context = engine, context
        self.refused: Counter[Refusal] = Counter()

    def submit(
        self,
        scope: Scope,
        job: str,
        *,
        keys: Collection[str] | None = None,
        upon: Collection[str] = (),
        steps: Mapping[Step, Collection[str]] | None = None,
        redo: str | None = None,
    ) -> JobView:
        """Submit a job over the facts that hold now: all of the scope, those of `keys`, or those that `steps` name.

        `steps` says which keys the collecting and the draft use; one that is not in it depends on
        the whole scope. `upon` names earlier jobs whose reports go into this one. `redo` names an
        earlier job whose checkpoints are taken over where what they depend on is as it was; it
        matters when a job is begun, and not again. The same again is the same job; raises
        `JobTaken` where the memory has changed since, `ReportUnusable` for a report that is not
        current, `JobUnknown` for the job that is to be redone, and `InvalidRequest`.
        """
        check_text("job", job, MAX_NAME)
        gate, now = self._context.gate, self._now()
        with writing(self._engine, [scope.tenant]) as connection:
            return submit(connection, gate, scope, job, now=now, keys=keys, upon=upon, steps=steps, redo=redo)

    def run(
        self,
        scope: Scope,
        job: str,
        writer: Writer = compose,
        *,
        lease_seconds: float = LEASE,
        fault: Pass = never,
    ) -> JobView:
        """Do what is left of a job, and give it published; one that is published already is told as it stands.

        Raises `MemoryChanged`, the one failure, from which no repeat leads back; `JobLeased`
        while another runner has it, `LeaseLost` where another one has taken it over meanwhile,
        `JobCancelled`, `JobUnknown`, `GateRefused` for a text that was forgotten, and `InvalidRequest`.
        """
        check_lease(lease_seconds)
        with writing(self._engine, [scope.tenant]) as connection:
            lease_us = max(1, round(lease_seconds * 1_000_000))
            claim = lease.claim(connection, scope, job, now_us=self._now_us(), lease_us=lease_us)
        if claim is not None:
            fault(Fault.AFTER_CLAIM)
            for step in Step:
                if step not in claim.done:
                    self._take(claim, step, writer, fault)
        return self.inspect(scope, job)

    def inspect(self, scope: Scope, job: str) -> JobView:
        """Tell a job with its checkpoints, whether they can still be published or not; raises `JobUnknown`."""
        with reading(self._engine, [scope.tenant]) as connection:
            return view(connection, known(connection, scope, job))

    def cancel(self, scope: Scope, job: str) -> Cancelled:
        """Let a job that is not published go no further, nor the actions that wait for it; raises `JobUnknown`.

        Nothing is erased, and nothing that was sent is called back: that is outstanding.
        """
        with writing(self._engine, [scope.tenant]) as connection:
            return cancel_job(connection, known(connection, scope, job))

    def _take(self, claim: Claim, step: Step, writer: Writer, fault: Pass) -> None:
        def begin(connection: sa.Connection, job: Found) -> str:
            lease.renew(connection, job, claim, self._now_us())
            return work.given(connection, job, step)

        def keep(connection: sa.Connection, job: Found) -> None:
            work.keep(connection, self._context.gate, job, step, text)
            if step is Step.PUBLISH:
                lease.end(connection, job)
            else:
                lease.renew(connection, job, claim, self._now_us())
            fault(within(step))

        text = work.do(step, self._while_valid(claim, begin), writer)
        try:
            self._while_valid(claim, keep)
        except GateRefused as error:
            self.refused[error.refusal] += 1
            self._context.log.info("gate.refused", code=error.refusal.value)
            raise
        self._context.log.info("draft.kept", step=step.value)
        fault(after(step))

    def _while_valid(self, claim: Claim, act: Callable[[sa.Connection, Found], T]) -> T:
        """Act on a job in one transaction with the check of whether it may go on; let it fail where it may not."""
        with writing(self._engine, [claim.scope.tenant]) as connection:
            job = lease.owned(connection, claim)
            if holds(connection, job, self._now()):
                return act(connection, job)
            fail(connection, job)
        # Raised when the failure is committed.
        self._context.log.info("draft.failed", draft_job=job.handle)
        raise MemoryChanged

    def _now(self) -> float:
        return self._context.clock.now().timestamp()

    def _now_us(self) -> int:
        return micros(self._context.clock.now())
