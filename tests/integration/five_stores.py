"""The stores of an assistant as they are, one engine over all of them, and the hands of a test on both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest

from adapters.backup import BackupAdapter
from adapters.cache import CacheAdapter
from adapters.drafts import DraftsAdapter
from adapters.memory import MemoryAdapter
from adapters.vector import Point, VectorAdapter, VectorIndex
from orchestrator import Reason, Scope, Selector, SelectorKind, Target, bootstrap
from orchestrator.domain.job import JobView
from orchestrator.initialise import initialise
from orchestrator.service.accept import Request, accept
from orchestrator.service.drain import drain
from orchestrator.service.run_batch import Engine
from orchestrator.store.migrate import upgrade
from tests.fakes import FakeClock
from tests.servers import fake_redis

NOW = datetime(2026, 10, 27, 3, tzinfo=UTC)
END = datetime(2026, 11, 27, 3, tzinfo=UTC)
ANNA = Scope(tenant="acme", user="anna", project="trips")
BERTA = replace(ANNA, user="berta")
SECRET, TURN_6 = "The passport number is P1234567.", "trip-planning/turn-6"
STORES = ("memory", "vector", "cache", "drafts", "backup")
SECTIONS = """
[adapters.vector]
required = true
url = "sqlite:///vectors.db"
dimensions = 4

[adapters.drafts]
required = true
url = "sqlite:///memory.db"

[adapters.backup]
required = true
manifest = "backups/manifest.json"
source = "memory.db"
"""


class Died(BaseException):
    """The process has died."""


@dataclass
class Five:
    """The stores of an assistant, each with its library, and the engine over all of them."""

    control: bootstrap.Control
    engine: Engine
    clock: FakeClock

    def __post_init__(self) -> None:
        adapters = self.engine.adapters
        self.memory, self.cache = cast("MemoryAdapter", adapters["memory"]), cast("CacheAdapter", adapters["cache"])
        self.drafts, self.backup = cast("DraftsAdapter", adapters["drafts"]), cast("BackupAdapter", adapters["backup"])
        self.vector = cast("VectorAdapter", adapters["vector"])
        self.index: VectorIndex = self.vector.index(self.memory.masters)

    def learn(self, who: Scope) -> Target:
        """Let a fact be told, and let each store have a copy that was made from it."""
        source = f"{who.user}/{TURN_6}"
        self.memory.store.register_source(who, source)
        version = self.memory.store.put(who, "passport", SECRET, source, user_statement=True)
        (fact,) = self.memory.store.current(who)
        made_from = Target(kind="fact", id=fact.id, version=version)
        assert self.enter(who, made_from, source) == 0
        assert self.fill(who, made_from)
        self.drafts.runtime.submit(who, "report-001")
        self.drafts.runtime.run(who, "report-001")
        return made_from

    def enter(self, who: Scope, made_from: Target, source: str) -> int:
        """Enter a vector; give how many the guard refused."""
        return self.index.put(who, [Point(made_from=made_from, source=source, vector=[1.0, 0.0, 0.0, 0.5])]).refused

    def fill(self, who: Scope, made_from: Target, revision: int | None = None) -> bool:
        """Fill the cache; tell whether it took the answer."""
        at = self.memory.store.revision_for_answers(who) if revision is None else revision
        return self.cache.answers.put(who, "Which passport?", SECRET, [made_from], at)

    def readable(self, who: Scope) -> list[str]:
        """Name the stores that still give something out that was made from the fact."""
        found = {
            "memory": self.memory.store.current(who),
            "vector": self.index.search(who, [1.0, 0.0, 0.0, 0.5]).hits,
            "cache": self.cache.answers.get(who, "Which passport?"),
            "drafts": self.rows("SELECT text FROM drafts WHERE user_id = ?", who.user),
        }
        return [name for name, given in found.items() if given]

    def rows(self, query: str, *given: str) -> Sequence[Any]:
        with self.memory.store._engine.connect() as connection:
            return connection.exec_driver_sql(query, given).all()

    def request(self, selector: Selector | None = None) -> str:
        selector = selector or Selector(kind=SelectorKind.SOURCE, value=f"anna/{TURN_6}")
        asked = Request(scope=ANNA, selector=selector, reason=Reason.USER_REQUEST, requested_by="tester")
        return str(accept(asked, self.control.acceptance)[0])

    def run(self) -> None:
        """Work off all that is due, and all that waits for its next attempt."""
        for _ in range(6):
            while due := self.control.ledger.due(list(self.engine.adapters)):
                drain(self.engine, *due[0])
            self.control.ledger.sweep()
            with self.control.database.begin() as connection:
                connection.exec_driver_sql(
                    "UPDATE deletion_units SET next_attempt_at_us = 0 WHERE status = 'pending' "
                    "AND next_attempt_at_us < 4000000000000000"
                )
                connection.exec_driver_sql("UPDATE adapter_health SET breaker = 'closed', open_until_us = NULL")

    def view(self, job: str) -> JobView:
        return self.control.ledger.job(job)

    def erases(self, job: str) -> dict[str, tuple[str, int]]:
        told = [r for r in self.control.ledger.receipts(job) if r.phase == "erase"]
        return {r.adapter: (r.outcome, r.erased) for r in told}


@pytest.fixture
def five(tmp_path: Path) -> Iterator[Five]:
    with fake_redis() as url, five_in(tmp_path / "state", url) as made:
        yield made


@contextmanager
def five_in(state: Path, redis_url: str) -> Iterator[Five]:
    """Open the five stores on a new state directory, with the answers of the cache in a Redis that runs."""
    initialise(state)
    file = state / "expunge.toml"
    text = file.read_text().replace("redis://127.0.0.1:0/0", redis_url).replace('"physical"', '"logical"')
    file.write_text(text + SECTIONS)
    clock = FakeClock(NOW)
    control = bootstrap.open_control(state, clock)
    upgrade(control.database)
    made = Five(control, bootstrap.open_engine(control), clock)
    try:
        yield made
    finally:
        for adapter in made.engine.adapters.values():
            adapter.close()
        control.close()
