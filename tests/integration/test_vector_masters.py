"""Which records of the memory store others may be made from: those alone that it hands out now, in that very scope."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
import sqlalchemy as sa

from adapters.memory.chains import TaskScope
from orchestrator import Target
from tests.integration.vector_harness import (
    ANNA,
    BERTA,
    ELSEWHERE,
    EVERYWHERE,
    FOREIGN,
    PASSPORT,
    SUBJECT,
    Shelf,
    by_key,
    sourced,
)

__all__ = ["sourced"]
TRIPS = TaskScope("anna", "trips", "acme")


def test_fact_is_a_master_while_it_is_active_confirmed_unexpired_and_of_this_scope(sourced: Shelf) -> None:
    soon = sourced.clock.at + timedelta(seconds=10)
    fact = sourced.tell(ANNA, "passport", PASSPORT, expires=soon.timestamp())
    guessed = sourced.tell(ANNA, "seat", "aisle", confirmed=False)
    wide = sourced.tell(EVERYWHERE, "meal", "fish", source="anna/wide")
    active = sourced.masters.active
    assert active(ANNA, {fact, guessed, wide}) == {fact: 2}
    assert active(EVERYWHERE, {fact, guessed, wide}) == {wide: 1}
    for scope in (ELSEWHERE, BERTA, FOREIGN):
        assert active(scope, {fact, guessed, wide}) == {}
    for other in (replace(fact, version=2), replace(fact, version=0), replace(fact, kind="memory")):
        assert active(ANNA, {other}) == {}
    assert active(ANNA, {replace(fact, id=fact.id.upper()), replace(fact, id="%"), replace(fact, version=2**63)}) == {}
    sourced.clock.at = soon - timedelta(microseconds=1)
    assert active(ANNA, {fact}) == {fact: 2}
    sourced.clock.at = soon
    assert active(ANNA, {fact}) == {}
    sourced.clock.at = soon - timedelta(seconds=5)
    sourced.revoke(sourced.order(by_key()))
    assert active(ANNA, {fact}) == {}


def test_memory_is_a_master_while_it_is_the_newest_of_its_chain_unexpired_and_not_revoked(sourced: Shelf) -> None:
    active = sourced.masters.active
    assert active(ANNA, {Target(kind="memory", id="1", version=1)}) == {}, "there are no chains yet"
    told = sourced.remember(TRIPS, "The gate is B12.", "anna/turn-1", ttl_days=7)
    other = sourced.remember(TRIPS, "I eat fish.", "anna/turn-1")
    assert active(ANNA, {told, other}) == {told: 2, other: 2}
    for scope in (ELSEWHERE, EVERYWHERE, BERTA, FOREIGN):
        assert active(scope, {told, other}) == {}
    assert active(ANNA, {replace(told, id=other.id), replace(told, id="one"), replace(told, kind="fact")}) == {}
    corrected = sourced.memory.chains.correct(TRIPS, told.version, "The gate is C3.", "anna/turn-1", 7)
    newest = replace(told, version=corrected)
    assert active(ANNA, {told, newest}) == {newest: 3}
    assert active(ANNA, {replace(newest, id=str(corrected))}) == {}, "a chain has the id of its first version"
    sourced.clock.at += timedelta(days=7, seconds=1)
    assert active(ANNA, {newest, other}) == {other: 3}
    sourced.revoke(sourced.order(SUBJECT))
    assert active(ANNA, {other}) == {}


def test_memory_whose_end_names_no_instant_is_no_master(sourced: Shelf) -> None:
    told = sourced.remember(TRIPS, "The gate is B12.", "anna/turn-1", ttl_days=7)
    assert sourced.masters.active(ANNA, {told}) == {told: 1}
    damaged = "UPDATE memories SET expires_at = 'next week'"
    if sourced.memory._url.get_backend_name() == "sqlite":
        sourced.change(damaged, sourced.memory)
        assert sourced.masters.active(ANNA, {told}) == {}
    else:
        with pytest.raises(sa.exc.DataError):  # it stores nothing but instants
            sourced.change(damaged, sourced.memory)


def test_many_records_are_asked_for_at_once(sourced: Shelf) -> None:
    facts = {sourced.tell(ANNA, f"key-{n}", f"Line {n}.", "anna/turn-1") for n in range(40)}
    unknown = {Target(kind="fact", id=f"f-{n}", version=1) for n in range(2_000)}
    assert sourced.masters.active(ANNA, facts | unknown).keys() == facts
