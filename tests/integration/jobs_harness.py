"""A deployment as its configuration opens it, the memory store on either database, and the hands of a test on it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest
import redis
import sqlalchemy as sa

from adapters.cache import CacheAdapter
from adapters.memory import MemoryAdapter
from adapters.memory.chains import TaskScope
from orchestrator import Reason, Scope, Selector, SelectorKind, StorageAdapter, Target, bootstrap
from orchestrator.domain.codes import CrashPoint
from orchestrator.domain.job import JobView, Result
from orchestrator.domain.states import JobState
from orchestrator.initialise import initialise
from orchestrator.service.accept import Request, accept
from orchestrator.service.drain import drain
from orchestrator.service.run_batch import Engine
from orchestrator.store.migrate import upgrade
from tests.fakes import FakeClock
from tests.servers import fake_redis

ANNA = TaskScope("anna", "trips", "acme")
BERTA = TaskScope("berta", "trips", "acme")
TEXTS = {"passport": "The passport number is P1234567.", "seat": "Sits at the aisle.", "meal": "Eats fish."}
RENEWED = "The passport number is P7654321 by now."
SUBJECT = Selector(kind=SelectorKind.SUBJECT)


class Died(BaseException):
    """The process has died."""


@dataclass
class Deployment:
    control: bootstrap.Control
    engine: Engine
    clock: FakeClock

    @property
    def memory(self) -> MemoryAdapter:
        return cast("MemoryAdapter", self.engine.adapters["memory"])

    @property
    def cache(self) -> CacheAdapter:
        return cast("CacheAdapter", self.engine.adapters["cache"])

    def tell(self, who: TaskScope) -> dict[str, int]:
        """Let a user tell a fact and three memories, one of them corrected; the cache has an answer from each."""
        scope, chains = scope_of(who), self.memory.chains
        for name in ("turn-1", "turn-2"):
            self.memory.store.register_source(scope, f"{who.user}/{name}")
        self.memory.store.put(scope, "colour", "green", f"{who.user}/turn-1")
        ids = {
            name: chains.remember(who, "user" if name == "meal" else "task", text, f"{who.user}/turn-1")
            for name, text in TEXTS.items()
        }
        renewed = chains.correct(who, ids["passport"], RENEWED, f"{who.user}/turn-2")
        for name, chain in ids.items():
            made_from = [Target(kind="memory", id=str(chain), version=renewed if name == "passport" else chain)]
            revision = max(self.memory.store.revision(s) for s in (scope, replace(scope, project=None)))
            assert self.cache.answers.put(scope, name, f"so: {name}", made_from, revision)
        return ids

    def answers(self, who: TaskScope) -> list[str]:
        return [name for name in TEXTS if self.cache.answers.get(scope_of(who), name)]

    def texts(self, who: TaskScope) -> list[str]:
        rows = self.rows("SELECT user_id, text FROM memories ORDER BY id")
        return [text for user, text in rows if user == who.user]

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with self.memory.store._engine.begin() as connection:
            return [tuple(row) for row in connection.execute(sa.text(query))]

    def berta(self) -> list[tuple[Any, ...]]:
        facts = self.rows("SELECT * FROM facts ORDER BY fact_id")
        memories = self.rows("SELECT m.*, t.* FROM memories m JOIN memory_tenants t ON t.memory_id = m.id ORDER BY id")
        return [row for row in (*facts, *memories) if BERTA.user in row]

    def file(self, selector: Selector, project: str | None = None) -> str:
        scope = Scope(tenant=ANNA.tenant, user=ANNA.user, project=project)
        asked = Request(scope=scope, selector=selector, reason=Reason.USER_REQUEST, requested_by="tester")
        job, _ = accept(asked, self.control.acceptance)
        return str(job)

    def run(self) -> None:
        while due := self.control.ledger.due(list(self.engine.adapters)):
            drain(self.engine, *due[0])
        self.control.ledger.sweep()

    def view(self, job: str) -> JobView:
        return self.control.ledger.job(job)

    def ended(self, job: str) -> tuple[JobState, Result | None]:
        return self.view(job).state, self.view(job).result

    def die_once(self, at: str) -> None:
        """Let the process die once when an adapter has done its work and nobody has written it down."""
        left = [at]

        def crash(point: CrashPoint, where: str) -> None:
            if point is CrashPoint.AFTER_EFFECT and where in left:
                left.remove(where)
                raise Died

        self.engine = replace(self.engine, crash=crash)

    def take_over(self) -> None:
        """Let every lease end, and every pause be over."""
        with self.control.database.begin() as connection:
            connection.exec_driver_sql("UPDATE deletion_units SET lease_until_us = 1 WHERE status = 'running'")
        self.control.ledger.sweep()
        with self.control.database.begin() as connection:
            connection.exec_driver_sql("UPDATE deletion_units SET next_attempt_at_us = 0 WHERE status = 'pending'")


def scope_of(who: TaskScope) -> Scope:
    return Scope(tenant=who.tenant, user=who.user, project=who.task)


@pytest.fixture(params=["sqlite", "postgresql"])
def deployment(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Deployment]:
    initialise(tmp_path / "state")
    with fake_redis() as url:
        file = tmp_path / "state" / "expunge.toml"
        # What these tests are about is not in the bytes, and looking at them takes half a second a batch.
        text = file.read_text().replace("redis://127.0.0.1:0/0", url).replace('"physical"', '"logical"')
        if request.param == "postgresql":
            # One database for both: neither knows the other's tables.
            for file_of in ("memory", "orchestrator"):
                text = text.replace(f"sqlite:///{file_of}.db", request.getfixturevalue("postgres_url"))
        file.write_text(text)
        clock = FakeClock()
        control = bootstrap.open_control(tmp_path / "state", clock)
        upgrade(control.database)
        made = Deployment(control, bootstrap.open_engine(control), clock)
        assert made.memory._url.get_backend_name() == request.param
        with redis.Redis.from_url(url) as eyes:
            eyes.flushall()
        yield made
        adapters: list[StorageAdapter] = list(made.engine.adapters.values())
        for adapter in adapters:
            adapter.close()
        control.close()
