"""The cache over the fake and the real Redis, with a client of the test's own behind its back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import redis
import structlog

from adapters.cache import AnswerCache, CacheAdapter
from adapters.cache.keys import Keys
from orchestrator import AdapterContext, Erased, EraseOrder, Gate, Keyring, Scope, Selector, SelectorKind, Target
from orchestrator.ids import uuid7
from tests.fakes import FakeClock
from tests.servers import fake_redis, real_redis

ANNA = Scope(tenant="tenant-a", user="user:1", project="trips")
ELSEWHERE = replace(ANNA, project="research")
EVERYWHERE = replace(ANNA, project=None)
NEIGHBOUR = replace(ANNA, user="user:10")
FOREIGN = replace(ANNA, tenant="tenant-b")
PASSPORT = Target(kind="fact", id="f-1", version=2)
ALLERGY = Target(kind="fact", id="f-2", version=1)


@dataclass
class Cache:
    """An adapter, and a client of the test's own behind its back."""

    adapter: CacheAdapter
    raw: redis.Redis
    gate: Gate
    clock: FakeClock
    revision: int = 1
    jobs: list[UUID] = field(default_factory=list)

    @property
    def answers(self) -> AnswerCache:
        return self.adapter.answers

    def fill(self, scope: Scope, question: str, *made_from: Target, revision: int | None = None) -> None:
        """Keep an answer; one without an origin comes from a writer of before, as the library takes none."""
        if not made_from:
            key, names = self.key(scope, question), Keys(gate=self.gate, prefix="cache")
            fields: dict[Any, Any] = {
                "answer": f"answer to {question}",
                "scope": names.scope(scope),
                "made_from": "[]",
                "revision": 1,
            }
            self.raw.hset(key, mapping=fields)
            self.raw.sadd(names.subject(scope).members, key)
            self.raw.sadd(names.subject(scope).scopes, names.scope(scope))
            return
        assert self.answers.put(scope, question, f"answer to {question}", made_from, revision or self.revision)

    def order(self, scope: Scope = ANNA, kind: SelectorKind = SelectorKind.KEY, **changes: object) -> EraseOrder:
        value = None if kind is SelectorKind.SUBJECT else "passport"
        made = EraseOrder(
            job=uuid7(),
            unit=uuid7(),
            key="k",
            scope=scope,
            selector=Selector(kind=kind, value=value),
            deadline=self.clock.now() + timedelta(seconds=60),
        )
        return replace(made, **changes)  # type: ignore[arg-type]

    def key(self, scope: Scope, question: str) -> str:
        base = self.gate.handle(scope.tenant, "cache-tenant")[:16] + self.gate.handle(scope.tenant, "cache", scope.user)
        return f"cache:{{{base}}}:a:{self.gate.handle(scope.tenant, 'cache-answer', scope.canonical(), question)}"

    def found(self, order: EraseOrder) -> tuple[Target, ...]:
        (holding,) = self.adapter.find([order])
        return holding.targets

    def forget(self, order: EraseOrder) -> Erased:
        (answer,) = self.adapter.erase([replace(order, targets=self.found(order))])
        return answer

    def remaining(self, order: EraseOrder) -> int:
        (seen,) = self.adapter.verify([order])
        return seen.remaining

    def dump(self) -> dict[bytes | str, object]:
        return {k: dict(self.raw.hgetall(k)) for k in self.raw.scan_iter(_type="hash")}


def build(url: str, folder: Path, gate: Gate, clock: FakeClock, **options: object) -> CacheAdapter:
    context = AdapterContext(clock=clock, gate=gate, log=structlog.get_logger(), state_dir=folder)
    return CacheAdapter(context, url=url, **options)


@pytest.fixture(scope="module", params=["fakeredis", "redis"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    serve = fake_redis() if request.param == "fakeredis" else real_redis(tmp_path_factory.mktemp("redis"))
    with serve as url:
        yield url


@pytest.fixture
def redis_url(server: str) -> str:
    with redis.Redis.from_url(server) as client:
        client.flushall()
    return server


@pytest.fixture
def cache(redis_url: str, tmp_path: Path) -> Iterator[Cache]:
    gate, clock = Gate(Keyring.create()), FakeClock()
    adapter = build(redis_url, tmp_path, gate, clock)
    with redis.Redis.from_url(redis_url) as raw:
        yield Cache(adapter=adapter, raw=raw, gate=gate, clock=clock)
        adapter.close()
