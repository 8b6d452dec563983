"""Jobs whose index is looked at by its bytes: the vectors themselves are looked for in its file."""

from __future__ import annotations

from orchestrator import PhysicalStore
from orchestrator.domain.states import JobState
from tests.integration.vector_harness import ANNA, BERTA, PASSPORT, by_key, index_url, shelf
from tests.integration.vector_jobs_harness import ERASED, Stage, stage

__all__ = ["index_url", "shelf", "stage"]


def test_bytes_of_the_vectors_are_looked_for_in_the_file(stage: Stage) -> None:
    shelf = stage.shelf
    assert isinstance(shelf.adapter, PhysicalStore)
    stage.look_at_bytes()
    shelf.learn(ANNA, "passport", PASSPORT)
    shelf.learn(BERTA, "seat", "aisle seat")
    job = stage.file(by_key())
    stage.run()
    assert stage.ended(job) == ERASED
    (receipt,) = [r for r in stage.ledger.receipts(job) if (r.adapter, r.phase) == ("vector", "verify")]
    if shelf.url.startswith("sqlite"):
        assert (receipt.outcome, receipt.reach, receipt.residuals) == ("absent", "physical", ("file_system",))
    else:
        assert (receipt.outcome, receipt.reach) == ("absent", "logical")
        assert {"dead_tuples", "planner_samples", "write_ahead_log"} <= set(receipt.residuals)


def test_vector_that_a_neighbour_holds_as_well_is_named_as_shared(stage: Stage) -> None:
    shelf = stage.shelf
    if not shelf.url.startswith("sqlite"):
        return  # no bytes are looked at there
    stage.look_at_bytes()
    for scope in (ANNA, BERTA):
        shelf.learn(scope, "passport", PASSPORT)
    job = stage.file(by_key())
    stage.run()
    (receipt,) = [r for r in stage.ledger.receipts(job) if (r.adapter, r.phase) == ("vector", "verify")]
    assert (receipt.outcome, receipt.reach) == ("absent", "logical")
    assert "shared_text" in receipt.residuals
    assert {row[2] for row in shelf.points()} == {"berta"}


def test_other_program_s_copy_in_the_file_is_seen_by_its_bytes_alone(stage: Stage) -> None:
    shelf = stage.shelf
    if not shelf.url.startswith("sqlite"):
        return  # as above
    stage.look_at_bytes()
    shelf.learn(ANNA, "passport", PASSPORT)
    shelf.change("CREATE TABLE copies AS SELECT vector FROM vector_points")
    job = stage.file(by_key())
    stage.run()
    assert stage.view(job).state is JobState.DERIVED_CLEANUP
    assert stage.view(job).last_error == "still_present"
    shelf.change("DROP TABLE copies")
    stage.ledger.retry(job)
    stage.run()
    assert stage.ended(job) == ERASED
