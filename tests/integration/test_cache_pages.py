"""Many entries and many orders: the cache gives them in pages and takes them in batches."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from orchestrator import MAX_PAGE, Erased, EraseOrder, InvalidRequest, Seen, Target
from tests.integration.cache_harness import ANNA, NEIGHBOUR, PASSPORT, Cache


def plant(cache: Cache, count: int) -> None:
    """Write many entries as the adapter keeps them, faster than one fill after the other."""
    base = cache.key(ANNA, "").split(":a:")[0]
    scope = cache.gate.handle(ANNA.tenant, "cache-scope", ANNA.canonical())
    entry: dict[str, str | int] = {
        "answer": "x",
        "scope": scope,
        "made_from": json.dumps(["fact:f-1@2"]),
        "revision": "1",
    }
    keys = [f"{base}:a:{n:032x}" for n in range(count)]
    for start in range(0, count, 1000):
        with cache.raw.pipeline(transaction=False) as pipeline:
            for key in keys[start : start + 1000]:
                for name, value in entry.items():
                    pipeline.hset(key, name, value)
            pipeline.sadd(f"{base}:keys", *keys[start : start + 1000])
            pipeline.execute()


def pages(cache: Cache, order: EraseOrder) -> list[Sequence[Target]]:
    found: list[Sequence[Target]] = []
    while True:
        (holding,) = cache.adapter.find([order])
        found.append(holding.targets)
        if holding.cursor is None:
            return found
        order = replace(order, cursor=holding.cursor)


@pytest.mark.parametrize(("count", "sizes"), [(1000, [1000]), (1001, [1000, 1]), (2001, [1000, 1000, 1])])
def test_many_entries_go_in_pages(cache: Cache, count: int, sizes: list[int]) -> None:
    plant(cache, count)
    cache.fill(NEIGHBOUR, "stays", PASSPORT)
    order = cache.order(known=(PASSPORT,), revision=2)
    assert cache.remaining(order) == count
    found = pages(cache, order)
    assert [len(page) for page in found] == sizes
    assert max(sizes) <= MAX_PAGE
    assert len({target.id for page in found for target in page}) == count
    erased = cache.adapter.erase([replace(order, targets=tuple(page)) for page in found])
    assert [answer.erased for answer in erased] == sizes
    assert cache.remaining(order) == 0
    assert len(cache.dump()) == 1


def test_batch_of_more_orders_than_one_round_trip(cache: Cache) -> None:
    people = [replace(ANNA, user=f"user-{n}") for n in range(cache.adapter.max_batch + 1)]
    for person in people:
        for n in range(3):
            cache.fill(person, f"q{n}", PASSPORT)
    orders = [cache.order(person, known=(PASSPORT,), revision=2) for person in people]
    found = cache.adapter.find(orders)
    full = [replace(o, targets=h.targets) for o, h in zip(orders, found, strict=True)]
    assert cache.adapter.erase(full) == [Erased(erased=3)] * len(people)
    assert cache.adapter.verify(full) == [Seen()] * len(people)
    for call in (cache.adapter.find, cache.adapter.erase, cache.adapter.verify):
        assert list(call([])) == []


def test_cursor_of_another_store_is_refused(cache: Cache) -> None:
    with pytest.raises(InvalidRequest, match="cursor"):
        cache.adapter.find([cache.order(cursor="7")])
