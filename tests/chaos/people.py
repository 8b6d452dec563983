"""Whose data lies in the stores, and what an oracle says afterwards that reads only stores and ledger."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from contextlib import closing
from typing import Any

import psycopg

from orchestrator import Reason, Scope, Selector, SelectorKind, Target
from orchestrator.service.accept import Request, accept_all
from tests.chaos.setups import Deployment

KEYS = ("passport", "theme")
MOVES = ["requested", "source_revoked", "derived_cleanup", "verified", "completed"]
_FACTS = "SELECT tenant, user_id, key, version, fact_id, value, active FROM facts"
Raw = dict[Any, Any]


def scope(n: int, tenant: str = "tenant-a") -> Scope:
    return Scope(tenant=tenant, user=f"user-{n}", project="trips")


def populate(stage: Deployment, first: int, count: int) -> None:
    """Give users a fact that will go, one that stays and a cached answer of each; some live in two tenants."""
    for n in range(first, first + count):
        _remember(stage, scope(n))
        if n % 10 == 0:
            _remember(stage, scope(n, "tenant-b"))


def _remember(stage: Deployment, whose: Scope) -> None:
    store = stage.memory.store
    for key in KEYS:
        source = f"{whose.user}/{key}"
        store.register_source(whose, source)
        store.put(whose, key, f"{key} of somebody", source, user_statement=True)
    revision = store.revision(whose)
    for fact in store.current(whose):
        origin = [Target(kind="fact", id=fact.id, version=fact.version)]
        assert stage.cache.answers.put(whose, f"What is my {fact.key}?", fact.value, origin, revision)


def file(stage: Deployment, first: int, count: int) -> list[str]:
    """File a request for each user's passport."""
    selector = Selector(kind=SelectorKind.KEY, value="passport")
    asked = [
        Request(scope=scope(n), selector=selector, reason=Reason.USER_REQUEST, requested_by="tester")
        for n in range(first, first + count)
    ]
    return [str(job) for job, _ in accept_all(asked, stage.control.acceptance)]


def raw(stage: Deployment) -> Raw:
    """Read every record of both stores, by none of the product's code."""
    client: Any = stage.cache.client()
    found: Raw = {key: client.hgetall(key) for key in client.scan_iter() if client.type(key) == b"hash"}
    found |= {row[:4]: tuple(row) for row in _facts(stage)}
    return found


def _facts(stage: Deployment) -> list[Any]:
    url = _memory_url(stage)
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(stage.state / "memory.db")) as connection:
            return connection.execute(_FACTS).fetchall()
    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        return connection.execute(_FACTS).fetchall()


def _memory_url(stage: Deployment) -> str:
    return str(stage.control.settings.adapters["memory"]["url"])


def rows(stage: Deployment, query: str) -> list[Any]:
    with stage.control.database.begin() as connection:
        return list(connection.exec_driver_sql(query).all())


def ended(stage: Deployment) -> bool:
    """Tell whether every job has ended or waits for a person."""
    open_jobs = rows(stage, "SELECT id FROM deletion_jobs WHERE state NOT IN ('completed', 'cancelled')")
    waiting = "SELECT count(*) FROM deletion_units WHERE status IN ('pending', 'running') AND next_attempt_at_us < 4e15"
    return not open_jobs or rows(stage, waiting)[0][0] == 0


def judge(stage: Deployment, before: Raw, jobs: int, kills: int) -> dict[str, int]:
    """Hold stores and ledger against what must be true; give counts. Raises `AssertionError` for what is false."""
    states = Counter(row[0] for row in rows(stage, "SELECT state FROM deletion_jobs"))
    assert states == {"completed": jobs}, f"lost: {states}"
    moves = "SELECT job_id, to_state FROM job_transitions ORDER BY job_id, at_us"
    by_job: dict[str, list[str]] = {}
    for job, state in rows(stage, moves):
        by_job.setdefault(job, []).append(state)
    illegal = [job for job, told in by_job.items() if sorted(told, key=MOVES.index) != MOVES]
    assert not illegal, f"illegal: {len(illegal)}"
    per_unit = Counter(row[0] for row in rows(stage, "SELECT unit_id FROM deletion_receipts"))
    twice = [unit for unit, count in per_unit.items() if count > 1]
    done = {row[0] for row in rows(stage, "SELECT id FROM deletion_units WHERE phase <> 'find' AND status = 'done'")}
    assert not twice, f"twice: {len(twice)}"
    assert done == set(per_unit), "a finished unit without a receipt, or a receipt of an unfinished one"
    # A unit is called again only where a process has died with it, and always under the same key.
    most = rows(stage, "SELECT max(fence) FROM deletion_units")[0][0]
    failures = rows(stage, "SELECT unit_id, count(*) FROM unit_attempts GROUP BY unit_id")
    assert most <= 1 + kills + max((count for _, count in failures), default=0), f"{most} calls of one unit"
    after = raw(stage)
    gone = before.keys() - after.keys()
    facts = {key for key in gone if isinstance(key, tuple)}
    assert {(key[0], key[2]) for key in facts} == {("tenant-a", "passport")}
    assert len(facts) == len(gone - facts) == jobs, "targets are left, or a neighbour is gone"
    assert {before[key][b"answer"] for key in gone - facts} == {b"passport of somebody"}
    assert {k: after[k] for k in before.keys() - gone} == {k: before[k] for k in before.keys() - gone}, "neighbours"
    assert after.keys() <= before.keys(), "something came back"
    again = sum(count for _, count in failures)
    return {
        "jobs": jobs,
        "receipts": len(per_unit),
        "units": len(done),
        "lost": 0,
        "twice": 0,
        "illegal": 0,
        "repeats": again,
    }


def summary(facts: dict[str, Any]) -> str:
    return json.dumps(facts, separators=(", ", ": "))
