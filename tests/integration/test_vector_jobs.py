"""Deletion jobs over a memory store and an index of it, by the engine itself: late writers, crashes, holds."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from adapters.vector import Point
from orchestrator import Target
from orchestrator.domain.codes import HoldReason
from orchestrator.domain.states import JobState
from orchestrator.service.hold import HoldRequest, place
from tests.integration.vector_harness import (
    ANNA,
    BERTA,
    ELSEWHERE,
    EVERYWHERE,
    PASSPORT,
    PATIENCE,
    SUBJECT,
    Pausing,
    by_key,
    embed,
    index_url,
    shelf,
)
from tests.integration.vector_jobs_harness import ERASED, Died, Stage, stage

__all__ = ["index_url", "shelf", "stage"]


def test_job_takes_the_points_of_what_it_forgets_and_of_nobody_else(stage: Stage) -> None:
    shelf = stage.shelf
    shelf.learn(ANNA, "passport", PASSPORT)
    shelf.learn(ANNA, "passport", "It is P7654321 by now.")
    others = {shelf.learn(ANNA, "seat", "aisle seat"), shelf.learn(BERTA, "passport", PASSPORT)}
    before = shelf.points()
    job = stage.file(by_key())
    stage.run()
    assert stage.ended(job) == ERASED
    assert stage.receipts(job, "erase") == [("erased", 2, 0)]
    left = shelf.points()
    assert [row for row in before if row in left] == left
    assert {row[5] for row in left} == {other.id for other in others}
    assert shelf.rows("SELECT count(*) FROM vector_probes") == [(0,)]


@pytest.mark.case(24)
@pytest.mark.case(30)
def test_indexer_that_read_before_the_deletion_and_writes_after_it_is_refused(stage: Stage) -> None:
    shelf = stage.shelf
    fact = shelf.tell(ANNA, "passport", PASSPORT)
    embedding, goes_on = threading.Event(), threading.Event()

    def index_job() -> tuple[int, int]:
        (told,) = shelf.memory.store.current(ANNA)
        embedding.set()
        assert goes_on.wait(PATIENCE)
        stored = shelf.enter(ANNA, Target(kind="fact", id=told.id, version=told.version), told.value)
        return len(stored.ids), stored.refused

    with ThreadPoolExecutor(1) as pool:
        late = pool.submit(index_job)
        assert embedding.wait(PATIENCE)
        job = stage.file(by_key())
        stage.run()
        assert stage.ended(job) == ERASED
        goes_on.set()
        assert late.result(PATIENCE) == (0, 1)
    assert shelf.points() == []
    assert shelf.shown(ANNA, PASSPORT) == []
    assert shelf.seen(shelf.order(by_key(), known=(fact,))).remaining == 0


def test_writer_that_asks_no_guard_is_seen_and_its_copy_goes_in_a_new_round(stage: Stage) -> None:
    shelf = stage.shelf
    fact = shelf.learn(ANNA, "passport", PASSPORT)
    job = stage.file(by_key())
    stage.die_once("vector.erase")
    with pytest.raises(Died):
        stage.run()
    late = Point(made_from=fact, source="anna/passport", vector=embed(PASSPORT), part=1)
    shelf.unguarded.put(ANNA, [late])
    stage.take_over()
    stage.run()
    assert stage.ended(job) == ERASED
    assert stage.view(job).round == 2
    assert shelf.points() == []


def test_writer_between_guard_and_commit_keeps_the_job_from_its_end_until_its_point_is_gone(stage: Stage) -> None:
    shelf = stage.shelf
    fact = shelf.tell(ANNA, "passport", PASSPORT)
    masters = Pausing(shelf.masters)
    with ThreadPoolExecutor(2) as pool:
        point = Point(made_from=fact, source="anna/passport", vector=embed(PASSPORT))
        writing = pool.submit(shelf.adapter.index(masters).put, ANNA, [point])
        assert masters.asked.wait(PATIENCE)
        job = stage.file(by_key())
        threading.Timer(0.5, masters.goes_on.set).start()
        stage.run()
        assert len(writing.result(PATIENCE).ids) == 1, "the guard had let it in"
    stage.take_over()
    stage.run()
    assert stage.ended(job) == ERASED
    assert shelf.points() == []


@pytest.mark.parametrize("at", ["vector.find", "vector.erase", "vector.verify"])
def test_process_that_dies_loses_nothing_and_counts_nothing_twice(stage: Stage, at: str) -> None:
    shelf = stage.shelf
    shelf.learn(ANNA, "passport", PASSPORT)
    stays = shelf.learn(ANNA, "seat", "aisle seat")
    job = stage.file(by_key())
    stage.die_once(at)
    with pytest.raises(Died):
        stage.run()
    stage.take_over()
    stage.run()
    assert stage.ended(job) == ERASED
    assert stage.receipts(job, "erase") == [("nothing_found", 0, 1) if at == "vector.erase" else ("erased", 1, 0)]
    assert shelf.shown(ANNA, PASSPORT) == [stays]
    assert shelf.rows("SELECT count(*) FROM vector_probes") == [(0,)]


def test_held_fact_keeps_its_point_and_the_others_go(stage: Stage) -> None:
    shelf = stage.shelf
    held = shelf.learn(ANNA, "passport", PASSPORT)
    shelf.learn(ANNA, "seat", "aisle seat")
    hold = HoldRequest(
        tenant=ANNA.tenant, user=ANNA.user, items=(held.id,), reason=HoldReason.LITIGATION, requested_by="counsel"
    )
    (placed,) = place(hold, stage.acceptance)
    job = stage.file(SUBJECT)
    stage.run()
    assert stage.view(job).held
    assert {row[5] for row in shelf.points()} == {held.id}
    assert shelf.shown(ANNA, PASSPORT) == [held]
    stage.ledger.release(str(placed), by_ref="somebody")
    stage.run()
    stage.take_over()
    stage.run()
    assert stage.ended(job) == ERASED
    assert shelf.points() == []


def test_subject_takes_all_projects_and_what_came_back_afterwards_stays(stage: Stage) -> None:
    shelf = stage.shelf
    for scope in (ANNA, ELSEWHERE, BERTA):
        shelf.learn(scope, f"passport-{scope.project}", PASSPORT, f"{scope.user}/{scope.project}")
    job = stage.file(SUBJECT, EVERYWHERE)
    stage.run()
    assert stage.ended(job) == ERASED
    assert {row[2] for row in shelf.points()} == {"berta"}
    fresh = shelf.learn(ANNA, "meal", "I eat fish.", "anna/new")
    again = stage.file(by_key("none"))
    stage.run()
    assert stage.view(again).state is JobState.COMPLETED
    assert shelf.shown(ANNA, PASSPORT) == [fresh]
