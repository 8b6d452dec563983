"""What is left of an index in its file when a job has looked at the bytes, and what becomes of one that cannot yet."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from adapters.memory import physical
from adapters.vector import Point
from orchestrator import ScrubReport
from orchestrator.domain.states import JobState
from tests.integration.vector_harness import ANNA, BERTA, DIMENSIONS, Shelf, by_key, open_shelf
from tests.integration.vector_jobs_harness import ERASED, Stage, open_stage

PARTS = 500


@pytest.fixture
def bytewise(tmp_path: Path) -> Iterator[Stage]:
    """Give an engine that looks at the bytes of an index, which lies in a folder of its own."""
    (tmp_path / "index").mkdir()
    shelf = open_shelf(tmp_path, f"sqlite:///{tmp_path}/memory.db", f"sqlite:///{tmp_path}/index/vectors.db")
    with closing(shelf.memory), closing(shelf.adapter):
        stage = open_stage(shelf, tmp_path)
        stage.look_at_bytes()
        yield stage
        stage.ledger.engine.dispose()


def filled(shelf: Shelf) -> list[bytes]:
    """Let one person have many vectors and another one a few; give those of the first."""
    vectors = np.random.default_rng(7).normal(size=(PARTS, DIMENSIONS)).astype("<f4")
    for scope, count in ((ANNA, PARTS), (BERTA, 3)):
        fact = shelf.tell(scope, "passport", f"A number of {scope.user}.")
        points = [
            Point(made_from=fact, source=f"{scope.user}/passport", vector=vector.tolist(), part=n)
            for n, vector in enumerate(vectors[:count] + (scope is BERTA))
        ]
        assert len(shelf.index.put(scope, points).ids) == count
    return [vector.tobytes() for vector in vectors]


def folder(stage: Stage) -> Path:
    return stage.shelf.adapter._context.state_dir / "index"


def held(stage: Stage, vectors: list[bytes]) -> int:
    """Count the vectors of which a number lies in the raw files, wherever in their folder.

    Copies are read: a file that this process has open would lose its locks.
    """
    copies = folder(stage).parent / "copies"
    shutil.rmtree(copies, ignore_errors=True)
    shutil.copytree(folder(stage), copies)
    content = b"\0".join(path.read_bytes() for path in copies.rglob("*") if path.is_file())
    return sum(any(vector[n : n + 16] in content for n in range(0, len(vector) - 15, 4)) for vector in vectors)


def free_pages(stage: Stage) -> int:
    return int(stage.shelf.rows("PRAGMA freelist_count")[0][0])


def reads(stage: Stage) -> sqlite3.Connection:
    """Let somebody read the index and not end."""
    reader = sqlite3.connect(folder(stage) / "vectors.db", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM vector_points").fetchall()
    return reader


def scrubs(stage: Stage) -> list[str]:
    with stage.ledger.engine.begin() as connection:
        return [o for (o,) in connection.exec_driver_sql("SELECT outcome FROM scrub_runs ORDER BY started_at_us, id")]


@pytest.mark.case(89)
@pytest.mark.case(90)
def test_job_that_looks_at_bytes_leaves_no_number_no_free_page_and_no_other_file(bytewise: Stage) -> None:
    stage = bytewise
    vectors = filled(stage.shelf)
    kept = stage.shelf.rows("SELECT * FROM vector_points WHERE user_id = 'berta' ORDER BY id")
    assert held(stage, vectors) == PARTS, "the search sees what is there"
    job = stage.file(by_key())
    stage.run()
    assert stage.ended(job) == ERASED
    assert held(stage, vectors) == 0
    assert free_pages(stage) == 0
    files = {path.relative_to(folder(stage)).as_posix(): path.stat().st_size for path in folder(stage).rglob("*")}
    assert files.pop("vectors.db") < PARTS * DIMENSIONS * 4, "the file has become smaller"
    assert files.keys() <= {"vectors.db-wal", "vectors.db-shm"}
    assert stage.shelf.rows("SELECT * FROM vector_points WHERE user_id = 'berta' ORDER BY id") == kept


@pytest.mark.case(90)
def test_without_the_look_at_bytes_free_pages_stay(bytewise: Stage) -> None:
    """The control: it is the scrub that gives them back."""
    stage = bytewise
    stage.engine = replace(stage.engine, bytes=None)
    filled(stage.shelf)
    job = stage.file(by_key())
    stage.run()
    assert stage.ended(job) == ERASED
    assert free_pages(stage) > 10


@pytest.mark.case(105)
def test_clean_up_that_is_kept_from_its_work_waits_and_is_tried_again(
    bytewise: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = bytewise
    monkeypatch.setattr(physical, "WAIT_MS", 30)
    vectors = filled(stage.shelf)
    with closing(reads(stage)):
        job = stage.file(by_key())
        stage.run()
        for attempt in (1, 2):
            view = stage.view(job)
            assert (view.state, view.last_error, view.waits_for_a_person) == (
                JobState.DERIVED_CLEANUP,
                "inconclusive",
                False,
            )
            assert scrubs(stage) == ["busy"] * attempt
            stage.take_over()
            stage.run()
        assert [r for r in stage.ledger.receipts(job) if (r.adapter, r.phase) == ("vector", "verify")] == []
    stage.take_over()
    stage.run()
    assert stage.ended(job) == ERASED
    assert scrubs(stage) == ["busy"] * 3 + ["clean"]
    assert held(stage, vectors) == 0


@pytest.mark.case(105)
def test_clean_up_that_takes_longer_than_its_time_makes_the_job_wait_and_not_fail(
    bytewise: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage, goes_on, scrub = bytewise, threading.Event(), bytewise.shelf.adapter.scrub
    vectors = filled(stage.shelf)
    stage.engine = replace(stage.engine, budgets=replace(stage.engine.budgets, lease=timedelta(seconds=0.3)))

    def slow() -> ScrubReport:
        stage.shelf.clock.at += timedelta(minutes=5)  # the time of a call is over, and it is not back
        assert goes_on.wait(20)
        return scrub()

    job = stage.file(by_key())
    monkeypatch.setattr(stage.shelf.adapter, "scrub", slow)
    stage.run()
    view = stage.view(job)
    assert (view.state, view.last_error, view.waits_for_a_person) == (
        JobState.DERIVED_CLEANUP,
        "deadline_passed",
        False,
    )
    goes_on.set()
    monkeypatch.setattr(stage.shelf.adapter, "scrub", scrub)
    stage.take_over()
    stage.run()
    assert stage.ended(job) == ERASED
    assert held(stage, vectors) == 0
