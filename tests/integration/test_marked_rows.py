"""Between the revoke and the end rows are there that are only marked: no read gives them, and no job ends over them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import pytest

from adapters.drafts import ReportUnusable
from adapters.memory.chains import MemoryNotFound, TaskScope
from orchestrator import Erased, EraseOrder, Scope, Selector, SelectorKind, Target
from orchestrator.domain.states import JobState
from orchestrator.domain.unit import Phase
from orchestrator.service.run_batch import run_batch
from tests.integration.five_stores import ANNA, BERTA, SECRET, STORES, TURN_6, Five
from tests.integration.write_paths_harness import answers_url, five

__all__ = ["answers_url", "five"]

QUESTION = "Which passport?"
TABLES = ("facts", "memories", "drafts")


@dataclass
class Reader:
    """Somebody who asks for what one person has told, by every way of reading that there is."""

    five: Five
    who: Scope
    fact: Target
    memory: int

    @property
    def task(self) -> TaskScope:
        return TaskScope(self.who.user, "trips", self.who.tenant)

    def history(self) -> Sequence[object]:
        try:
            return self.five.memory.chains.history(self.task, self.memory)
        except MemoryNotFound:
            return ()

    def upon(self) -> object:
        try:
            return self.five.drafts.runtime.submit(self.who, "upon", upon=["report-001"]).used
        except ReportUnusable:
            return ()

    def put_back(self) -> object:
        """Take a copy as the source stands now, and put it back: what was only hidden in it is not there either."""
        five = self.five
        copy = five.control.settings.state_dir / "backups" / five.backup.take().file
        ledger = five.control.ledger
        five.memory.restore(copy, ledger.tombstones(), partial(ledger.raise_epoch, "memory"))
        queries = [f"SELECT * FROM {table} WHERE user_id = ?" for table in TABLES]  # noqa: S608 - tables of ours
        return [row for query in queries for row in five.rows(query, self.who.user)]


READS: dict[str, Callable[[Reader], object]] = {
    "facts": lambda r: r.five.memory.store.current(r.who),
    "facts of every time": lambda r: r.five.memory.store.current(r.who, now=0.0),
    "masters of facts": lambda r: r.five.memory.masters.active(r.who, [r.fact]),
    "masters of memories": lambda r: r.five.memory.masters.active(
        r.who, [Target(kind="memory", id=str(r.memory), version=r.memory + 1)]
    ),
    "history": Reader.history,
    "recall": lambda r: r.five.memory.chains.recall(r.task, "passport number", 20),
    "search": lambda r: r.five.index.search(r.who, [1.0, 0.0, 0.0, 0.5]).hits,
    "answers": lambda r: r.five.cache.guarded(r.five.memory.masters).get(r.who, QUESTION),
    "report on a report": Reader.upon,
}


TOLD_UNTIL_ERASED: dict[str, Callable[[Reader], object]] = {
    "checkpoints": lambda r: r.five.drafts.runtime.inspect(r.who, "report-001").drafts,
    "report that was published": lambda r: r.five.drafts.runtime.run(r.who, "report-001").report,
}
"""A draft job is told as it stands, whether what it made could be published or not."""


def told(five: Five, who: Scope) -> Reader:
    """Let a person tell a memory, correct it, and tell a fact of which each store has a copy."""
    source = f"{who.user}/{TURN_6}"
    five.memory.store.register_source(who, source)
    task = TaskScope(who.user, "trips", who.tenant)
    memory = five.memory.chains.remember(task, "task", "The passport number is not known.", source)
    five.memory.chains.correct(task, memory, SECRET, source)
    return Reader(five, who, five.learn(who), memory)


def given(reader: Reader) -> list[str]:
    return [name for name, read in READS.items() if read(reader)]


@pytest.mark.req("R48")
@pytest.mark.req("R124")
@pytest.mark.case(135)
@pytest.mark.parametrize("kind", [SelectorKind.SOURCE, SelectorKind.SUBJECT])
def test_no_read_of_any_store_gives_what_is_revoked_and_still_there(five: Five, kind: SelectorKind) -> None:
    anna, berta = told(five, ANNA), told(five, BERTA)
    job = five.request(Selector(kind=kind, value=f"anna/{TURN_6}" if kind is SelectorKind.SOURCE else None))
    assert run_batch(five.engine, "memory", Phase.REVOKE) == 1
    assert five.view(job).state is JobState.SOURCE_REVOKED
    for table in TABLES:
        assert five.rows(f"SELECT * FROM {table} WHERE user_id = ?", "anna"), "it is there still"  # noqa: S608 - ours
    assert five.cache.answers.get(ANNA, QUESTION) == SECRET, "as is the answer, for whoever asks without its masters"
    assert given(anna) == []
    assert given(berta) == [*READS]
    assert all(read(anna) for read in TOLD_UNTIL_ERASED.values())
    five.run()
    assert five.view(job).state is JobState.COMPLETED
    assert not any(read(anna) for read in TOLD_UNTIL_ERASED.values())
    assert all(read(berta) for read in TOLD_UNTIL_ERASED.values())


@pytest.mark.case(135)
def test_copy_that_is_taken_of_rows_that_are_only_marked_brings_none_back(five: Five) -> None:
    anna, berta = told(five, ANNA), told(five, BERTA)
    five.request()
    assert run_batch(five.engine, "memory", Phase.REVOKE) == 1
    assert anna.put_back() == []
    assert berta.put_back() != []


@pytest.mark.case(135)
@pytest.mark.parametrize("store", STORES)
def test_no_job_ends_while_a_store_has_only_marked_what_it_says_it_has_erased(
    five: Five, monkeypatch: pytest.MonkeyPatch, store: str
) -> None:
    anna = told(five, ANNA)
    five.backup.take()

    def mark(orders: Sequence[EraseOrder]) -> Sequence[Erased]:
        return [Erased(erased=len(order.targets)) for order in orders]

    monkeypatch.setattr(five.engine.adapters[store], "erase", mark)
    job = five.request()
    five.run()
    view = five.view(job)
    assert (view.state, view.waits_for_a_person) == (JobState.DERIVED_CLEANUP, True)
    assert {r.outcome for r in five.control.ledger.receipts(job) if (r.adapter, r.phase) == (store, "verify")} == {
        "present"
    }
    assert given(anna) == [], "and nothing is served meanwhile"
