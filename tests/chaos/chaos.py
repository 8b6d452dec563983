"""Random kills: workers and dispatchers die or are stopped past their lease while jobs come in.

    python tests/chaos/chaos.py --jobs 1000 --kills 100 --seed 7 [--setup sqlite-filesystem ...]

Exit status 1 if any set-up lost a job, did something twice, made an illegal move or touched a neighbour.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.chaos.people import ended, file, judge, populate, raw, rows, summary
from tests.chaos.setups import LEASE, NAMES, Deployment, deployment

POINTS = {
    "worker": ("after_claim", "after_orders", "before_call", "after_effect", "before_commit", "after_commit"),
    "dispatcher": ("before_announce", "after_announce", "before_sweep_commit", "after_sweep"),
}
PLACES = ("memory.revoke", "memory.find", "memory.erase", "memory.verify", "cache.find", "cache.erase", "cache.verify")
LONGEST = 240.0
LOG_LINES = 60


@dataclass
class Chaos:
    """One run: what was filed, who was killed, who was stopped."""

    stage: Deployment
    chance: random.Random
    jobs: int
    kills: int
    filed: int = 0
    killed: Counter[str] = field(default_factory=Counter)
    stops: int = 0

    def run(self) -> None:
        """Let workers and dispatchers die, one after the other, while jobs come in."""
        self.stage.processes.start("dispatcher")
        while self.killed.total() < self.kills or self.filed < self.jobs:
            self.file_some()
            role = "dispatcher" if self.chance.random() < 0.15 else "worker"
            self.kill(role)

    def file_some(self) -> None:
        count = min(max(1, round(2 * self.jobs / self.kills)), self.jobs - self.filed)
        file(self.stage, self.filed, count)
        self.filed += count

    def kill(self, role: str) -> None:
        """Start two that die at a random crash point, or at a random time where they do not come there."""
        victims = [(point, self.start(role, point)) for point in self.chance.choices(POINTS[role], k=2)]
        until = time.monotonic() + self.chance.uniform(2, 4)
        if self.chance.random() < 0.1:
            time.sleep(1.2)
            self.pause(victims[0][1])
        for point, process in victims:
            try:
                status = process.wait(max(0.05, until - time.monotonic()))
                self.killed[point] += 1
            except subprocess.TimeoutExpired:
                process.kill()
                status = process.wait()
                self.killed["at any time"] += 1
            assert status == -signal.SIGKILL, f"a {role} ended by itself: {status}"

    def start(self, role: str, point: str) -> subprocess.Popen[bytes]:
        place = f"@{self.chance.choice(PLACES)}" if role == "worker" else ""
        return self.stage.processes.start(role, crash_at=f"{point}{place}:{self.chance.randint(1, 3)}")

    def pause(self, process: subprocess.Popen[bytes]) -> None:
        """Stop a process past its lease and let it go on: what it then commits is stale."""
        process.send_signal(signal.SIGSTOP)
        time.sleep(LEASE * 1.5)
        process.send_signal(signal.SIGCONT)
        self.stops += 1


def run(name: str, folder: Path, *, jobs: int, kills: int, seed: int) -> dict[str, object]:
    """Run one set-up; give what the oracle counted."""
    began = time.monotonic()
    with deployment(name, folder, "logical") as stage:
        populate(stage, 0, jobs)
        before = raw(stage)
        # A schedule that its seed repeats is no secret.
        chaos = Chaos(stage, random.Random(seed), jobs, kills)  # noqa: S311
        chaos.run()
        for _ in range(2):
            stage.processes.start("worker")
        finish(stage)
        counted = judge(stage, before, jobs, kills + chaos.stops)
    seconds = round(time.monotonic() - began, 1)
    return {"setup": name, **counted, "kills": dict(chaos.killed), "stops": chaos.stops, "seconds": seconds}


def finish(stage: Deployment) -> None:
    """Wait for the end; what was parked because its workers died five times over is tried again, as a person would."""
    until = time.monotonic() + LONGEST
    while not _completed(stage):
        states = rows(stage, "SELECT state, count(*) FROM deletion_jobs GROUP BY state")
        assert time.monotonic() < until, f"stuck: {states}"
        if ended(stage):
            for (job,) in rows(stage, "SELECT DISTINCT job_id FROM deletion_units WHERE status = 'parked'"):
                stage.control.ledger.retry(job)
        time.sleep(0.2)


def _completed(stage: Deployment) -> bool:
    return bool(rows(stage, "SELECT count(*) FROM deletion_jobs WHERE state <> 'completed'")[0][0] == 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))  # noqa: S311 - printed below
    parser.add_argument("--setup", nargs="*", default=list(NAMES), choices=NAMES)
    asked = parser.parse_args()
    sys.stdout.write(f"seed {asked.seed}\n")
    failed = False
    for name in asked.setup:
        with tempfile.TemporaryDirectory() as folder:
            try:
                said = summary(run(name, Path(folder), jobs=asked.jobs, kills=asked.kills, seed=asked.seed))
            except pytest.skip.Exception as reason:
                said = f"SKIPPED {name}: {reason}"
            except (AssertionError, pytest.fail.Exception) as error:
                log = (Path(folder) / "processes.log").read_text(errors="replace").splitlines()
                odd = [line for line in log if '"level": "info"' not in line][-LOG_LINES:]
                said, failed = "\n".join([f"FAILED {name}: {error}", *odd]), True
        sys.stdout.write(said + "\n")
        sys.stdout.flush()
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
