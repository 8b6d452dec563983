"""A hundred jobs while the worker is killed again and again: nothing lost, nothing twice, neighbours intact.

The judge reads only the stores and the ledger. A kill is counted at the crash point that the
process was told to die at, once it has died of SIGKILL. Which claims it took with it is read
from the ledger: one batch at a time, because these workers have one thread.
"""

from __future__ import annotations

import contextlib
import signal
import sqlite3
import subprocess
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from adapters.cache import CacheAdapter
from adapters.demo.processes import Processes, wait_for
from adapters.memory import MemoryAdapter
from orchestrator import Reason, Scope, Selector, SelectorKind, Target, open_adapter
from orchestrator.bootstrap import Control, open_control
from orchestrator.domain.codes import CrashPoint
from orchestrator.initialise import initialise
from orchestrator.service.accept import Request, accept
from orchestrator.store.migrate import upgrade

JOBS = 100
KILLS = 20
BETWEEN_EFFECT_AND_COMMIT = 5
IN_BETWEEN = {CrashPoint.AFTER_EFFECT, CrashPoint.BEFORE_COMMIT}
ERASES = ("memory.erase", "cache.erase")
NOT_OF_A_WORKER = {
    CrashPoint.AFTER_ACCEPT,
    CrashPoint.BEFORE_ANNOUNCE,
    CrashPoint.AFTER_ANNOUNCE,
    CrashPoint.BEFORE_SWEEP_COMMIT,
    CrashPoint.AFTER_SWEEP,
}
Claims = set[tuple[str, int]]


class Kill(NamedTuple):
    point: CrashPoint
    place: str
    passing: int

    def __str__(self) -> str:
        return f"{self.point}@{self.place}:{self.passing}"


# Revokes are over first: the kills follow the jobs through their phases.
SCHEDULE = [
    Kill(CrashPoint.AFTER_EFFECT, "memory.revoke", 2),
    Kill(CrashPoint.BEFORE_COMMIT, "memory.revoke", 1),
    Kill(CrashPoint.AFTER_EFFECT, "cache.erase", 2),
    Kill(CrashPoint.BEFORE_COMMIT, "memory.erase", 1),
    Kill(CrashPoint.AFTER_COMMIT, "cache.find", 2),
    Kill(CrashPoint.AFTER_CLAIM, "cache.erase", 1),
    Kill(CrashPoint.BEFORE_COMMIT, "cache.erase", 1),
    Kill(CrashPoint.AFTER_EFFECT, "memory.erase", 2),
    Kill(CrashPoint.AFTER_ORDERS, "memory.erase", 1),
    Kill(CrashPoint.AFTER_EFFECT, "cache.erase", 1),
    Kill(CrashPoint.BEFORE_CALL, "cache.erase", 2),
    Kill(CrashPoint.BEFORE_COMMIT, "memory.erase", 2),
    Kill(CrashPoint.AFTER_COMMIT, "memory.erase", 1),
    Kill(CrashPoint.BEFORE_COMMIT, "cache.erase", 2),
    Kill(CrashPoint.AFTER_EFFECT, "memory.erase", 1),
    Kill(CrashPoint.BEFORE_COMMIT, "cache.verify", 1),
    Kill(CrashPoint.AFTER_EFFECT, "cache.erase", 1),
    Kill(CrashPoint.BEFORE_COMMIT, "memory.erase", 1),
    Kill(CrashPoint.AFTER_CLAIM, "memory.verify", 1),
    Kill(CrashPoint.AFTER_COMMIT, "cache.verify", 1),
]


class Killed(NamedTuple):
    """A kill that happened, and the claims that died with it."""

    kill: Kill
    claims: Claims


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
    text = text.replace('"physical"', '"logical"')  # bytes are looked at in the random runs (tests/chaos)
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


def rows(control: Control, query: str) -> list[Any]:
    with control.database.begin() as connection:
        return list(connection.exec_driver_sql(query).all())


def unanswered(control: Control, place: str) -> Claims:
    """Name the claims of a place that run, and those whose lease has ended: unit and fence."""
    adapter, phase = place.split(".")
    query = f"""
        SELECT id, fence FROM deletion_units WHERE adapter = '{adapter}' AND phase = '{phase}' AND status = 'running'
        UNION
        SELECT a.unit_id, a.fence FROM unit_attempts a JOIN deletion_units u ON u.id = a.unit_id
        WHERE u.adapter = '{adapter}' AND u.phase = '{phase}' AND a.error_code = 'lease_ended'
    """  # noqa: S608 - names of our own schedule
    return {(unit, fence) for unit, fence in rows(control, query)}


def kill(processes: Processes, control: Control, told: Kill) -> Killed:
    """Let a worker die where it was told to."""
    before = unanswered(control, told.place)
    worker = processes.start("worker", "--concurrency", "1", crash_at=str(told))
    wait_for(f"the crash {told}", partial(has_ended, worker))
    assert worker.returncode == -signal.SIGKILL, told
    return Killed(told, unanswered(control, told.place) - before)


def finish(processes: Processes, control: Control, jobs: list[str]) -> None:
    """Let a worker that nobody kills do what is left."""
    processes.start("worker")
    end = time.monotonic() + 120
    while not all((view := control.ledger.job(job)).state == "completed" or view.parked for job in jobs):
        assert time.monotonic() < end, "jobs are stuck"
        time.sleep(0.2)


def check_kills(killed: list[Killed]) -> None:
    """Show that the kills fell where they were to fall."""
    counted = Counter((k.kill.point, k.kill.place) for k in killed)
    assert counted.total() >= KILLS
    assert {point for point, _ in counted} == set(CrashPoint) - NOT_OF_A_WORKER
    for place in ERASES:
        assert all(counted[point, place] for point in IN_BETWEEN), place
    between = sum(counted[point, place] for point in IN_BETWEEN for place in ERASES)
    assert between >= BETWEEN_EFFECT_AND_COMMIT
    for each in killed:
        # A commit that was done leaves no claim; any other crash leaves its whole batch.
        assert bool(each.claims) == (each.kill.point is not CrashPoint.AFTER_COMMIT), each.kill


def check_receipts(control: Control, killed: list[Killed]) -> None:
    """Show that what died between effect and commit was met as absent, and nothing that no claim was lost of."""
    cut = {unit for k in killed if k.kill.place in ERASES and k.kill.point in IN_BETWEEN for unit, _ in k.claims}
    query = "SELECT unit_id, adapter, expected, erased, already_absent FROM deletion_receipts WHERE phase = 'erase'"
    receipts = rows(control, query)
    absent = {row.unit_id: row.adapter for row in receipts if row.already_absent > 0}
    assert cut <= absent.keys()
    assert {absent[unit] for unit in cut} == {"memory", "cache"}
    lost = rows(control, "SELECT unit_id FROM unit_attempts WHERE error_code = 'lease_ended'")
    assert absent.keys() <= {row.unit_id for row in lost}
    assert {(row.expected, row.erased + row.already_absent) for row in receipts} == {(1, 1)}
    assert Counter(row.adapter for row in receipts) == {"memory": JOBS, "cache": JOBS}


def check_ledger(control: Control) -> None:
    """Show that every job has ended, and that each unit has one receipt."""
    assert Counter(row[0] for row in rows(control, "SELECT state FROM deletion_jobs")) == {"completed": JOBS}
    per_unit = Counter(row[0] for row in rows(control, "SELECT unit_id FROM deletion_receipts"))
    done = rows(control, "SELECT count(*) FROM deletion_units WHERE phase <> 'find' AND status = 'done'")
    assert set(per_unit.values()) == {1}
    assert len(per_unit) == done[0][0] == 5 * JOBS


def check_stores(before: dict[Any, Any], after: dict[Any, Any]) -> None:
    """Show that each user's passport is gone, and that all the rest is as it was."""
    gone = before.keys() - after.keys()
    facts = {key for key in gone if isinstance(key, tuple)}
    assert {(key[0], key[2]) for key in facts} == {("tenant-a", "passport")}
    assert len(facts) == len(gone - facts) == JOBS
    assert {before[key][b"answer"] for key in gone - facts} == {b"passport of somebody"}
    assert {key: after[key] for key in before.keys() - gone} == {key: before[key] for key in before.keys() - gone}
    assert len(after) == 2 * 2 * (JOBS + JOBS // 10) - 2 * JOBS


@pytest.mark.timeout(300)
def test_hundred_jobs_survive_twenty_kills(tmp_path: Path) -> None:
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
        killed = [kill(processes, control, told) for told in SCHEDULE]
        assert any(control.ledger.job(job).state != "completed" for job in jobs), "the kills came too late to tell"
        finish(processes, control, jobs)

        check_kills(killed)
        check_ledger(control)
        check_receipts(control, killed)
        check_stores(before, raw(processes.state, cache))
        memory.close()
        cache.close()
        control.close()
