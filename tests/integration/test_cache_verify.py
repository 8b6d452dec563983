"""What verify sees of the cache, also where find does not look."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator import SelectorKind, Target
from tests.integration.cache_harness import ALLERGY, ANNA, NEIGHBOUR, PASSPORT, Cache


@pytest.mark.case(108)
def test_verify_sees_what_the_set_of_keys_does_not_list(cache: Cache) -> None:
    cache.fill(ANNA, "hidden", PASSPORT)
    base = cache.key(ANNA, "").split(":a:")[0]
    cache.raw.delete(f"{base}:keys")
    order = cache.order(known=(PASSPORT,))
    assert cache.found(order) == ()
    assert cache.remaining(order) == 1
    assert cache.remaining(cache.order(kind=SelectorKind.SUBJECT)) == 1
    assert cache.remaining(cache.order(known=(ALLERGY,))) == 0


@pytest.mark.parametrize("kind", ["string", "bare hash"])
def test_verify_counts_what_does_not_say_where_it_belongs(cache: Cache, kind: str) -> None:
    key = cache.key(ANNA, "planted")
    if kind == "string":
        cache.raw.set(key, "an answer")
    else:
        cache.raw.hset(key, "answer", "an answer")
    target = Target(kind="cache_key", id=key, derived_of="fact:f-1@2")
    assert cache.remaining(cache.order(targets=(target,), revision=2)) == 1
    assert cache.remaining(cache.order(kind=SelectorKind.SUBJECT, revision=2)) == 1
    assert cache.remaining(cache.order(NEIGHBOUR, SelectorKind.SUBJECT, revision=2)) == 0


def test_verify_counts_an_entry_once_however_it_was_seen(cache: Cache) -> None:
    cache.fill(ANNA, "q", PASSPORT, ALLERGY)
    order = cache.order(kind=SelectorKind.SUBJECT, known=(PASSPORT, ALLERGY))
    assert cache.remaining(replace(order, targets=cache.found(order))) == 1


def test_store_that_says_erased_and_keeps_the_data_is_caught(cache: Cache) -> None:
    cache.fill(ANNA, "q", PASSPORT)
    order = cache.order(known=(PASSPORT,), revision=2)
    kept = cache.raw.dump(cache.key(ANNA, "q"))
    full = replace(order, targets=cache.found(order))
    cache.adapter.erase([full])
    cache.raw.restore(cache.key(ANNA, "q"), 0, kept)  # type: ignore[arg-type]
    assert cache.remaining(replace(full, known=())) == 1
    assert cache.remaining(replace(full, targets=())) == 1


def test_question_answered_afresh_from_what_stays_is_no_copy(cache: Cache) -> None:
    cache.fill(ANNA, "asked often", PASSPORT, ALLERGY)
    order = cache.order(known=(PASSPORT,), revision=2)
    full = replace(order, targets=cache.found(order))
    cache.adapter.erase([full])
    cache.fill(ANNA, "asked often", ALLERGY, revision=2)
    assert cache.remaining(full) == 0
    cache.fill(ANNA, "asked often", PASSPORT, revision=9)
    assert cache.remaining(full) == 1
