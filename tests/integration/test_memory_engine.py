"""A job over the real stores, by the engine as a deployment opens it: one item of the subject is under a hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
import redis
import sqlalchemy as sa

from adapters.cache import CacheAdapter
from adapters.memory import MemoryAdapter
from orchestrator import Reason, Scope, Selector, SelectorKind, Target, bootstrap
from orchestrator.domain.codes import HoldReason
from orchestrator.domain.job import JobView, Result
from orchestrator.domain.states import JobState
from orchestrator.initialise import initialise
from orchestrator.service.accept import Request, accept
from orchestrator.service.drain import drain
from orchestrator.service.hold import HoldRequest, place
from orchestrator.service.run_batch import Engine
from orchestrator.store.migrate import upgrade
from tests.servers import fake_redis

ANNA = Scope(tenant="acme", user="anna", project="trips")
BERTA = Scope(tenant="acme", user="berta", project="trips")
KEYS = ("passport", "seat", "meal")


@dataclass
class Deployment:
    control: bootstrap.Control
    engine: Engine
    redis: Any  # redis-py's hints mix its two clients

    @property
    def memory(self) -> MemoryAdapter:
        return cast("MemoryAdapter", self.engine.adapters["memory"])

    @property
    def cache(self) -> CacheAdapter:
        return cast("CacheAdapter", self.engine.adapters["cache"])

    def tell(self, scope: Scope) -> None:
        """Let a user state three facts, of each of which the application has an answer in the cache."""
        store = self.memory.store
        store.register_source(scope, f"{scope.user}/turn-1")
        for key in KEYS:
            store.put(scope, key, f"The {key} of {scope.user}", f"{scope.user}/turn-1")
        for fact in store.current(scope):
            made_from = [Target(kind="fact", id=fact.id, version=fact.version)]
            assert self.cache.answers.put(scope, fact.key, f"so: {fact.value}", made_from, store.revision(scope))

    def facts(self, where: str = "1 = 1") -> list[tuple[Any, ...]]:
        with self.memory.store._engine.begin() as connection:
            query = f"SELECT * FROM facts WHERE {where} ORDER BY user_id, key"  # noqa: S608 - conditions of this test
            return [tuple(row) for row in connection.execute(sa.text(query))]

    def entries(self) -> dict[bytes, dict[bytes, bytes]]:
        return {key: self.redis.hgetall(key) for key in self.redis.scan_iter(_type="hash")}

    def file(self, selector: Selector) -> str:
        scope = Scope(tenant=ANNA.tenant, user=ANNA.user)
        asked = Request(scope=scope, selector=selector, reason=Reason.USER_REQUEST, requested_by="tester")
        job, _ = accept(asked, self.control.acceptance)
        return str(job)

    def run(self) -> None:
        while due := self.control.ledger.due(list(self.engine.adapters)):
            drain(self.engine, *due[0])
        self.control.ledger.sweep()

    def view(self, job: str) -> JobView:
        return self.control.ledger.job(job)


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[Deployment]:
    initialise(tmp_path / "state")
    with fake_redis() as url, redis.Redis.from_url(url) as eyes:
        file = tmp_path / "state" / "expunge.toml"
        file.write_text(file.read_text().replace("redis://127.0.0.1:0/0", url))
        control = bootstrap.open_control(tmp_path / "state")
        upgrade(control.database)
        made = Deployment(control, bootstrap.open_engine(control), eyes)
        for scope in (ANNA, BERTA):
            made.tell(scope)
        yield made
        for adapter in made.engine.adapters.values():
            adapter.close()
        control.close()


@pytest.mark.case(134)
@pytest.mark.parametrize("kind", [SelectorKind.SUBJECT, SelectorKind.SOURCE])
def test_held_item_and_its_cached_answer_stay_until_the_hold_is_lifted(
    deployment: Deployment, kind: SelectorKind
) -> None:
    (item,) = [fact.id for fact in deployment.memory.store.current(ANNA) if fact.key == "passport"]
    facts, entries = deployment.facts(), deployment.entries()
    asked = HoldRequest(
        tenant=ANNA.tenant, user=ANNA.user, items=(item,), reason=HoldReason.LITIGATION, requested_by="counsel"
    )
    (hold,) = place(asked, deployment.control.acceptance)
    job = deployment.file(Selector(kind=kind, value="anna/turn-1" if kind is SelectorKind.SOURCE else None))
    deployment.run()
    assert deployment.facts() == [row for row in facts if row[1] == BERTA.user or row[5] == item]
    answers = [deployment.cache.answers.get(ANNA, key) for key in KEYS]
    assert answers == ["so: The passport of anna", None, None]
    left = deployment.entries()
    assert all(entries[key] == left[key] for key in left)
    assert len(left) == 4
    assert deployment.view(job).state is JobState.DERIVED_CLEANUP
    assert deployment.view(job).held
    deployment.control.ledger.release(str(hold), by_ref="somebody")
    deployment.run()
    view = deployment.view(job)
    assert (view.state, view.result) == (JobState.COMPLETED, Result.ERASED)
    assert deployment.facts() == [row for row in facts if row[1] == BERTA.user]
    assert [deployment.cache.answers.get(ANNA, key) for key in KEYS] == [None] * 3
    assert [deployment.cache.answers.get(BERTA, key) for key in KEYS] == [f"so: The {key} of berta" for key in KEYS]
