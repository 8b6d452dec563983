"""Expiry beside what else goes on: another job, a hold, a correction, a late copy, a death, many who look."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from orchestrator import Target
from orchestrator.domain.codes import HoldReason
from orchestrator.domain.states import JobState
from orchestrator.service.hold import HoldRequest, place
from tests.integration.expiry_harness import (
    BOOKING,
    ERASED,
    EXPIRY,
    NOTHING,
    TURN_5,
    answer,
    answered,
    book,
    started,
    sweep,
)
from tests.integration.jobs_harness import ANNA, BERTA, Deployment, Died, deployment, scope_of

__all__ = ["deployment", "started"]


def test_what_expires_while_a_job_is_on_its_way_gets_the_next_one(started: Deployment) -> None:
    book(started)
    book(started, text="The train leaves at seven.", ttl_days=8)
    started.clock.at = EXPIRY
    (first,) = sweep(started)
    started.die_once("memory.erase")
    with pytest.raises(Died):
        started.run()
    started.clock.at = EXPIRY + timedelta(days=1)
    (second,) = sweep(started)
    started.take_over()
    started.run()
    assert [started.ended(job) for job in (first, second)] == [ERASED] * 2
    assert started.texts(ANNA) == []


def test_memory_that_is_renewed_before_the_revoke_stays_and_the_job_says_so(started: Deployment) -> None:
    booking = book(started)
    started.memory.store.put(
        scope_of(ANNA), "gate", "Gate B12.", f"anna/{TURN_5}", expires=EXPIRY.timestamp(), confirmed=True
    )
    started.clock.at = EXPIRY
    (job,) = sweep(started)
    started.memory.chains.correct(ANNA, booking, f"{BOOKING} Extended.", f"anna/{TURN_5}", 7)
    started.memory.store.put(scope_of(ANNA), "gate", "Gate C3.", f"anna/{TURN_5}", expires=math.inf, confirmed=True)
    started.run()
    assert started.ended(job) == NOTHING
    assert started.texts(ANNA) == [BOOKING, f"{BOOKING} Extended."]
    assert [fact.value for fact in started.memory.store.current(scope_of(ANNA))] == ["Gate C3."]
    assert answered(started, ANNA, BOOKING)


def test_late_copy_of_what_has_expired_is_seen_and_goes_in_a_new_round(started: Deployment) -> None:
    booking = book(started)
    started.clock.at = EXPIRY
    (job,) = sweep(started)
    started.die_once("cache.erase")
    with pytest.raises(Died):
        started.run()
    answer(started, ANNA, "late", [Target(kind="memory", id=str(booking), version=booking)])
    started.take_over()
    started.run()
    assert started.ended(job) == ERASED
    assert started.view(job).round == 2
    assert not answered(started, ANNA, "late")


def test_held_memory_outlives_its_expiry_until_the_hold_is_lifted(started: Deployment) -> None:
    held, other = book(started), book(started, text="The train leaves at seven.")
    hold = HoldRequest(
        tenant=ANNA.tenant, user=ANNA.user, items=(str(held),), reason=HoldReason.LITIGATION, requested_by="counsel"
    )
    (placed,) = place(hold, started.control.acceptance)
    started.clock.at = EXPIRY
    (job,) = sweep(started)
    started.run()
    assert started.view(job).held
    assert started.texts(ANNA) == [BOOKING]
    assert answered(started, ANNA, BOOKING)
    again = sweep(started)
    assert len(again) == 1
    assert sweep(started) == [], "each further sweep opens nothing"
    started.control.ledger.release(str(placed), by_ref="somebody")
    started.run()
    assert started.ended(job) == ERASED
    assert started.ended(again[0])[0] is JobState.COMPLETED
    assert started.texts(ANNA) == []
    assert not answered(started, ANNA, BOOKING)
    assert sorted(started.rows("SELECT memory_ids FROM deletions")) == [(f"[{n}]",) for n in (held, other)]


@pytest.mark.parametrize("at", ["memory.revoke", "memory.erase"])
def test_process_that_dies_takes_the_same_again_and_no_more(started: Deployment, at: str) -> None:
    booking = book(started)
    later = book(started, text="The train leaves at seven.", ttl_days=8)
    started.clock.at = EXPIRY
    (job,) = sweep(started)
    started.die_once(at)
    with pytest.raises(Died):
        started.run()
    started.clock.at = EXPIRY + timedelta(days=2)  # by now the other one has expired, too
    started.take_over()
    started.run()
    assert started.ended(job) == ERASED
    assert started.rows("SELECT id FROM memories") == [(later,)]
    assert started.rows("SELECT memory_ids FROM deletions") == [(f"[{booking}]",)]


def test_cancelled_job_of_what_has_expired_is_opened_again(started: Deployment) -> None:
    book(started)
    started.clock.at = EXPIRY
    (job,) = sweep(started)
    started.control.ledger.cancel(job)
    (again,) = sweep(started)
    started.run()
    assert started.ended(again) == ERASED


def test_workers_that_look_at_once_open_one_job(started: Deployment) -> None:
    for who in (ANNA, BERTA):
        book(started, who)
    started.clock.at = EXPIRY
    with ThreadPoolExecutor(4) as pool:
        opened = [job for jobs in pool.map(sweep, [started] * 4) for job in jobs]
    assert len(opened) == len(set(opened)) == 2
    started.run()
    assert [started.ended(job) for job in opened] == [ERASED] * 2
