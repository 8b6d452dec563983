"""What has expired goes by a job of its own: from the source, and with it the copies that were made from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from adapters.memory.chains import TaskScope
from orchestrator import GateRefused, Refusal, Scope, Target
from orchestrator.domain.codes import HoldReason
from orchestrator.domain.job import Result, Trigger
from orchestrator.domain.states import JobState
from orchestrator.service.expire import look
from orchestrator.service.hold import HoldRequest, place
from tests.integration.jobs_harness import ANNA, BERTA, TEXTS, Deployment, Died, deployment, scope_of

__all__ = ["deployment"]

START = datetime(2026, 10, 20, 9, 1, tzinfo=UTC)
EXPIRY = datetime(2026, 10, 27, 9, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
BOOKING, TURN_5 = "The Lisbon hotel booking code is 4F7Q.", "trip-planning/turn-5"
AT_WORK = replace(ANNA, task="work")
ERASED, NOTHING = (JobState.COMPLETED, Result.ERASED), (JobState.COMPLETED, Result.NOTHING_FOUND)


def book(
    made: Deployment,
    who: TaskScope = ANNA,
    text: str = BOOKING,
    source: str = TURN_5,
    *,
    level: str = "task",
    ttl_days: int | None = 7,
) -> int:
    """Let a memory be told that expires, and the cache answer from it."""
    scope = scope_of(who)
    name = f"{who.user}/{source}"
    if not made.memory.store.knows_source(scope, name):
        made.memory.store.register_source(scope, name)
    memory = made.memory.chains.remember(who, level, text, name, ttl_days)
    answer(made, who, text, [Target(kind="memory", id=str(memory), version=memory)])
    return memory


def answer(made: Deployment, who: TaskScope, question: str, made_from: Sequence[Target]) -> None:
    scope = scope_of(who)
    revision = max(made.memory.store.revision(s) for s in (scope, replace(scope, project=None)))
    assert made.cache.answers.put(scope, question, "so it is", made_from, revision)


def answered(made: Deployment, who: TaskScope, question: str) -> bool:
    return made.cache.answers.get(scope_of(who), question) is not None


def sweep(made: Deployment) -> list[str]:
    return [str(job) for job in look(made.memory, made.control.acceptance)]


def refused(made: Deployment, text: str, source: str) -> Refusal | None:
    try:
        made.memory.chains.remember(ANNA, "task", text, source)
    except GateRefused as error:
        return error.refusal
    return None


@pytest.fixture
def started(deployment: Deployment) -> Deployment:
    deployment.clock.at = START
    return deployment


@pytest.mark.req("R140")
def test_booking_code_that_expires_goes_with_its_copies_by_a_job_that_nobody_filed(started: Deployment) -> None:
    booking = book(started)
    passport = book(started, text=TEXTS["passport"], ttl_days=None)
    started.tell(BERTA)
    neighbours, revision = started.berta(), started.memory.store.revision(scope_of(ANNA))
    started.clock.at = EXPIRY - SECOND
    assert sweep(started) == []
    started.clock.at = EXPIRY
    (job,) = sweep(started)
    view = started.view(job)
    assert (view.trigger, view.selector, view.reason) == (Trigger.EXPIRY, "expired", "expired")
    assert sweep(started) == [], "an open job is at it already"
    assert started.texts(ANNA) == [BOOKING, TEXTS["passport"]], "hidden, and not yet gone"
    started.run()
    assert started.ended(job) == ERASED
    assert started.texts(ANNA) == [TEXTS["passport"]]
    assert not answered(started, ANNA, BOOKING)
    assert answered(started, ANNA, TEXTS["passport"])
    assert started.berta() == neighbours
    assert started.rows("SELECT user_id, memory_ids, reason FROM deletions") == [("anna", f"[{booking}]", "expired")]
    assert started.memory.store.revision(scope_of(ANNA)) == revision, "nobody's reading has changed"
    receipts = {(r.adapter, r.phase): r for r in started.control.ledger.receipts(job)}
    assert (receipts["memory", "erase"].erased, receipts["cache", "erase"].erased) == (1, 1)
    assert sweep(started) == []
    assert passport in [m.id for m in started.memory.chains.recall(ANNA, "passport number", 5)]


@pytest.mark.req("R140")
def test_scope_gets_one_job_for_all_that_has_expired_in_it_since_the_last_sweep(started: Deployment) -> None:
    for n in (1, 2, 3):
        book(started, text=f"{BOOKING} {n}")
    started.memory.store.put(
        scope_of(ANNA), "gate", "Gate B12.", f"anna/{TURN_5}", expires=EXPIRY.timestamp(), confirmed=True
    )
    book(started, AT_WORK, source="work/turn-1")
    book(started, BERTA)
    started.clock.at = EXPIRY
    jobs = sweep(started)
    assert len(jobs) == 3
    started.run()
    assert [started.ended(job) for job in jobs] == [ERASED] * 3
    assert started.rows("SELECT id FROM memories") == started.rows("SELECT fact_id FROM facts") == []


def test_user_wide_memories_and_those_of_a_task_expire_in_one_job(started: Deployment) -> None:
    book(started, level="user")
    book(started, AT_WORK, source="work/turn-1")
    started.clock.at = EXPIRY
    (job,) = sweep(started)
    started.run()
    assert started.ended(job) == ERASED
    assert started.texts(ANNA) == []


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


def test_expiry_shuts_out_no_fill_that_began_before_it_and_finds_no_fault_with_a_fresh_one(started: Deployment) -> None:
    book(started)
    stays = book(started, text=TEXTS["seat"], ttl_days=None)
    revision = started.memory.store.revision(scope_of(ANNA))
    started.clock.at = EXPIRY
    (job,) = sweep(started)
    started.die_once("cache.erase")
    with pytest.raises(Died):
        started.run()
    # Asked again between erase and look: the same question, and another answer, from what stays.
    origin = [Target(kind="memory", id=str(stays), version=stays)]
    assert started.cache.answers.put(scope_of(ANNA), BOOKING, "none is known", origin, revision)
    started.take_over()
    started.run()
    assert started.ended(job) == ERASED
    assert started.view(job).round == 1
    assert started.cache.answers.put(scope_of(ANNA), "another", "so it is", origin, revision)


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


def test_old_source_does_not_bring_back_what_has_expired_and_a_new_message_may(started: Deployment) -> None:
    book(started)
    for name in ("old", "new"):
        started.memory.store.register_source(scope_of(ANNA), f"anna/{name}")
    derived = "anna/summary"
    started.memory.store.register_source(scope_of(ANNA), derived, derived_from=[f"anna/{TURN_5}"])
    gate = scope_of(ANNA)
    started.memory.store.put(gate, "gate", "Gate B12.", "anna/old", expires=EXPIRY.timestamp(), confirmed=True)
    started.clock.at = EXPIRY
    sweep(started)
    started.run()
    assert refused(started, BOOKING, f"anna/{TURN_5}") is Refusal.TOKEN_TOMBSTONED
    assert refused(started, BOOKING, derived) is Refusal.TOKEN_TOMBSTONED
    with pytest.raises(GateRefused) as caught:
        started.memory.store.put(gate, "gate", "Another one.", "anna/old")
    assert caught.value.refusal is Refusal.KEY_TOMBSTONED
    # `new` was accepted before the expiry, and after what has expired: a cut-off is the position of its own source.
    assert started.memory.store.put(gate, "gate", "Gate B12.", "anna/new") == 2
    assert refused(started, BOOKING, "anna/new") is None


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


def test_every_version_of_a_fact_goes_when_its_newest_has_expired_and_none_before(started: Deployment) -> None:
    scope: Scope = scope_of(ANNA)
    for name in ("1", "2"):
        started.memory.store.register_source(scope, name)
    put = started.memory.store.put
    put(scope, "gate", "Gate B12.", "1")
    put(scope, "gate", "Gate C3.", "2", expires=EXPIRY.timestamp(), confirmed=True)
    put(scope, "seat", "Aisle.", "1", expires=EXPIRY.timestamp(), confirmed=True)
    put(scope, "seat", "Window.", "2")
    started.clock.at = EXPIRY - timedelta(microseconds=1)
    assert sweep(started) == []
    started.clock.at = EXPIRY
    (job,) = sweep(started)
    started.run()
    assert started.ended(job) == ERASED
    assert started.rows("SELECT value FROM facts ORDER BY version") == [("Aisle.",), ("Window.",)]


@pytest.mark.case(49)
@pytest.mark.parametrize("deployment", ["sqlite"], indirect=True)  # PostgreSQL stores nothing but instants
def test_time_is_told_by_its_instant_and_one_that_names_none_stops_nobody_else(
    started: Deployment,
) -> None:
    book(started, BERTA)
    book(started)
    with started.memory.store._engine.begin() as connection:
        connection.exec_driver_sql("UPDATE memories SET expires_at = 'next week' WHERE user_id = 'berta'")
        connection.exec_driver_sql(
            "UPDATE memories SET expires_at = '2026-10-27T11:01:00+02:00' WHERE user_id = 'anna'"
        )
    started.clock.at = EXPIRY - SECOND
    assert sweep(started) == []
    started.clock.at = EXPIRY
    (job,) = sweep(started)
    started.run()
    assert started.ended(job) == ERASED
    assert started.rows("SELECT user_id FROM memories") == [("berta",)]


def test_workers_that_look_at_once_open_one_job(started: Deployment) -> None:
    for who in (ANNA, BERTA):
        book(started, who)
    started.clock.at = EXPIRY
    with ThreadPoolExecutor(4) as pool:
        opened = [job for jobs in pool.map(sweep, [started] * 4) for job in jobs]
    assert len(opened) == len(set(opened)) == 2
    started.run()
    assert [started.ended(job) for job in opened] == [ERASED] * 2
