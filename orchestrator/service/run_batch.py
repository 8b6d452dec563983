"""One batch: claim, build the orders, call the adapter, commit what it answered.

Principles: no adapter is called inside a control transaction. A claim may be taken over
while we call, so the commit compares owners and drops what is no longer ours. A call that
was made is always written down. Nothing an adapter raises is swallowed or quoted: the
ledger keeps its code.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, TypeVar, assert_never, cast
from uuid import UUID

from orchestrator.domain.abilities import WindowStore
from orchestrator.domain.codes import CrashPoint
from orchestrator.domain.contract import EraseOrder, SourceAdapter, StorageAdapter
from orchestrator.domain.errors import BadAnswer, DeadlinePassed
from orchestrator.domain.ports import Budgets, Clock, Crash, Ledger
from orchestrator.domain.retry import Park, RetryPolicy, code_of, decide
from orchestrator.domain.unit import Answered, Claimed, Failed, Finished, Phase, Receipt
from orchestrator.service.accept import Acceptance
from orchestrator.service.judge import judge
from orchestrator.service.look import Bytes

A = TypeVar("A")


@dataclass(frozen=True, kw_only=True)
class Engine:
    """Everything that running a batch needs."""

    ledger: Ledger
    acceptance: Acceptance
    adapters: Mapping[str, StorageAdapter]
    clock: Clock
    new_id: Callable[[], UUID]
    budgets: Budgets
    policy: RetryPolicy
    batch: int
    crash: Crash
    log: Any  # structlog's bound logger: its own type is Any
    bytes: Bytes | None = None  # None: no store is looked at by its bytes


def run_batch(engine: Engine, adapter: str, phase: Phase) -> int:
    """Run one batch of due units of an adapter and phase; give how many units were claimed."""
    owner, where = str(engine.new_id()), f"{adapter}.{phase}"
    store = engine.adapters[adapter]
    leased = engine.ledger.claim(adapter, phase, owner=owner, limit=min(engine.batch, store.max_batch))
    if not leased:
        return 0
    engine.crash(CrashPoint.AFTER_CLAIM, where)
    # Holds are read here, as late as can be: whoever was stopped after the claim does not act on an old answer.
    units = engine.ledger.load(owner, leased)
    if not units:
        return 0
    engine.log.info("unit.claimed", adapter=adapter, phase=phase.value, units=len(units))
    engine.crash(CrashPoint.AFTER_ORDERS, where)
    started = engine.clock.now()
    engine.crash(CrashPoint.BEFORE_CALL, where)
    orders = [unit.order for unit in units]
    call = partial(verb(store, phase), orders)
    if phase is Phase.VERIFY and engine.bytes is not None and adapter in engine.bytes.stores:
        call = partial(engine.bytes.verify, adapter, owner, store.verify, orders)
    answers = answers_of(engine, partial(in_time, engine, owner, orders[0].deadline, call), units)
    engine.crash(CrashPoint.AFTER_EFFECT, where)
    committed = engine.ledger.commit(owner, answers, started_at=started)
    engine.crash(CrashPoint.AFTER_COMMIT, where)
    _tell(engine.log.bind(adapter=adapter, phase=phase.value), answers, committed.dropped)
    for job, state in committed.moved:
        engine.log.info("job.moved", job_id=job, state=state.value)
    return len(units)


def answers_of(engine: Engine, call: Callable[[], Sequence[object]], units: Sequence[Claimed]) -> list[Answered]:
    """Make the call for the whole batch and judge each answer on its own."""
    try:
        answers = list(call())
    except Exception as error:  # noqa: BLE001 - whatever an adapter raises becomes a decision, here and nowhere else
        return [_failed(engine, unit, error) for unit in units]
    if len(answers) != len(units):
        return [_failed(engine, unit, BadAnswer()) for unit in units]
    return [_judged(engine, unit, answer) for unit, answer in zip(units, answers, strict=True)]


def in_time(engine: Engine, owner: str, deadline: datetime, call: Callable[[], Sequence[A]]) -> Sequence[A]:
    """Run a call in a thread of its own and renew the batch's lease meanwhile; raise `DeadlinePassed` at its deadline.

    A thread cannot be stopped: a call that hangs for ever is left behind, and the worker goes
    on. What such a call may still do ends with the deadline, which stores check by themselves.
    """
    answer: Future[Sequence[A]] = Future()
    # Our clock may be set back while we wait; what is left of the budget by it now is also the longest real wait.
    longest = time.monotonic() + (deadline - engine.clock.now()).total_seconds()

    def left() -> float:
        return min((deadline - engine.clock.now()).total_seconds(), longest - time.monotonic())

    if left() <= 0:  # a process that slept for so long does not begin
        raise DeadlinePassed

    def run() -> None:
        try:
            answer.set_result(call())
        except BaseException as error:  # noqa: BLE001 - it is raised again where the answer is read
            answer.set_exception(error)

    threading.Thread(target=run, name=f"call-{owner}", daemon=True).start()
    pause = engine.budgets.lease.total_seconds() / 3
    while (remaining := left()) > 0:
        try:
            return answer.result(timeout=min(pause, remaining))
        except TimeoutError:
            if answer.done():  # the store's own time-out, which is an answer
                return answer.result()
            engine.ledger.renew(owner)
    raise DeadlinePassed


def verb(store: StorageAdapter, phase: Phase) -> Callable[[Sequence[EraseOrder]], Sequence[object]]:
    """Give the method of an adapter that a phase asks for."""
    match phase:
        case Phase.REVOKE:
            return cast("SourceAdapter", store).revoke
        case Phase.FIND:
            return store.find
        case Phase.ERASE:
            return store.erase
        case Phase.VERIFY:
            return store.verify
        case Phase.CLOSE:
            return partial(_closed, cast("WindowStore", store))
        case _:
            assert_never(phase)


def _closed(store: WindowStore, orders: Sequence[EraseOrder]) -> Sequence[object]:
    return store.closed([target.id for order in orders for target in order.targets])


def _judged(engine: Engine, unit: Claimed, answer: object) -> Answered:
    try:
        return judge(unit, answer)
    except Exception as error:  # noqa: BLE001 - an answer that cannot be read fails its own unit, not the batch
        return _failed(engine, unit, error)


def _failed(engine: Engine, unit: Claimed, error: Exception) -> Failed:
    # Spreading retries in time needs no secret randomness.
    parks = unit.phase is not Phase.CLOSE
    then = decide(error, unit.order.attempt, policy=engine.policy, jitter=random.random(), parks=parks)  # noqa: S311
    return Failed(claimed=unit, code=code_of(error), then=then)


def _tell(log: Any, answers: Sequence[Answered], dropped: frozenset[UUID]) -> None:  # noqa: ANN401 - see Engine.log
    for answer in answers:
        unit = answer.claimed
        job = str(unit.order.job)
        match answer:
            case _ if unit.order.unit in dropped:
                log.warning("answer.dropped", job_id=job, fence=unit.order.fence)
            case Failed(then=Park() as park):
                log.warning("unit.parked", job_id=job, error=answer.code.value, reason=park.reason.value)
            case Failed():
                log.warning("unit.failed", job_id=job, error=answer.code.value, attempt=unit.order.attempt)
            case Finished(receipt=Receipt() as receipt):
                log.info("receipt.stored", job_id=job, outcome=receipt.outcome.value, erased=receipt.erased)
            case _:
                log.info("targets.found", job_id=job, targets=len(answer.targets))
