"""The crash matrix: a process is killed at each named point, in each place that reaches it, and nothing is lost.

    python tests/chaos/matrix.py [--setup sqlite-filesystem ...]

Each cell files jobs of its own and lets one process die; whatever it leaves behind, the next
cell's process meets. At the end a process that nobody kills finishes, and an oracle that reads
only stores and ledger judges every cell. Exit status 1 if any cell is false.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from orchestrator.domain.codes import CrashPoint
from tests.chaos.chaos import finish
from tests.chaos.people import MOVES, file, judge, populate, raw, rows
from tests.chaos.setups import NAMES, Deployment, deployment

OF_A_BATCH = (
    CrashPoint.AFTER_CLAIM,
    CrashPoint.AFTER_ORDERS,
    CrashPoint.BEFORE_CALL,
    CrashPoint.AFTER_EFFECT,
    CrashPoint.BEFORE_COMMIT,
    CrashPoint.AFTER_COMMIT,
)
OF_A_DISPATCHER = (
    CrashPoint.BEFORE_ANNOUNCE,
    CrashPoint.AFTER_ANNOUNCE,
    CrashPoint.BEFORE_SWEEP_COMMIT,
    CrashPoint.AFTER_SWEEP,
)
PLACES = ("memory.revoke", "cache.find", "cache.erase", "memory.erase", "cache.verify")
JOBS = 3
PATIENCE = 30.0


@dataclass(frozen=True)
class Cell:
    """Who dies, where, and in which place."""

    process: str
    point: CrashPoint
    place: str

    def __str__(self) -> str:
        return f"{self.process:10} {self.point:20} {self.place}"


CELLS = [
    *(Cell("worker", point, place) for point in OF_A_BATCH for place in PLACES),
    *(Cell("child", point, "cache.erase") for point in OF_A_BATCH),
    *(Cell("dispatcher", point, "") for point in OF_A_DISPATCHER),
    Cell("request", CrashPoint.AFTER_ACCEPT, ""),
]


def run(name: str, folder: Path) -> list[str]:
    """Run every cell on one set-up; give a line for each."""
    with deployment(name, folder) as stage:
        populate(stage, 0, JOBS * len(CELLS))
        before = raw(stage)
        dispatcher = stage.processes.start("dispatcher")
        filed: dict[Cell, list[str]] = {}
        for n, cell in enumerate(CELLS):
            if cell.process == "dispatcher":
                dispatcher.terminate()
                dispatcher.wait(PATIENCE)
            filed[cell] = _kill(stage, cell, JOBS * n)
            if cell.process == "dispatcher":
                dispatcher = stage.processes.start("dispatcher")
        stage.processes.start("worker")
        finish(stage)
        judge(stage, before, JOBS * len(CELLS), kills=len(CELLS))
        return [f"{name:22} {cell!s:48} {_count(stage, jobs)}" for cell, jobs in filed.items()]


def _count(stage: Deployment, jobs: list[str]) -> str:
    """Count of one cell's jobs what is lost, what was written twice and which moves are illegal."""
    mine = f"job_id IN ({', '.join(repr(job) for job in jobs)})"
    completed = rows(stage, f"SELECT count(*) FROM job_transitions WHERE to_state = 'completed' AND {mine}")[0][0]  # noqa: S608
    receipts = rows(stage, f"SELECT count(*), count(DISTINCT unit_id) FROM deletion_receipts WHERE {mine}")[0]  # noqa: S608
    moves = rows(stage, f"SELECT count(*) FROM job_transitions WHERE {mine}")[0][0]  # noqa: S608
    lost, twice, illegal = len(jobs) - completed, receipts[0] - receipts[1], moves - len(MOVES) * completed
    assert (lost, twice, illegal) == (0, 0, 0)
    return f"died; {completed} of {len(jobs)} completed: {lost} lost, {twice} twice, {illegal} illegal"


def _kill(stage: Deployment, cell: Cell, first: int) -> list[str]:
    """File a cell's jobs and let its process die; give the jobs."""
    at = f"{cell.point}" + (f"@{cell.place}" if cell.place else "")
    if cell.process == "request":
        jobs = file(stage, first, JOBS - 1)
        known = set(jobs)
        words = (
            "--tenant",
            "tenant-a",
            "--user",
            f"user-{first + JOBS - 1}",
            "--project",
            "trips",
            "--key",
            "passport",
        )
        process = stage.processes.start("request", *words, "--reason", "user_request", crash_at=at)
        assert process.wait(PATIENCE) == -signal.SIGKILL, cell
        newest = rows(stage, "SELECT id FROM deletion_jobs ORDER BY id DESC LIMIT 3")
        (mine,) = {row[0] for row in newest} - known - {row[0] for row in newest[2:] if row[0] not in known}
        return [*jobs, mine]
    jobs = file(stage, first, JOBS)
    match cell.process:
        case "child":
            marker = stage.state / "crashed"
            marker.unlink(missing_ok=True)
            parent = stage.processes.start("worker", "--pool", "prefork", "--concurrency", "1", crash_at=f"{at}!")
            until = time.monotonic() + PATIENCE
            while not marker.exists():
                assert time.monotonic() < until, f"{cell} did not come there"
                assert parent.poll() is None, f"{cell}: the parent ended"
                time.sleep(0.02)
            parent.kill()
            parent.wait()
        case role:
            process = stage.processes.start(role, crash_at=at)
            assert process.wait(PATIENCE) == -signal.SIGKILL, f"{cell} did not die there"
    return jobs


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--setup", nargs="*", default=[NAMES[0]], choices=NAMES)
    failed = False
    for name in parser.parse_args().setup:
        with tempfile.TemporaryDirectory() as folder:
            try:
                said = run(name, Path(folder))
            except pytest.skip.Exception as reason:
                said = [f"SKIPPED {name}: {reason}"]
            except (AssertionError, pytest.fail.Exception) as error:
                said, failed = [f"FAILED {name}: {error}"], True
        sys.stdout.write("\n".join(said) + "\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
