"""A job, its receipts and its units as a report reads them."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from orchestrator.domain.job import JobView, Purpose, ReceiptView, Trigger
from orchestrator.domain.states import JobState
from orchestrator.domain.unit import Phase
from orchestrator.service.outstanding import Undone
from orchestrator.service.report import Facts, Report, StoreReport, report

AT = datetime(2026, 10, 28, 12, tzinfo=UTC)
END = datetime(2026, 11, 27, 3, tzinfo=UTC)
STORES = ("memory", "vector", "cache", "drafts", "backup")
JOB = JobView(
    id="job-1",
    tenant="acme",
    state=JobState.VERIFIED,
    purpose=Purpose.ERASE,
    trigger=Trigger.REQUEST,
    selector="source",
    reason="user_request",
    reference=None,
    round=1,
    requested_at=AT - timedelta(days=1),
    due_at=AT + timedelta(days=29),
    verified_at=AT,
    completed_at=None,
    parked=(),
    held=False,
    waived=(),
    windows=(),
    last_error=None,
    failed_in=None,
    attempts=1,
    result=None,
)


def receipt(adapter: str, phase: str, outcome: str, **changes: Any) -> ReceiptView:  # noqa: ANN401 - any field
    made = ReceiptView(
        adapter=adapter,
        phase=phase,
        outcome=outcome,
        page=0,
        round=1,
        attempt=1,
        expected=0,
        erased=0,
        already_absent=0,
        scheduled=0,
        extra=0,
        remaining=0,
        reach="logical" if phase == "verify" else None,
        residuals=(),
        finished_at=AT,
    )
    return replace(made, **changes)


def erased(adapter: str, count: int, **changes: Any) -> ReceiptView:  # noqa: ANN401
    return receipt(adapter, "erase", "erased", **{"expected": count, "erased": count, **changes})


def absent(adapter: str, **changes: Any) -> ReceiptView:  # noqa: ANN401
    return receipt(adapter, "verify", "absent", **changes)


def present(adapter: str, remaining: int, **changes: Any) -> ReceiptView:  # noqa: ANN401
    return receipt(adapter, "verify", "present", remaining=remaining, **changes)


def done(*adapters: str) -> tuple[ReceiptView, ...]:
    return tuple(itertools.chain.from_iterable((erased(name, 1), absent(name)) for name in adapters))


def undone(adapter: str, phase: Phase, **changes: Any) -> Undone:  # noqa: ANN401
    return replace(Undone(adapter=adapter, phase=phase, units=2, attempts=3, due_at=AT), **changes)


def told(
    receipts: tuple[ReceiptView, ...] = (),
    *,
    job: JobView = JOB,
    at: datetime = AT,
    enabled: tuple[str, ...] = STORES,
    **facts: Any,  # noqa: ANN401
) -> Report:
    given = Facts(**{"job": job, "receipts": receipts, "revoked": {}, "no_lineage": {}, **facts})
    return report(given, at=at, enabled=enabled, installed={"memory", "papers", "archive"}, told=["paper files"])


def store(of: Report, name: str) -> StoreReport:
    (found,) = [s for s in of.stores if s.name == name]
    return found
