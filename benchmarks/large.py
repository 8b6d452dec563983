"""One subject with very many facts, forgotten by the real engine: how long each phase takes, and how much memory.

    PYTHONPATH=. .venv/bin/python benchmarks/large.py [--facts 1000000]

It prints one JSON object. `seconds` is the time of each phase as a whole, `adapters` the part of it that was
spent inside the adapters' own calls; the rest is the engine's. `peak_mib` is over what the process had before.
"""

from __future__ import annotations

import argparse
import json
import resource
import sqlite3
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import structlog

from adapters.memory import open_engine
from orchestrator import EraseOrder, Reason, Scope, Selector, SelectorKind, StorageAdapter, Target, bootstrap
from orchestrator.domain.states import JobState
from orchestrator.initialise import initialise
from orchestrator.service.accept import Request, accept
from orchestrator.service.run_batch import Engine, run_batch
from orchestrator.store.migrate import upgrade
from tests.servers import fake_redis

SOURCES = 1_000
PROJECTS = 10
ANSWERS = 5
WHO = Scope(tenant="acme", user="anna", project="p-0")
NEIGHBOUR = Scope(tenant="acme", user="berta", project="p-0")
MIB = 2**20
BUILD = """
INSERT INTO tenant_positions VALUES ('acme', :sources + 1);
WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < :sources)
  INSERT INTO accepted_sources
  SELECT 'acme', 'turn-' || i, 'anna', 'p-' || (i % :projects), 'user_message', i + 1, 0 FROM n;
INSERT INTO accepted_sources VALUES ('acme', 'turn-of-berta', 'berta', 'p-0', 'user_message', :sources + 1, 0);
WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < :facts)
  INSERT INTO facts SELECT 'acme', 'anna', 'p-' || (i % :projects), 'key-' || i, 1, lower(hex(randomblob(16))),
    'What was said in line ' || i || ' of many', 'turn-' || (i % :sources), 1, 9e999, 1, 'live' FROM n;
INSERT INTO facts
  VALUES ('acme', 'berta', 'p-0', 'seat', 1, 'of-berta', 'The aisle', 'turn-of-berta', 1, 9e999, 1, 'live');
INSERT INTO fact_revisions SELECT DISTINCT tenant, user_id, project, 1 FROM facts;
"""


def build(file: Path, facts: int) -> None:
    """Write the facts by SQL alone: the library would take a transaction for each."""
    engine = open_engine(f"sqlite:///{file}")
    engine.connect().close()  # makes the tables
    engine.dispose()
    numbers = {":sources": str(SOURCES), ":projects": str(PROJECTS), ":facts": str(facts)}
    script = BUILD
    for name, number in numbers.items():
        script = script.replace(name, number)
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.executescript(f"BEGIN; {script} COMMIT; PRAGMA wal_checkpoint(TRUNCATE);")


@contextmanager
def deployment(folder: Path, url: str) -> Iterator[tuple[bootstrap.Control, Engine]]:
    file = folder / "expunge.toml"
    file.write_text(file.read_text().replace("redis://127.0.0.1:0/0", url))
    control = bootstrap.open_control(folder)
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())  # a line for each page would only be noise
    upgrade(control.database)
    engine = bootstrap.open_engine(control)
    try:
        yield control, engine
    finally:
        for adapter in engine.adapters.values():
            adapter.close()
        control.close()


def time_calls(adapter: StorageAdapter, spent: dict[str, float], pages: dict[str, int]) -> None:
    """Note how long each verb of an adapter takes, and how many pages it is asked for."""

    def timed(verb: str, call: Callable[[Sequence[EraseOrder]], Any]) -> Callable[[Sequence[EraseOrder]], Any]:
        def run(orders: Sequence[EraseOrder]) -> Any:  # noqa: ANN401 - each verb has an answer of its own
            began = time.perf_counter()
            try:
                return call(orders)
            finally:
                spent[verb] += time.perf_counter() - began
                pages[f"{adapter.name}.{verb}"] += len(orders)

        return run

    for verb in ("revoke", "find", "erase", "verify"):
        if (call := getattr(adapter, verb, None)) is not None:
            vars(adapter)[verb] = timed(verb, call)


def resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / MIB


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(facts: int, folder: Path) -> dict[str, object]:
    seconds, spent, pages = defaultdict[str, float](float), defaultdict[str, float](float), defaultdict[str, int](int)
    peaks: dict[str, float] = {}
    initialise(folder)
    build(folder / "memory.db", facts)
    with fake_redis() as url, deployment(folder, url) as (control, engine):
        memory: Any = engine.adapters["memory"]
        cache: Any = engine.adapters["cache"]
        for fact in range(ANSWERS):
            made_from = [Target(kind="fact", id=first_fact(folder / "memory.db", fact), version=1)]
            assert cache.answers.put(WHO, f"question {fact}", "an answer", made_from, 1)
        for adapter in engine.adapters.values():
            time_calls(adapter, spent, pages)
        before, began = resident(), time.perf_counter()
        everything = Scope(tenant=WHO.tenant, user=WHO.user)
        asked = Request(
            scope=everything,
            selector=Selector(kind=SelectorKind.SUBJECT),
            reason=Reason.USER_REQUEST,
            requested_by="benchmark",
        )
        job = str(accept(asked, control.acceptance)[0])
        while due := control.ledger.due(list(engine.adapters)):
            name, phase = due[0]
            start = time.perf_counter()
            run_batch(engine, name, phase)
            seconds[phase.value] += time.perf_counter() - start
            peaks[phase.value] = max(peaks.get(phase.value, 0.0), peak() - before)
        control.ledger.sweep()
        total = time.perf_counter() - began
        assert control.ledger.job(job).state is JobState.COMPLETED
        assert [fact.key for fact in memory.store.current(NEIGHBOUR)] == ["seat"]
        assert [cache.answers.get(WHO, f"question {n}") for n in range(ANSWERS)] == [None] * ANSWERS
    return {
        "facts": facts,
        "seconds": {phase: round(took, 2) for phase, took in seconds.items()},
        "adapters": {verb: round(took, 2) for verb, took in spent.items()},
        "pages": dict(pages),
        "total_seconds": round(total, 2),
        "peak_mib": round(peak() - before, 1),
        "peak_mib_until": {phase: round(most, 1) for phase, most in peaks.items()},
        "targets_per_second": round(facts / total),
    }


def first_fact(file: Path, offset: int) -> str:
    with closing(sqlite3.connect(file)) as connection:
        query = "SELECT fact_id FROM facts WHERE user_id = 'anna' AND project = 'p-0' LIMIT 1 OFFSET ?"
        (found,) = connection.execute(query, (offset,)).fetchone()
    return str(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--facts", type=int, default=1_000_000)
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(measure(parser.parse_args().facts, Path(folder) / "state"), indent=2))


if __name__ == "__main__":
    main()
