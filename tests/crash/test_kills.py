"""A hundred jobs while the worker is killed again and again: nothing lost, nothing twice, neighbours intact.

The judge reads only the stores and the ledger; kills are counted from the exit status of
processes that had a crash point set.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import signal
import sqlite3
import subprocess
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from adapters.cache import CacheAdapter
from adapters.demo.processes import Processes, wait_for
from adapters.memory import MemoryAdapter
from orchestrator import Reason, Scope, Selector, SelectorKind, Target, open_adapter
from orchestrator.bootstrap import Control, initialise, open_control
from orchestrator.domain.codes import CrashPoint
from orchestrator.service.accept import Request, accept
from orchestrator.store.migrate import upgrade

JOBS = 100
KILLS = 20
BETWEEN_EFFECT_AND_COMMIT = 5
SEED = 20261130
POINTS = [
    CrashPoint.AFTER_EFFECT,
    CrashPoint.BEFORE_COMMIT,
    CrashPoint.AFTER_CLAIM,
    CrashPoint.BEFORE_CALL,
    CrashPoint.AFTER_EFFECT,
    CrashPoint.AFTER_COMMIT,
]


def has_ended(process: subprocess.Popen[bytes]) -> bool:
    return process.poll() is not None


def scope(n: int, tenant: str = "tenant-a") -> Scope:
    return Scope(tenant=tenant, user=f"user-{n}", project="trips")


def remember(memory: MemoryAdapter, cache: CacheAdapter, whose: Scope) -> None:
    """Give a user a fact that will go, one that stays, and a cached answer of each."""
    for key in ("passport", "theme"):
        source = f"{whose.user}/{key}"
        memory.store.register_source(whose, source)
        memory.store.put(whose, key, f"{key} of somebody", source, user_statement=True)
    revision = memory.store.revision(whose)
    for fact in memory.store.current(whose):
        origin = [Target(kind="fact", id=fact.id, version=fact.version)]
        assert cache.answers.put(whose, f"What is my {fact.key}?", fact.value, origin, revision)


def raw(state: Path, cache: CacheAdapter) -> dict[Any, Any]:
    """Read every record of both stores, not through their libraries."""
    client: Any = cache.client()
    found: dict[Any, Any] = {key: client.hgetall(key) for key in client.scan_iter() if client.type(key) == b"hash"}
    with contextlib.closing(sqlite3.connect(state / "memory.db")) as connection:
        for row in connection.execute("SELECT tenant, user_id, key, version, fact_id, value, active FROM facts"):
            found[row[:4]] = row
    return found


def configure(state: Path) -> None:
    initialise(state)
    path = state / "expunge.toml"
    text = path.read_text().replace('lease      = "2s"', 'lease      = "1s"\nbatch      = 4')
    assert "batch" in text
    path.write_text(text)


def file_all(control: Control) -> list[str]:
    return [
        str(
            accept(
                Request(
                    scope=scope(n),
                    selector=Selector(kind=SelectorKind.KEY, value="passport"),
                    reason=Reason.USER_REQUEST,
                    requested_by="tester",
                ),
                control.acceptance,
            )[0]
        )
        for n in range(JOBS)
    ]


@pytest.mark.timeout(300)
def test_hundred_jobs_survive_twenty_kills(tmp_path: Path) -> None:
    rng = random.Random(SEED)  # noqa: S311 - a schedule, not a secret
    with Processes(tmp_path) as processes:
        configure(processes.state)
        control = open_control(processes.state)
        upgrade(control.database)
        processes.start("up", "--workers", "0")
        wait_for("the cache", (processes.state / "cache.port").exists)
        memory, cache = open_adapter(processes.state, "memory"), open_adapter(processes.state, "cache")
        assert isinstance(memory, MemoryAdapter)
        assert isinstance(cache, CacheAdapter)
        for n in range(JOBS):
            remember(memory, cache, scope(n))
            if n % 10 == 0:
                remember(memory, cache, scope(n, "tenant-b"))
        before = raw(processes.state, cache)
        jobs = file_all(control)

        kills: Counter[str] = Counter()
        for point in itertools.islice(itertools.cycle(POINTS), KILLS + 4):
            worker = processes.start("worker", crash_at=f"{point}:{rng.randint(1, 3)}")
            wait_for("the crash", partial(has_ended, worker))
            assert worker.returncode == -signal.SIGKILL
            kills[point] += 1
        assert any(control.ledger.job(job).state != "completed" for job in jobs), "the kills came too late to tell"
        processes.start("worker")
        end = time.monotonic() + 120
        while not all((view := control.ledger.job(job)).state == "completed" or view.parked for job in jobs):
            assert time.monotonic() < end, "jobs are stuck"
            time.sleep(0.2)

        after = raw(processes.state, cache)
        with control.database.begin() as connection:
            states = Counter(connection.exec_driver_sql("SELECT state FROM deletion_jobs").scalars())
            per_unit = Counter(connection.exec_driver_sql("SELECT unit_id FROM deletion_receipts").scalars())
            finished = connection.exec_driver_sql(
                "SELECT count(*) FROM deletion_units WHERE phase <> 'find' AND status = 'done'"
            ).scalar_one()
            erased = connection.exec_driver_sql(
                "SELECT adapter, sum(erased + already_absent), sum(already_absent) FROM deletion_receipts "
                "WHERE phase = 'erase' GROUP BY adapter"
            ).all()
        memory.close()
        cache.close()
        control.close()

    assert kills.total() >= KILLS
    assert kills[CrashPoint.AFTER_EFFECT] + kills[CrashPoint.BEFORE_COMMIT] >= BETWEEN_EFFECT_AND_COMMIT
    assert states == {"completed": JOBS}
    assert set(per_unit.values()) == {1}
    assert len(per_unit) == finished == 5 * JOBS
    assert {row[0]: row[1] for row in erased} == {"memory": JOBS, "cache": JOBS}
    gone = before.keys() - after.keys()
    facts = {key for key in gone if isinstance(key, tuple)}
    assert {(key[0], key[2]) for key in facts} == {("tenant-a", "passport")}
    assert len(facts) == len(gone - facts) == JOBS
    assert {before[key][b"answer"] for key in gone - facts} == {b"passport of somebody"}
    assert {key: after[key] for key in before.keys() - gone} == {key: before[key] for key in before.keys() - gone}
    assert len(after) == 2 * 2 * (JOBS + JOBS // 10) - 2 * JOBS
