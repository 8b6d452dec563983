"""A source that is put back brings no draft back that was made from what has been forgotten."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

from orchestrator import EraseOrder
from tests.integration.drafts_harness import ALL, LANGUAGE, NEIGHBOUR, A, Desk, desk

__all__ = ["desk"]


def test_draft_whose_record_was_erased_before_the_copy_goes_when_the_source_is_put_back(desk: Desk) -> None:
    """The copy was taken after the source had erased, and before the drafts were: no record is left to lead to them."""
    for scope in (A, NEIGHBOUR):
        desk.tell("language", f"English for {scope.user}", scope)
        desk.publish(f"report-{scope.user}", scope)
    kept = desk.texts(NEIGHBOUR)
    order = EraseOrder(
        job=uuid4(),
        unit=uuid4(),
        key="k",
        scope=ALL,
        selector=LANGUAGE,
        deadline=desk.clock.now() + timedelta(seconds=60),
    )
    (revoked,) = desk.memory.revoke([order])
    desk.memory.erase([replace(order, targets=revoked.targets)])
    assert desk.texts(A) != []
    marks = [(ALL.tenant, order.job, mark) for mark in revoked.tombstones]
    assert desk.memory.restore(None, marks, lambda: 2).erased > 0
    assert desk.texts(A) == []
    assert desk.texts(NEIGHBOUR) == kept
