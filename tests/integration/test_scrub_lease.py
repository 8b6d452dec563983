"""A scrub whose process slept past the end of its lease says nothing, also where nobody has taken it over yet."""

from __future__ import annotations

from pathlib import Path

from orchestrator import Scrubbed
from tests.fakes import bench


def test_scrub_that_is_told_after_its_lease_has_ended_is_failed(tmp_path: Path) -> None:
    stage = bench(tmp_path)
    run = stage.ledger.open_scrub("file", "a worker that sleeps")
    assert run is not None
    with stage.ledger.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE scrub_runs SET lease_until_us = 1")
    assert not stage.ledger.close_scrub(run, Scrubbed.CLEAN, control_found=True)
    assert stage.rows("SELECT outcome, error_code FROM scrub_runs") == [("failed", "lease_ended")]
    stage.ledger.engine.dispose()


def test_scrub_that_is_told_in_time_is_as_it_was_told(tmp_path: Path) -> None:
    stage = bench(tmp_path)
    run = stage.ledger.open_scrub("file", "a worker")
    assert run is not None
    assert stage.ledger.close_scrub(run, Scrubbed.CLEAN, control_found=True)
    assert stage.rows("SELECT outcome, error_code FROM scrub_runs") == [("clean", None)]
    stage.ledger.engine.dispose()
