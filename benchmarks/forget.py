"""How the engine compares with the script that people would write by hand: medians of three, as a ratio in one run.

Floor: for each subject one transaction that deletes its facts in SQLite, and one UNLINK of its
cached answers. Product: the same subjects through accept, revoke, find, erase, verify and
receipts, in one process without a broker.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import structlog

from adapters.cache import CacheAdapter
from adapters.memory import MemoryAdapter
from orchestrator import Reason, Scope, Selector, SelectorKind, Target
from orchestrator.bootstrap import Control, initialise, open_control, open_engine
from orchestrator.service.accept import Request, accept
from orchestrator.service.drain import drain
from orchestrator.service.run_batch import Engine
from orchestrator.store.migrate import upgrade
from tests.servers import fake_redis

FACTS = 3


def subject(n: int) -> Scope:
    return Scope(tenant="bench", user=f"user-{n}", project="p")


def fill(engine: Engine, count: int) -> None:
    memory, cache = engine.adapters["memory"], engine.adapters["cache"]
    assert isinstance(memory, MemoryAdapter)
    assert isinstance(cache, CacheAdapter)
    for n in range(count):
        whose = subject(n)
        memory.store.register_source(whose, f"{whose.user}/turn")
        for key in range(FACTS):
            memory.store.put(whose, f"key-{key}", f"fact {key} of {n}", f"{whose.user}/turn", user_statement=True)
        revision = memory.store.revision(whose)
        for fact in memory.store.current(whose):
            origin = [Target(kind="fact", id=fact.id, version=fact.version)]
            cache.answers.put(whose, fact.key, fact.value, origin, revision=revision)


def product(control: Control, engine: Engine, count: int) -> float:
    began = time.perf_counter()
    for n in range(count):
        selector = Selector(kind=SelectorKind.SUBJECT)
        asked = Request(scope=subject(n), selector=selector, reason=Reason.OPERATOR, requested_by="bench")
        accept(asked, control.acceptance)
    while due := control.ledger.due(list(engine.adapters)):
        drain(engine, *due[0])
    took = time.perf_counter() - began
    with control.database.begin() as connection:
        states = set(connection.exec_driver_sql("SELECT state FROM deletion_jobs").scalars())
    assert states == {"completed"}
    return took


def floor(folder: Path, engine: Engine, count: int) -> float:
    cache = engine.adapters["cache"]
    assert isinstance(cache, CacheAdapter)
    client: Any = cache.client()
    held: dict[bytes, list[bytes]] = {}
    for key in client.scan_iter(match="*:a:*"):
        held.setdefault(key.split(b":a:")[0], []).append(key)
    connection = sqlite3.connect(folder / "memory.db", isolation_level=None)
    connection.executescript("PRAGMA synchronous=FULL; PRAGMA secure_delete=ON;")
    began = time.perf_counter()
    for n, keys in zip(range(count), held.values(), strict=True):
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("DELETE FROM facts WHERE tenant = 'bench' AND user_id = ?", (f"user-{n}",))
        connection.execute("COMMIT")
        client.unlink(*keys)
    took = time.perf_counter() - began
    connection.close()
    return took


def once(count: int, *, by_hand: bool) -> float:
    with tempfile.TemporaryDirectory() as name, fake_redis() as url:
        folder = Path(name) / "state"
        initialise(folder)
        path = folder / "expunge.toml"
        path.write_text(path.read_text().replace("redis://127.0.0.1:0/0", url))
        control = open_control(folder)
        structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
        upgrade(control.database)
        engine = open_engine(control)
        try:
            fill(engine, count)
            return floor(folder, engine, count) if by_hand else product(control, engine, count)
        finally:
            for adapter in engine.adapters.values():
                adapter.close()
            control.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--subjects", type=int, default=300)
    count = parser.parse_args().subjects
    runs = [(once(count, by_hand=True), once(count, by_hand=False)) for _ in range(3)]
    by_hand, ours = (statistics.median(column) for column in zip(*runs, strict=True))
    answer = {
        "subjects": count,
        "ratio_to_floor": {"sqlite+fakeredis": round(by_hand / ours, 3)},
        "floor_jobs_per_second": round(count / by_hand),
        "jobs_per_second": round(count / ours),
    }
    print(json.dumps(answer, indent=2))


if __name__ == "__main__":
    main()
