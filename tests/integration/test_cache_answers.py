"""Filling the cache: an answer belongs to exactly its scope, expires, and names nobody."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from adapters.cache.cache import LONGEST
from adapters.cache.find import KIND as CACHE_KEY
from adapters.cache.keys import Keys
from adapters.cache.options import KINDS
from adapters.drafts.step import KINDS as DRAFTS
from adapters.memory.chains.named import KIND as MEMORY
from adapters.memory.keyed.named import CANDIDATE, EVENT
from adapters.memory.tables import KIND as FACT
from adapters.vector.tables import KIND as POINT
from orchestrator import Gate, InvalidRequest, Keyring, Scope, SelectorKind, Transient
from tests.fakes import FakeClock
from tests.integration.cache_harness import (
    ALLERGY,
    ANNA,
    ELSEWHERE,
    EVERYWHERE,
    FOREIGN,
    NEIGHBOUR,
    PASSPORT,
    Cache,
    build,
)


def test_answer_is_given_back_in_exactly_its_scope(cache: Cache) -> None:
    cache.fill(ANNA, "Which passport?", PASSPORT)
    assert cache.answers.get(ANNA, "Which passport?") == "answer to Which passport?"
    for scope in (ELSEWHERE, EVERYWHERE, NEIGHBOUR, FOREIGN):
        assert cache.answers.get(scope, "Which passport?") is None
    assert cache.answers.get(ANNA, "which passport?") is None


def test_answer_expires_and_is_then_no_target(cache: Cache) -> None:
    assert cache.answers.put(ANNA, "soon gone", "x", [PASSPORT], 1, 3600)
    key = cache.key(ANNA, "soon gone")
    assert 0 < cache.raw.ttl(key) <= 3600
    cache.raw.delete(key)  # as expiry does: the set of keys still lists it
    for order in (cache.order(known=(PASSPORT,)), cache.order(kind=SelectorKind.SUBJECT)):
        assert cache.found(order) == ()
        assert cache.remaining(order) == 0
    (holding,) = cache.adapter.find([cache.order()])
    assert holding.no_lineage == 0


def test_second_fill_replaces_the_lineage_and_the_expiry(cache: Cache) -> None:
    cache.answers.put(ANNA, "q", "old", [PASSPORT], 1, 10)
    cache.answers.put(ANNA, "q", "new", [ALLERGY], 1, 9999)
    assert cache.answers.get(ANNA, "q") == "new"
    assert cache.raw.ttl(cache.key(ANNA, "q")) > 5000
    assert cache.found(cache.order(known=(PASSPORT,))) == ()


@pytest.mark.parametrize(
    ("said", "revision", "ttl"),
    [
        ("revision must be 0 or more", -1, 1),
        ("ttl must be more than 0", 1, 0),
        ("ttl must be more than 0", 1, math.nan),
        ("ttl must be more than 0", 1, math.nextafter(LONGEST, math.inf)),
        ("ttl must be more than 0", 1, 1e17),  # a time that no server can tell
        ("ttl must be more than 0", 1, math.inf),
    ],
)
def test_fill_out_of_range_is_refused_and_leaves_nothing(cache: Cache, said: str, revision: int, ttl: float) -> None:
    with pytest.raises(InvalidRequest, match=said):
        cache.answers.put(ANNA, "q", "a", [PASSPORT], revision, ttl)
    assert cache.dump() == {}
    assert cache.answers.put(ANNA, "q", "a", [PASSPORT], 0, LONGEST)


def test_fill_that_fails_on_its_way_leaves_nothing_that_a_job_does_not_find(cache: Cache) -> None:
    members = Keys(gate=cache.gate, prefix="cache").subject(ANNA).members
    cache.raw.set(members, "of another kind")  # the script meets it, and what it has done before stays
    with pytest.raises(Transient):
        cache.fill(ANNA, "q", PASSPORT)
    cache.raw.delete(members)
    order = cache.order(known=(PASSPORT,))
    assert len(cache.found(order)) == len(cache.dump()) == cache.remaining(order)


def test_no_key_and_no_bookkeeping_names_a_person_or_a_question(cache: Cache) -> None:
    scope = Scope(tenant="tenant-secret", user="hans@example.org", project="project-secret")
    cache.fill(scope, "question-secret", PASSPORT)
    cache.forget(cache.order(scope, known=(PASSPORT,), revision=4))
    cache.fill(scope, "question-secret", PASSPORT, revision=4)
    text = b" ".join(
        part
        for key in cache.raw.scan_iter()
        for part in (key, *(cache.raw.smembers(key) if cache.raw.type(key) == b"set" else ()))
    )
    assert text.count(b"cache:{") >= 4
    for word in (b"hans", b"secret"):
        assert word not in text


def test_answer_that_names_no_origin_is_refused(cache: Cache) -> None:
    with pytest.raises(InvalidRequest, match="made_from must name"):
        cache.answers.put(ANNA, "q", "a", [], 1)
    assert cache.dump() == {}


@pytest.mark.parametrize("kind", ["facts", "Fact", "", "backup_copy"])
def test_origin_of_a_kind_that_no_store_has_is_refused(cache: Cache, kind: str) -> None:
    with pytest.raises(InvalidRequest, match=r"a kind that no store has .* other_kinds"):
        cache.answers.put(ANNA, "q", "a", [PASSPORT, replace(PASSPORT, kind=kind)], 1)
    assert cache.dump() == {}


def test_kinds_of_stores_that_are_not_ours_are_told_by_the_configuration(redis_url: str, tmp_path: Path) -> None:
    adapter = build(redis_url, tmp_path, Gate(Keyring.create()), FakeClock(), other_kinds="note,summary")
    assert adapter.answers.put(ANNA, "q", "a", [replace(PASSPORT, kind="note")], 1)
    assert adapter.answers.put(ANNA, "r", "a", [PASSPORT], 1)
    adapter.close()


def test_every_kind_that_a_store_hands_out_may_be_an_origin() -> None:
    of_stores = {FACT, MEMORY, EVENT, CANDIDATE, *DRAFTS, POINT, CACHE_KEY}
    assert of_stores == KINDS
