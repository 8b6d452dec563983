"""What has expired goes by a job of its own: from the source, and with it the copies that were made from it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from orchestrator import GateRefused, Refusal, Scope, Target
from orchestrator.domain.job import Trigger
from tests.integration.expiry_harness import (
    AT_WORK,
    BOOKING,
    ERASED,
    EXPIRY,
    SECOND,
    TURN_5,
    answered,
    book,
    refused,
    started,
    sweep,
)
from tests.integration.jobs_harness import ANNA, BERTA, TEXTS, Deployment, Died, deployment, scope_of

__all__ = ["deployment", "started"]


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
