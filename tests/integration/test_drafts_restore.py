"""A source that is put back brings no draft back that was made from what has been forgotten."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

from orchestrator import EraseOrder, Selector, SelectorKind
from tests.integration.context_harness import TRIPS, Study, study
from tests.integration.drafts_harness import ALL, FOREIGN, LANGUAGE, NEIGHBOUR, A, Desk, desk

__all__ = ["desk", "study"]


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


def test_input_from_the_last_memory_of_all_goes_with_it_when_the_source_is_put_back(study: Study) -> None:
    """The memory is erased, its input is not yet; that no memory is left at all says nothing of the inputs."""
    memory = study.remember("Sits at the aisle.")
    study.tell("language", "English", NEIGHBOUR)
    for scope in (TRIPS, NEIGHBOUR):
        study.assemble(scope=scope)
    assert study.inputs(TRIPS) != []
    kept = study.inputs(NEIGHBOUR)
    order = EraseOrder(
        job=uuid4(),
        unit=uuid4(),
        key="k",
        scope=replace(TRIPS, project=None),
        selector=Selector(kind=SelectorKind.MEMORY, value=memory.id),
        deadline=study.clock.now() + timedelta(seconds=60),
    )
    (revoked,) = study.memory.revoke([order])
    study.memory.erase([replace(order, targets=revoked.targets)])
    marks = [(TRIPS.tenant, order.job, mark) for mark in revoked.tombstones]
    assert study.memory.restore(None, marks, lambda: 2).erased > 0
    assert study.inputs(TRIPS) == []
    assert study.inputs(NEIGHBOUR) == kept


def test_memory_of_another_tenant_is_no_record_that_an_input_was_made_from(study: Study) -> None:
    foreign = study.remember("Sits at the aisle.", replace(TRIPS, tenant=FOREIGN.tenant))
    study.remember("Eats fish.")
    study.tell("language", "English", NEIGHBOUR)
    for scope in (TRIPS, NEIGHBOUR):
        study.assemble(scope=scope)
    kept = study.inputs(NEIGHBOUR)
    made = "kind = 'memory' AND tenant = 'tenant-a'"
    study.execute(f"UPDATE draft_used SET version = {foreign.version} WHERE {made}")  # noqa: S608 - an id of ours
    study.memory.restore(None, [], lambda: 2)
    assert study.inputs() == kept
