"""Expiry: from which instant on a memory is not recalled, and what a purge takes."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from adapters.memory.chains import MemoryNotFound, SchemaError
from tests.integration.chains_harness import (
    ALICE,
    BOB,
    BOOKING,
    BOOKING_QUESTION,
    DAY,
    EVERYWHERE,
    IN_A_FILE,
    SECOND,
    START,
    TURN_5,
    Chains,
    chains_in,
)

chains = chains_in(*EVERYWHERE)
in_a_file = chains_in(*IN_A_FILE)
NEW_BOOKING, TURN_8 = "The Lisbon hotel booking code is 9K2M.", "trip-planning/turn-8"
WEEK = 7 * DAY


@pytest.mark.req("R101")
def test_recall_stops_at_the_exact_expiry(chains: Chains) -> None:
    chains.store.remember(ALICE, "task", BOOKING, TURN_5, 7)
    chains.clock.at = START + WEEK - SECOND
    assert len(chains.recalled(ALICE, BOOKING_QUESTION)) == 1
    chains.clock.at = START + WEEK
    assert len(chains.recalled(ALICE, BOOKING_QUESTION)) == 0


@pytest.mark.req("R102")
def test_purge_acts_at_the_exact_expiry(chains: Chains) -> None:
    memory_id = chains.store.remember(ALICE, "task", BOOKING, TURN_5, 7)
    chains.clock.at = START + WEEK - SECOND
    assert chains.store.purge_expired() == 0
    assert [v.id for v in chains.store.history(ALICE, memory_id)] == [memory_id]
    chains.clock.at = START + WEEK
    assert [v.id for v in chains.store.history(ALICE, memory_id)] == [memory_id], "told until it is purged"
    assert chains.store.purge_expired() == 1
    with pytest.raises(MemoryNotFound):
        chains.store.history(ALICE, memory_id)


@pytest.mark.req("R103")
def test_purge_removes_the_whole_chain(chains: Chains) -> None:
    old = chains.store.remember(ALICE, "task", BOOKING, TURN_5, 7)
    new = chains.store.correct(ALICE, old, NEW_BOOKING, TURN_8, 7)
    assert (old, new) == (1, 2)
    chains.clock.advance(8 * DAY)
    now = chains.clock.peek()
    assert chains.store.purge_expired() == 2
    for memory_id in (old, new):
        with pytest.raises(MemoryNotFound):
            chains.store.history(ALICE, memory_id)
    (record,) = chains.store.deletions(ALICE)
    assert (record.memory_ids, record.reason, record.deleted_at) == ((1, 2), "expired", now)
    assert chains.rows("SELECT memory_ids FROM deletions") == [("[1, 2]",)]
    assert chains.rows("SELECT count(*) FROM memories") == chains.rows("SELECT count(*) FROM memory_tenants") == [(0,)]
    assert chains.store.purge_expired() == 0
    assert len(chains.store.deletions(ALICE)) == 1


@pytest.mark.req("R104")
def test_newest_decides_whether_a_chain_is_purged(chains: Chains) -> None:
    lasting = chains.store.remember(ALICE, "task", BOOKING, TURN_5)
    expiring = chains.store.correct(ALICE, lasting, NEW_BOOKING, TURN_8, 7)
    first = chains.store.remember(BOB, "task", BOOKING, TURN_5, 7)
    second = chains.store.correct(BOB, first, NEW_BOOKING, TURN_8)
    chains.clock.advance(8 * DAY)
    assert chains.store.purge_expired() == 2
    with pytest.raises(MemoryNotFound):
        chains.store.history(ALICE, lasting)
    assert [record.memory_ids for record in chains.store.deletions(ALICE)] == [(lasting, expiring)]
    assert [v.id for v in chains.store.history(BOB, first)] == [first, second]
    assert chains.ids(BOB, BOOKING_QUESTION) == [second]


def test_purge_takes_every_user_and_writes_one_record_for_each_chain(chains: Chains) -> None:
    ids = [chains.store.remember(scope, "user", BOOKING, TURN_5, 1) for scope in (ALICE, BOB, ALICE)]
    stays = chains.store.remember(BOB, "user", NEW_BOOKING, TURN_5, 9)
    chains.clock.advance(2 * DAY)
    assert chains.store.purge_expired() == 3
    assert [record.memory_ids for record in chains.store.deletions(ALICE)] == [(ids[0],), (ids[2],)]
    assert [record.memory_ids for record in chains.store.deletions(BOB)] == [(ids[1],)]
    assert chains.rows("SELECT id FROM memories") == [(stays,)]


def test_time_to_live_is_not_inherited_by_a_correction(chains: Chains) -> None:
    old = chains.store.remember(ALICE, "task", BOOKING, TURN_5, 7)
    chains.clock.advance(8 * DAY)
    assert chains.recalled(ALICE, BOOKING_QUESTION) == []
    new = chains.store.correct(ALICE, old, NEW_BOOKING, TURN_8)
    assert [(m.id, m.expires_at) for m in chains.recalled(ALICE, BOOKING_QUESTION)] == [(new, None)]


@pytest.mark.case(49)
@pytest.mark.req("R119")
@pytest.mark.parametrize("written", ["2026-10-27T11:01:00+02:00", "2026-10-27T09:01:00Z", "2026-10-27T04:01:00-05:00"])
def test_expiry_compares_instants_whatever_their_offset(chains: Chains, written: str) -> None:
    chains.store.remember(ALICE, "task", BOOKING, TURN_5, 7)
    at = written if chains.url.get_backend_name() == "sqlite" else datetime.fromisoformat(written)
    chains.change("UPDATE memories SET expires_at = :at", at=at)
    chains.clock.at = datetime.fromisoformat("2026-10-27T09:01:00+00:00") - SECOND
    assert [m.expires_at for m in chains.recalled(ALICE, BOOKING_QUESTION)] == [chains.clock.at + SECOND]
    assert chains.store.purge_expired() == 0
    chains.clock.advance(SECOND)
    assert chains.recalled(ALICE, BOOKING_QUESTION) == []
    assert chains.store.purge_expired() == 1


@pytest.mark.req("R119")
def test_clock_of_another_offset_stores_and_compares_the_same_instants(in_a_file: Chains) -> None:
    in_a_file.clock.at = datetime.fromisoformat("2026-10-20T11:01:00+02:00")
    in_a_file.store.remember(ALICE, "task", BOOKING, TURN_5, 7)
    assert in_a_file.rows("SELECT created_at, expires_at FROM memories") == [
        ("2026-10-20T09:01:00+00:00", "2026-10-27T09:01:00+00:00")
    ]
    in_a_file.clock.at = datetime.fromisoformat("2026-10-27T11:01:00+02:00") - timedelta(microseconds=1)
    assert len(in_a_file.recalled(ALICE, BOOKING_QUESTION)) == 1
    in_a_file.clock.advance(timedelta(microseconds=1))
    assert in_a_file.recalled(ALICE, BOOKING_QUESTION) == []


@pytest.mark.req("R119")
@pytest.mark.parametrize("written", ["2026-10-27T09:01:00", "next week"])
def test_time_that_names_no_instant_is_refused_and_not_guessed(in_a_file: Chains, written: str) -> None:
    in_a_file.store.remember(ALICE, "task", BOOKING, TURN_5, 7)
    in_a_file.change("UPDATE memories SET expires_at = :at", at=written)
    for call in (lambda: in_a_file.recalled(ALICE, BOOKING_QUESTION), in_a_file.store.purge_expired):
        with pytest.raises(SchemaError, match=r"^a time in the database names no instant$"):
            call()
    assert in_a_file.rows("SELECT count(*) FROM memories") == [(1,)]
