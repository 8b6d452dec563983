"""Failures that users of other systems met with receipts, order and retries: they do not happen here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from orchestrator import (
    Erased,
    EraseOrder,
    Selector,
    SelectorKind,
)
from orchestrator.domain.job import Result, Store
from orchestrator.domain.states import JobState
from orchestrator.domain.unit import Phase
from orchestrator.service.run_batch import run_batch
from tests.fakes import ANNA, Bench, fill
from tests.integration.cache_harness import ANNA as CACHED
from tests.integration.cache_harness import PASSPORT, Cache
from tests.integration.cases_harness import erase_receipts
from tests.integration.engine_harness import run_until, with_rules
from tests.integration.memory_harness import SUBJECT, World


@pytest.mark.case(1)
def test_erase_that_leaves_a_copy_is_partial_and_makes_no_receipt(
    stage: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(stage)
    honest = stage.copies.erase

    def refuse_one(orders: Sequence[EraseOrder]) -> Sequence[Erased]:
        return honest([replace(order, targets=order.targets[1:]) for order in orders])

    monkeypatch.setattr(stage.copies, "erase", refuse_one)
    job = stage.file()
    stage.run()
    view = stage.view(job)
    assert (view.state, view.last_error, view.result) == (JobState.DERIVED_CLEANUP, "partial", None)
    assert erase_receipts(stage, job) == []
    monkeypatch.setattr(stage.copies, "erase", honest)
    stage.skip_pauses()
    stage.run()
    assert stage.view(job).state is JobState.COMPLETED
    assert erase_receipts(stage, job) == [("erased", 2, 1, 1)]


@pytest.mark.case(1)
def test_store_that_is_not_enabled_has_no_unit_and_no_receipt(stage: Bench) -> None:
    with_rules(stage, stores=[Store(name="source", role=stage.source.role)])
    stage.engine = replace(stage.engine, adapters={"source": stage.source})
    fill(stage)
    job = stage.file()
    stage.run()
    assert {r.adapter for r in stage.ledger.receipts(job)} == {"source"}
    assert stage.rows("SELECT DISTINCT adapter FROM deletion_units") == [("source",)]
    assert len(stage.copies.records) == 2


@pytest.mark.case(2)
@pytest.mark.parametrize("answer", ["nothing done", "nothing there"])
def test_store_that_looks_under_another_owner_is_not_believed(
    stage: Bench, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    fill(stage)
    absent = answer == "nothing there"

    def look_elsewhere(orders: Sequence[EraseOrder]) -> list[Erased]:
        return [Erased(already_absent=len(order.targets) if absent else 0) for order in orders]

    monkeypatch.setattr(stage.copies, "erase", look_elsewhere)
    job = stage.file()
    stage.run()
    view = stage.view(job)
    assert (view.state, view.verified_at) == (JobState.DERIVED_CLEANUP, None)
    assert view.last_error == ("still_present" if absent else "partial")
    assert bool(erase_receipts(stage, job)) == absent  # what it said is written down; the look contradicts it


@pytest.mark.case(4)
def test_id_that_never_existed_is_nothing_found_and_is_said_only_after_a_look(stage: Bench) -> None:
    fill(stage)
    job = stage.file("pasport")
    run_until(stage, "copies", Phase.VERIFY)
    assert (stage.view(job).state, stage.view(job).result) == (JobState.DERIVED_CLEANUP, None)
    (late,) = stage.ledger.overdue(tenant=None, before=stage.clock.at + timedelta(days=99), limit=9)
    assert late.requested_at <= stage.clock.at  # the age of what is pending can be seen
    stage.run()
    assert (stage.view(job).state, stage.view(job).result) == (JobState.COMPLETED, Result.NOTHING_FOUND)
    assert erase_receipts(stage, job) == [("nothing_found", 0, 0, 0)]
    other = stage.file()
    stage.run()
    assert stage.view(other).result is Result.ERASED


@pytest.mark.case(6)
def test_copy_that_was_said_to_be_absent_and_can_be_read_is_told_and_nothing_is_verified(
    stage: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(stage)
    honest = stage.copies.erase
    monkeypatch.setattr(
        stage.copies, "erase", lambda orders: [Erased(already_absent=len(order.targets)) for order in orders]
    )
    job = stage.file()
    run_until(stage, "copies", Phase.VERIFY)
    run_batch(stage.engine, "copies", Phase.VERIFY)
    assert [r.remaining for r in stage.ledger.receipts(job) if r.outcome == "present"] == [2]
    assert stage.view(job).state is JobState.DERIVED_CLEANUP
    monkeypatch.setattr(stage.copies, "erase", honest)
    stage.run()
    assert (stage.view(job).state, stage.view(job).round) == (JobState.COMPLETED, 2)
    assert stage.copies.records == set()


@pytest.mark.case(13)
def test_copies_are_found_though_the_record_that_they_were_made_from_is_gone(stage: Bench) -> None:
    stage.source.records.add((ANNA.tenant, ANNA.user, "passport", "f-1"))
    stage.copies.records = {(ANNA.tenant, ANNA.user, "f-1", f"page-{n}") for n in range(5)}
    job = stage.file()
    run_batch(stage.engine, "source", Phase.REVOKE)
    assert stage.rows("SELECT adapter, handle FROM deletion_targets") == [("source", "f-1")]
    stage.source.records.clear()  # somebody drops the row
    stage.run()
    assert (stage.view(job).state, stage.copies.records) == (JobState.COMPLETED, set())
    assert erase_receipts(stage, job) == [("erased", 5, 5, 0)]


@pytest.mark.case(14)
def test_look_that_verifies_knows_what_was_erased_from_what_was_written_down_before(stage: Bench) -> None:
    fill(stage)
    job = stage.file()
    run_until(stage, "copies", Phase.VERIFY)
    assert (stage.source.records, stage.copies.records) == (set(), set())
    stage.copies.records.add((ANNA.tenant, ANNA.user, "anna-passport-000000", "planted"))
    run_batch(stage.engine, "copies", Phase.VERIFY)
    assert [r.outcome for r in stage.ledger.receipts(job) if r.phase == "verify"] == ["present"]
    stage.run()
    assert (stage.view(job).state, stage.view(job).round, stage.copies.records) == (JobState.COMPLETED, 2, set())


@pytest.mark.case(17)
def test_empty_selection_is_refused_before_any_store_is_called(stage: Bench) -> None:
    for kind in (SelectorKind.KEY, SelectorKind.MEMORY, SelectorKind.SOURCE):
        for value in (None, "", " "):
            with pytest.raises(ValueError, match="non-empty"):
                stage.file(selector=Selector(kind=kind, value=value))
    assert stage.rows("SELECT id FROM deletion_jobs") == []
    assert stage.source.calls.total() == 0


@pytest.mark.case(17)
def test_order_without_targets_erases_nothing_in_any_store(world: World, cache: Cache) -> None:
    cache.fill(CACHED, "q", PASSPORT)
    stored, cached = world.rows("SELECT * FROM facts"), cache.answers.get(CACHED, "q")
    for selector in (SUBJECT, world.order().selector):
        assert world.adapter.erase([world.order(selector)])[0].erased == 0
    assert cache.adapter.erase([cache.order(kind=SelectorKind.SUBJECT)])[0].erased == 0
    assert world.rows("SELECT * FROM facts") == stored
    assert cached is not None
    assert cache.answers.get(CACHED, "q") == cached


@pytest.mark.case(21)
def test_job_that_finds_nothing_makes_no_copy_of_anything(stage: Bench, world: World) -> None:
    tables = [str(row[0]) for row in world.rows("SELECT name FROM sqlite_master WHERE type = 'table'")]

    def content() -> dict[str, set[tuple[object, ...]]]:
        return {table: set(world.rows(f"SELECT * FROM {table}")) for table in tables}  # noqa: S608

    files, before = set(world.file.parent.iterdir()), content()
    unknown = world.order(Selector(kind=SelectorKind.KEY, value="pasport"))
    world.run(unknown)
    assert {path.name for path in set(world.file.parent.iterdir()) - files} <= {"m.db-wal", "m.db-shm"}
    more = {table: rows - before[table] for table, rows in content().items() if rows - before[table]}
    assert "facts" not in more
    assert "aisle seat" not in repr(more)  # what is new are ids, macs and counts
    fill(stage)
    stage.file("pasport")
    stage.run()
    assert stage.rows("SELECT * FROM deletion_targets") == []
