"""One job over the five stores as they are: what each did, what comes late, and what cannot be edited."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from adapters.backup import BackupAdapter
from adapters.backup.manifest import Policy
from adapters.cache import CacheAdapter
from adapters.drafts import DraftsAdapter, Fault, MemoryChanged
from adapters.memory import MemoryAdapter
from adapters.vector import Point, VectorAdapter, VectorIndex
from orchestrator import (
    Erased,
    EraseOrder,
    GateRefused,
    Reason,
    Scope,
    Selector,
    SelectorKind,
    StoreUnreachable,
    Target,
    bootstrap,
)
from orchestrator.domain.job import JobView, Result
from orchestrator.domain.states import JobState
from orchestrator.domain.unit import Phase
from orchestrator.initialise import initialise
from orchestrator.service.accept import Request, accept
from orchestrator.service.drain import drain
from orchestrator.service.run_batch import Engine, run_batch
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
        at = self.memory.store.revision(who) if revision is None else revision
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
    state = tmp_path / "state"
    initialise(state)
    with fake_redis() as url:
        file = state / "expunge.toml"
        text = file.read_text().replace("redis://127.0.0.1:0/0", url).replace('"physical"', '"logical"')
        file.write_text(text + SECTIONS)
        clock = FakeClock(NOW)
        control = bootstrap.open_control(state, clock)
        upgrade(control.database)
        made = Five(control, bootstrap.open_engine(control), clock)
        yield made
        for adapter in made.engine.adapters.values():
            adapter.close()
        control.close()


@pytest.mark.req("R124")
@pytest.mark.req("R125")
@pytest.mark.req("R131")
def test_each_of_five_stores_has_a_receipt_and_a_copy_that_cannot_be_edited_its_window(five: Five) -> None:
    five.learn(ANNA)
    five.learn(BERTA)
    five.backup.take(Policy.REWRITE, None)
    five.clock.at += timedelta(seconds=1)
    offsite = five.backup.take(Policy.WINDOW, END).handle
    job = five.request()
    five.run()
    view = five.view(job)
    assert (view.state, view.result) == (JobState.VERIFIED, Result.ERASED)
    assert [(w.adapter, w.copy, w.until, w.closed_at) for w in view.windows] == [("backup", offsite, END, None)]
    done = five.erases(job)
    assert set(done) == set(STORES)
    assert {name: outcome for name, (outcome, _) in done.items()} == {
        **dict.fromkeys(STORES, "erased"),
        "backup": "scheduled",
    }
    assert five.readable(ANNA) == []
    assert five.readable(BERTA) == ["memory", "vector", "cache", "drafts"], "nobody else notices"
    # The last copy dies, and is seen to be gone.
    five.clock.at = END
    five.run()
    assert five.view(job).state is JobState.VERIFIED
    (five.control.settings.state_dir / "backups" / f"{offsite}.db").unlink()
    five.run()
    assert five.view(job).state is JobState.COMPLETED


@pytest.mark.req("R37")
@pytest.mark.req("R124")
@pytest.mark.req("R141")
def test_from_the_revoke_on_nothing_is_served_though_the_copies_are_still_there(five: Five) -> None:
    made_from = five.learn(ANNA)
    five.drafts.runtime.submit(ANNA, "report-002")
    five.request()
    assert run_batch(five.engine, "memory", Phase.REVOKE) == 1
    assert five.rows("SELECT text FROM drafts WHERE user_id = ?", "anna"), "the draft is there still"
    answer = five.index.search(ANNA, [1.0, 0.0, 0.0, 0.5])
    assert (answer.hits, answer.dropped) == ((), 1)
    assert five.memory.store.current(ANNA) == []
    assert five.enter(ANNA, made_from, f"anna/{TURN_6}") == 1
    with pytest.raises(MemoryChanged):
        five.drafts.runtime.run(ANNA, "report-002")


def test_late_writers_of_every_kind_leave_nothing_readable(five: Five) -> None:
    """Released after `verified`: an index job, a cache fill, a checkpoint, an extractor, and a restored source."""
    made_from = five.learn(ANNA)
    five.learn(BERTA)
    revision = five.memory.store.revision(ANNA)
    five.drafts.runtime.submit(ANNA, "report-002")
    with pytest.raises(Died):
        five.drafts.runtime.run(ANNA, "report-002", fault=dying)
    copy = five.backup.take(Policy.WINDOW, END).handle
    job = five.request()
    five.run()
    assert five.view(job).state is JobState.VERIFIED
    # Each of these began before the revoke, and goes on now.
    assert five.enter(ANNA, made_from, f"anna/{TURN_6}") == 1
    assert not five.fill(ANNA, made_from, revision)
    five.clock.at += timedelta(minutes=1)
    with pytest.raises(MemoryChanged):
        five.drafts.runtime.run(ANNA, "report-002")
    with pytest.raises(GateRefused):
        five.memory.store.put(ANNA, "passport", SECRET, f"anna/{TURN_6}")
    with pytest.raises(GateRefused):
        five.memory.store.register_source(ANNA, "anna/summary-9", derived_from=[f"anna/{TURN_6}"])
    state = five.control.settings.state_dir
    five.memory.restore(
        state / "backups" / f"{copy}.db",
        five.control.ledger.tombstones(),
        lambda: five.control.ledger.raise_epoch("memory"),
    )
    assert five.readable(ANNA) == []
    assert five.readable(BERTA) == ["memory", "vector", "cache", "drafts"]


def dying(passed: Fault) -> None:
    if passed is Fault.AFTER_DRAFT:
        raise Died


def test_one_slow_one_lying_one_down_and_a_window_come_to_what_is_true(
    five: Five, monkeypatch: pytest.MonkeyPatch
) -> None:
    five.learn(ANNA)
    five.backup.take(Policy.WINDOW, END)
    lied, down = list[bool](), [True]
    erase_points, erase_answers, find_drafts = five.vector.erase, five.cache.erase, five.drafts.find

    def lie(orders: Sequence[EraseOrder]) -> Sequence[Erased]:
        if lied:
            return erase_points(orders)
        lied.append(True)
        return [Erased(erased=len(order.targets)) for order in orders]

    def away(orders: Sequence[EraseOrder]) -> Sequence[Erased]:
        if down:
            down.pop()
            raise StoreUnreachable
        return erase_answers(orders)

    def slow(orders: Sequence[EraseOrder]) -> Any:  # noqa: ANN401 - handed on as it is
        five.clock.at += timedelta(seconds=1)
        return find_drafts(orders)

    monkeypatch.setattr(five.vector, "erase", lie)
    monkeypatch.setattr(five.cache, "erase", away)
    monkeypatch.setattr(five.drafts, "find", slow)
    job = five.request()
    five.run()
    view = five.view(job)
    assert (view.state, view.result, view.round) == (JobState.VERIFIED, Result.ERASED, 2)
    assert [w.adapter for w in view.windows] == ["backup"]
    receipts = five.control.ledger.receipts(job)
    assert [r.outcome for r in receipts if (r.adapter, r.phase) == ("vector", "verify")] == ["present", "absent"]
    assert five.readable(ANNA) == []
    cache = [(r.attempt, r.outcome) for r in receipts if (r.adapter, r.phase, r.round) == ("cache", "erase", 1)]
    assert cache == [(2, "erased")]
