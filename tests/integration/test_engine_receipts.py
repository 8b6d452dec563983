"""What becomes a receipt: answers that are true and fit their orders, and no others."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from orchestrator import BadAnswer, Erased, EraseOrder, Seen
from orchestrator.domain.states import JobState
from orchestrator.domain.unit import Finished, Phase
from tests.fakes import Bench, fill


@pytest.mark.req("R130")
def test_lying_store_is_caught_and_opens_new_rounds_until_it_parks(
    stage: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(stage)
    honest = stage.copies.erase

    def lie(orders: Sequence[EraseOrder]) -> list[Erased]:
        return [Erased(erased=len(o.targets)) for o in orders]

    monkeypatch.setattr(stage.copies, "erase", lie)
    job = stage.file()
    stage.run()
    view = stage.view(job)
    assert (view.state, view.round) == (JobState.DERIVED_CLEANUP, 5)
    assert view.parked == (("copies", "verify", "attempts_exhausted"),)
    present = [r for r in stage.ledger.receipts(job) if r.outcome == "present"]
    assert [r.remaining for r in present] == [2] * 4
    monkeypatch.setattr(stage.copies, "erase", honest)
    other = stage.file()
    stage.run()
    assert stage.view(other).state is JobState.COMPLETED


def test_answers_that_do_not_add_up_are_refused(stage: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(stage)
    monkeypatch.setattr(stage.copies, "erase", lambda orders: [Erased(erased=99) for _ in orders])
    job = stage.file()
    stage.run()
    assert stage.view(job).parked == (("copies", "erase", "permanent_error"),)
    assert stage.rows("SELECT error_code FROM unit_attempts") == [(BadAnswer.code.value,)]


@pytest.mark.parametrize("answers", [[], [Seen(), Seen()], [Erased()], ["yes"]])
def test_answers_that_do_not_fit_their_orders_are_refused(
    stage: Bench, monkeypatch: pytest.MonkeyPatch, answers: list[object]
) -> None:
    fill(stage)
    monkeypatch.setattr(stage.copies, "verify", lambda _orders: answers)
    job = stage.file()
    stage.run()
    assert stage.view(job).parked == (("copies", "verify", "permanent_error"),)


@pytest.mark.parametrize("told", [(4, 9), (9, 4)])
def test_highest_revision_of_a_batch_is_kept_in_whatever_order_it_is_told(stage: Bench, told: tuple[int, int]) -> None:
    job = stage.file()
    (claimed,) = stage.take("source", Phase.REVOKE, "w")
    answers = [Finished(claimed=claimed, receipt=None, revision=revision) for revision in told]
    stage.ledger.commit("w", answers, started_at=stage.clock.now())
    assert stage.rows(f"SELECT revision FROM deletion_jobs WHERE id = '{job}'") == [(9,)]  # noqa: S608
