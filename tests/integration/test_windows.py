"""Copies that cannot be edited: scheduled with a known end, told, and closed only when they are seen to be gone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from orchestrator import Erased, EraseOrder, Role, Seen, StoreUnreachable
from orchestrator.domain.codes import HoldReason, WaiverReason
from orchestrator.domain.errors import RuleRefused
from orchestrator.domain.job import Result, Store, Waiver
from orchestrator.domain.states import JobState
from orchestrator.service.hold import HoldRequest, place
from tests.fake_stores import FakeBackups
from tests.fakes import ANNA, Bench, bench, fill

NOW = datetime(2026, 10, 27, 3, tzinfo=UTC)
END = datetime(2026, 11, 27, 3, tzinfo=UTC)
SECOND = timedelta(seconds=1)
FACT = "anna-passport-000000"


@dataclass
class Deployment:
    stage: Bench
    backups: FakeBackups

    def ended(self, job: str) -> JobState:
        """Work off what is due, and all that a clock can do by now."""
        self.stage.skip_pauses()
        for _ in range(3):
            self.stage.ledger.sweep()
            self.stage.run()
        return self.stage.view(job).state


@pytest.fixture(params=["sqlite", "postgresql"])
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Deployment]:
    url = request.getfixturevalue("postgres_url") if request.param == "postgresql" else None
    stage = bench(tmp_path, url=url)
    stage.clock.at = NOW
    copies = {"nightly": {FACT, "berta-passport-000000"}, "offsite": {FACT}}
    backups = FakeBackups(copies, {"offsite": END})
    stores = [*stage.ledger.rules.stores, Store(name="backups", role=Role.BACKUP)]
    ledger = replace(stage.ledger, rules=replace(stage.ledger.rules, stores=stores))
    stage.ledger, stage.acceptance = ledger, replace(stage.acceptance, ledger=ledger)
    adapters = {**stage.engine.adapters, "backups": backups}
    stage.engine = replace(stage.engine, ledger=ledger, acceptance=stage.acceptance, adapters=adapters)
    fill(stage)
    yield Deployment(stage, backups)
    stage.ledger.engine.dispose()


@pytest.mark.req("R131")
@pytest.mark.req("R132")
def test_open_window_holds_the_job_in_verified_until_its_copy_is_seen_to_be_gone(made: Deployment) -> None:
    job = made.stage.file()
    assert made.ended(job) is JobState.VERIFIED
    view = made.stage.view(job)
    assert view.result is Result.ERASED
    assert [(w.adapter, w.copy, w.until, w.closed_at) for w in view.windows] == [("backups", "offsite", END, None)]
    done = {(r.adapter, r.outcome) for r in made.stage.ledger.receipts(job) if r.phase == "erase"}
    assert done == {("source", "erased"), ("copies", "erased"), ("backups", "scheduled")}
    assert made.backups.copies["nightly"] == {"berta-passport-000000"}, "the copy beside it is not left to its time"
    assert made.stage.rows("SELECT user_id FROM deletion_jobs") == [(None,)], "who it was is not kept for so long"
    del made.backups.copies["offsite"]
    made.stage.clock.at = END - SECOND
    assert made.ended(job) is JobState.VERIFIED
    assert made.backups.calls["closed"] == 0
    made.stage.clock.at = END
    assert made.ended(job) is JobState.COMPLETED
    view = made.stage.view(job)
    assert [w.closed_at for w in view.windows] == [END]
    assert [(r.adapter, r.phase, r.outcome) for r in made.stage.ledger.receipts(job)][-1] == (
        "backups",
        "close",
        "closed",
    )


def test_copy_that_is_still_there_after_its_end_is_asked_for_again_and_never_parked(made: Deployment) -> None:
    job = made.stage.file()
    made.ended(job)
    made.stage.clock.at = END
    for _ in range(7):
        assert made.ended(job) is JobState.VERIFIED
    view = made.stage.view(job)
    assert late(made) == [], "at its very end it is not late"
    made.stage.clock.at = END + SECOND
    assert late(made) == [job]
    assert made.backups.calls["closed"] >= 7
    assert view.parked == ()
    assert view.last_error == "still_present"
    del made.backups.copies["offsite"]
    assert made.ended(job) is JobState.COMPLETED
    assert late(made) == []


def test_look_for_a_copy_that_was_deleted_late_can_be_had_at_once(made: Deployment) -> None:
    job = made.stage.file()
    made.ended(job)
    assert made.stage.ledger.retry(job) == 0, "before its end there is nothing to look for"
    made.stage.clock.at = END
    assert made.ended(job) is JobState.VERIFIED
    assert made.stage.view(job).last_error == "still_present"
    del made.backups.copies["offsite"]
    assert made.stage.ledger.due(["backup"]) == [], "the next look is not due yet"
    assert made.stage.ledger.retry(job) == 1
    made.stage.run()
    assert made.stage.view(job).state is JobState.COMPLETED


def late(made: Deployment) -> list[str]:
    found = made.stage.ledger.overdue(tenant=None, before=made.stage.clock.now(), limit=9)
    return [view.id for view in found]


def test_store_that_is_away_at_the_end_of_a_window_is_asked_again(
    made: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = made.stage.file()
    made.ended(job)
    made.stage.clock.at = END
    del made.backups.copies["offsite"]

    def away(_handles: Sequence[str]) -> Sequence[Seen]:
        raise StoreUnreachable

    with monkeypatch.context() as patched:
        patched.setattr(made.backups, "closed", away)
        for _ in range(3):
            assert made.ended(job) is JobState.VERIFIED
    with made.stage.ledger.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE adapter_health SET breaker = 'closed', open_until_us = NULL")
    assert made.ended(job) is JobState.COMPLETED


def test_copy_that_is_taken_between_find_and_erase_is_seen_and_scheduled_in_a_new_round(
    made: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    erase = made.backups.erase

    def take(orders: Sequence[EraseOrder]) -> Sequence[Erased]:
        made.backups.copies.setdefault("late", {FACT})
        made.backups.ends["late"] = END
        return erase(orders)

    monkeypatch.setattr(made.backups, "erase", take)
    job = made.stage.file()
    assert made.ended(job) is JobState.VERIFIED
    view = made.stage.view(job)
    assert view.round == 2
    assert {w.copy for w in view.windows} == {"offsite", "late"}


def test_windows_of_different_ends_close_each_at_its_own(made: Deployment) -> None:
    made.backups.copies["archive"] = {FACT}
    made.backups.ends["archive"] = END + timedelta(days=1)
    job = made.stage.file()
    made.ended(job)
    made.backups.copies.clear()
    made.stage.clock.at = END
    assert made.ended(job) is JobState.VERIFIED
    assert [(w.copy, w.closed_at) for w in made.stage.view(job).windows] == [("offsite", END), ("archive", None)]
    made.stage.clock.at = END + timedelta(days=1)
    assert made.ended(job) is JobState.COMPLETED


def test_window_may_be_waived_by_name_and_only_while_it_is_open(made: Deployment) -> None:
    job = made.stage.file()
    made.ended(job)
    waiver = Waiver(adapter="backups", reason=WaiverReason.STORE_GONE, granted_by_ref="x")
    with pytest.raises(RuleRefused):
        made.stage.ledger.waive(job, replace(waiver, adapter="copies"))
    assert made.stage.ledger.waive(job, waiver)
    assert made.stage.view(job).state is JobState.COMPLETED
    with pytest.raises(RuleRefused):
        made.stage.ledger.waive(job, waiver)


def test_hold_that_comes_after_the_erase_does_not_keep_a_window_open(made: Deployment) -> None:
    job = made.stage.file()
    made.ended(job)
    hold = HoldRequest(tenant=ANNA.tenant, user=ANNA.user, items=(), reason=HoldReason.DISPUTE, requested_by="x")
    place(hold, made.stage.acceptance)
    made.backups.copies.clear()
    made.stage.clock.at = END
    assert made.ended(job) is JobState.COMPLETED
