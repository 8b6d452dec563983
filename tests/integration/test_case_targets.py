"""Failures that users of other systems met with what is taken and what is left: they do not happen here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from uuid import uuid4

import pytest

from orchestrator import (
    EraseOrder,
    Holding,
    InvalidRequest,
    Scope,
    Selector,
    SelectorKind,
    Target,
)
from tests.fakes import Bench, fill
from tests.integration.cache_harness import ANNA as CACHED
from tests.integration.cache_harness import FOREIGN as CACHED_ELSEWHERE
from tests.integration.cache_harness import PASSPORT, Cache
from tests.integration.memory_harness import ALL, FOREIGN, NEIGHBOUR, SUBJECT, A, World


@pytest.mark.case(42)
def test_expired_replaced_unconfirmed_and_general_records_are_targets_like_any_other(world: World) -> None:
    neighbours = world.store.current(NEIGHBOUR), world.store.current(FOREIGN)
    past = world.clock.at.timestamp() - 3600
    world.store.put(A, "passport", "a second version", "trip-planning/turn-6")
    world.store.put(A, "booking", "expired", "trip-planning/turn-6", past)
    world.store.put(A, "guess", "unconfirmed", "trip-planning/turn-6", confirmed=False)
    world.tell(ALL, "language", "of no project", "settings/turn-1")
    world.store.forget(A, "seat")  # blanked here already; its row and its copies are still there
    order = world.order(SUBJECT, ALL)
    found = world.revoke(order).targets
    named = {str(row[0]) for row in world.rows("SELECT fact_id FROM facts WHERE tenant = 'tenant-a'")}
    mine = {
        str(row[0])
        for row in world.rows("SELECT fact_id FROM facts WHERE tenant = 'tenant-a' AND user_id = 'reader-A'")
    }
    assert {target.id for target in found} == mine
    assert mine < named
    erase = replace(order, targets=found)
    assert world.adapter.erase([erase])[0].erased == len(found) == 6
    assert world.adapter.verify([replace(erase, known=found)])[0].remaining == 0
    assert (world.store.current(NEIGHBOUR), world.store.current(FOREIGN)) == neighbours


@pytest.mark.case(43)
def test_derived_records_without_an_origin_are_counted_and_told(stage: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(stage)
    honest = stage.copies.find

    def with_orphans(orders: Sequence[EraseOrder]) -> list[Holding]:
        return [replace(holding, no_lineage=3) for holding in honest(orders)]

    monkeypatch.setattr(stage.copies, "find", with_orphans)
    job = stage.file()
    stage.run()
    assert stage.ledger.no_lineage(job) == {"copies": 3}


@pytest.mark.case(63)
def test_another_tenant_that_knows_an_id_finds_nothing_and_changes_nothing(world: World, cache: Cache) -> None:
    (ident,) = world.rows(
        "SELECT fact_id FROM facts WHERE tenant = 'tenant-a' AND user_id = 'reader-A' AND key = 'seat'"
    )
    by_id = Selector(kind=SelectorKind.MEMORY, value=str(ident[0]))
    before = world.rows("SELECT * FROM facts")
    theirs, unknown = (
        world.run(world.order(selector, replace(A, tenant="tenant-x")))
        for selector in (by_id, replace(by_id, value=str(uuid4())))
    )
    assert theirs == unknown
    stolen = replace(world.order(by_id, FOREIGN), targets=(Target(kind="fact", id=str(ident[0]), version=1),))
    assert world.adapter.erase([stolen])[0].erased == 0
    assert world.rows("SELECT * FROM facts") == before
    cache.fill(CACHED, "q", PASSPORT)
    target = Target(kind="cache_key", id=cache.key(CACHED, "q"))
    assert cache.adapter.erase([cache.order(CACHED_ELSEWHERE, targets=(target,))])[0].erased == 0
    assert cache.answers.get(CACHED, "q") is not None


@pytest.mark.case(63)
def test_job_without_a_tenant_cannot_be_written(stage: Bench) -> None:
    with pytest.raises(InvalidRequest):
        stage.file(scope=Scope(tenant="", user="anna"))
    assert stage.rows("SELECT id FROM deletion_jobs") == []
