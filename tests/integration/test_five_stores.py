"""One job over the five stores as they are: what each did, what comes late, and what cannot be edited."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from adapters.backup.manifest import Policy
from adapters.drafts import Fault, MemoryChanged
from orchestrator import Erased, EraseOrder, GateRefused, StoreUnreachable
from orchestrator.domain.job import Result
from orchestrator.domain.states import JobState
from orchestrator.domain.unit import Phase
from orchestrator.service.run_batch import run_batch
from tests.integration.five_stores import ANNA, BERTA, END, SECRET, STORES, TURN_6, Died, Five, five

__all__ = ["five"]


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
