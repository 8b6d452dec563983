"""Jobs over chains, by the engine as a deployment opens it: with an answer in the cache that was made from each."""

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
from orchestrator import (
    GateRefused,
    Reason,
    Refusal,
    Scope,
    Selector,
    SelectorKind,
    StorageAdapter,
    Target,
    bootstrap,
)
from orchestrator.domain.codes import CrashPoint, HoldReason
from orchestrator.domain.job import JobView, Result
from orchestrator.domain.states import JobState
from orchestrator.service.accept import Request, accept
from orchestrator.service.drain import drain
from orchestrator.service.hold import HoldRequest, place
from orchestrator.service.run_batch import Engine
from orchestrator.store.migrate import upgrade
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
    bootstrap.initialise(tmp_path / "state")
    with fake_redis() as url:
        file = tmp_path / "state" / "expunge.toml"
        text = file.read_text().replace("redis://127.0.0.1:0/0", url)
        if request.param == "postgresql":
            text = text.replace("sqlite:///memory.db", request.getfixturevalue("postgres_url"))
        file.write_text(text)
        control = bootstrap.open_control(tmp_path / "state")
        upgrade(control.database)
        made = Deployment(control, bootstrap.open_engine(control))
        assert made.memory._url.get_backend_name() == request.param
        with redis.Redis.from_url(url) as eyes:
            eyes.flushall()
        yield made
        adapters: list[StorageAdapter] = list(made.engine.adapters.values())
        for adapter in adapters:
            adapter.close()
        control.close()


def refusal(deployment: Deployment, text: str, source: str, *, stated: bool = False) -> Refusal | None:
    if not deployment.memory.store.knows_source(scope_of(ANNA), source):
        deployment.memory.store.register_source(scope_of(ANNA), source)
    try:
        deployment.memory.chains.remember(ANNA, "task", text, source, user_statement=stated)
    except GateRefused as error:
        return error.refusal
    return None


@pytest.mark.parametrize(
    ("kind", "stays", "answers"),
    [
        (SelectorKind.MEMORY, ["Sits at the aisle.", "Eats fish."], ["seat", "meal"]),
        (SelectorKind.SOURCE, [], []),
        (SelectorKind.SUBJECT, [], []),
        (SelectorKind.KEY, [*TEXTS.values(), RENEWED], [*TEXTS]),
    ],
)
def test_a_job_takes_what_its_selector_names_and_it_is_not_learned_again(
    deployment: Deployment, kind: SelectorKind, stays: list[str], answers: list[str]
) -> None:
    ids = deployment.tell(ANNA)
    deployment.tell(BERTA)
    neighbours = deployment.berta()
    values = {SelectorKind.MEMORY: str(ids["passport"] + 3), SelectorKind.SOURCE: "anna/turn-1"}
    values[SelectorKind.KEY] = "colour"
    job = deployment.file(Selector(kind=kind, value=values.get(kind)))
    deployment.run()
    assert deployment.ended(job) == (JobState.COMPLETED, Result.ERASED)
    assert deployment.texts(ANNA) == stays
    assert deployment.answers(ANNA) == answers
    assert deployment.berta() == neighbours
    assert deployment.answers(BERTA) == [*TEXTS]
    gone = kind is not SelectorKind.KEY
    records = deployment.rows("SELECT reason FROM deletions")
    assert records == [(f"expunge job {job}",)] * (1 if kind is SelectorKind.MEMORY else 3 if gone else 0)
    if not gone:
        return
    for text, name in ((TEXTS["passport"], "anna/turn-1"), (RENEWED, "anna/turn-2")):
        assert refusal(deployment, text, name) is not None
    by_name = {
        SelectorKind.MEMORY: (None, Refusal.TEXT_TOMBSTONED),
        SelectorKind.SOURCE: (Refusal.SOURCE_TOMBSTONED, Refusal.TEXT_TOMBSTONED),
        SelectorKind.SUBJECT: (Refusal.SOURCE_TOMBSTONED, None),
    }
    different, elsewhere = by_name[kind]
    assert refusal(deployment, "A window would do.", "anna/turn-1") is different
    assert refusal(deployment, TEXTS["passport"], "anna/turn-8") is elsewhere
    assert refusal(deployment, TEXTS["passport"], "anna/turn-9", stated=True) is None


def test_a_project_names_the_memories_of_its_task_alone(deployment: Deployment) -> None:
    deployment.tell(ANNA)
    job = deployment.file(SUBJECT, project="trips")
    deployment.run()
    assert deployment.ended(job) == (JobState.COMPLETED, Result.ERASED)
    assert deployment.texts(ANNA) == [TEXTS["meal"]]


@pytest.mark.parametrize("kind", [SelectorKind.SUBJECT, SelectorKind.SOURCE, SelectorKind.MEMORY])
def test_held_chain_and_its_cached_answer_stay_until_the_hold_is_lifted(
    deployment: Deployment, kind: SelectorKind
) -> None:
    ids = deployment.tell(ANNA)
    item = str(ids["passport"])
    (hold,) = place(
        HoldRequest(
            tenant=ANNA.tenant, user=ANNA.user, items=(item,), reason=HoldReason.LITIGATION, requested_by="counsel"
        ),
        deployment.control.acceptance,
    )
    values = {SelectorKind.MEMORY: item, SelectorKind.SOURCE: "anna/turn-1"}
    job = deployment.file(Selector(kind=kind, value=values.get(kind)))
    deployment.run()
    assert deployment.view(job).state is not JobState.COMPLETED
    assert deployment.view(job).held
    assert [v.text for v in deployment.memory.chains.history(ANNA, ids["passport"])] == [TEXTS["passport"], RENEWED]
    assert deployment.answers(ANNA) == (["passport"] if kind is not SelectorKind.MEMORY else [*TEXTS])
    deployment.control.ledger.release(str(hold), by_ref="somebody")
    deployment.run()
    assert deployment.ended(job) == (JobState.COMPLETED, Result.ERASED)
    assert deployment.texts(ANNA) == ([] if kind is not SelectorKind.MEMORY else [TEXTS["seat"], TEXTS["meal"]])
    assert "passport" not in deployment.answers(ANNA)


@pytest.mark.parametrize("at", ["memory.revoke", "memory.erase"])
def test_process_that_dies_between_effect_and_receipt_leaves_nothing_undone(deployment: Deployment, at: str) -> None:
    deployment.tell(ANNA)
    deployment.tell(BERTA)
    neighbours = deployment.berta()
    job = deployment.file(Selector(kind=SelectorKind.SOURCE, value="anna/turn-2"))
    deployment.die_once(at)
    with pytest.raises(Died):
        deployment.run()
    deployment.take_over()
    deployment.run()
    assert deployment.ended(job)[0] is JobState.COMPLETED
    assert deployment.texts(ANNA) == [TEXTS["seat"], TEXTS["meal"]]
    assert deployment.berta() == neighbours
    (receipt,) = [
        r for r in deployment.control.ledger.receipts(job) if (r.adapter, r.phase) == ("memory", "erase") and r.expected
    ]
    assert (receipt.erased, receipt.already_absent) == ((2, 0) if at == "memory.revoke" else (0, 2))
    assert len(deployment.rows("SELECT * FROM deletions")) == 1
