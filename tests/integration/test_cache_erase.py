"""What erase takes out of the cache: exactly its targets, and nothing of a neighbour."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from orchestrator import Erased, SelectorKind, Target
from tests.integration.cache_harness import ALLERGY, ANNA, ELSEWHERE, FOREIGN, NEIGHBOUR, PASSPORT, Cache, build


def test_erase_takes_its_targets_and_leaves_every_neighbour_as_it_was(cache: Cache) -> None:
    cache.fill(ANNA, "goes", PASSPORT)
    cache.fill(ANNA, "stays", ALLERGY)
    for scope in (ELSEWHERE, NEIGHBOUR, FOREIGN):
        cache.fill(scope, "goes", ALLERGY)
    before = cache.dump()
    order = cache.order(known=(PASSPORT,), revision=3)
    assert cache.forget(order) == Erased(erased=1)
    del before[cache.key(ANNA, "goes").encode()]
    assert cache.dump() == before
    assert cache.remaining(order) == 0
    assert cache.key(ANNA, "goes").encode() not in cache.raw.smembers(f"{cache.key(ANNA, '').split(':a:')[0]}:keys")


def test_repeat_finds_everything_already_absent(cache: Cache) -> None:
    cache.fill(ANNA, "goes", PASSPORT)
    order = cache.order(known=(PASSPORT,), revision=3)
    full = replace(order, targets=cache.found(order))
    assert cache.adapter.erase([full]) == [Erased(erased=1)]
    before = cache.dump()
    assert cache.adapter.erase([full]) == [Erased(already_absent=1)]
    assert cache.dump() == before


def test_two_orders_of_a_batch_that_name_one_key_count_it_once(cache: Cache) -> None:
    cache.fill(ANNA, "goes", PASSPORT)
    target = Target(kind="cache_key", id=cache.key(ANNA, "goes"))
    orders = [cache.order(targets=(target,), revision=2), cache.order(targets=(target,), revision=2)]
    assert cache.adapter.erase(orders) == [Erased(erased=1), Erased(already_absent=1)]


def test_another_users_key_is_not_touched_and_never_counts_as_absent(cache: Cache) -> None:
    for scope in (FOREIGN, NEIGHBOUR):
        cache.fill(scope, "goes", PASSPORT)
    before = cache.dump()
    there, foreign = (Target(kind="cache_key", id=cache.key(s, "goes")) for s in (NEIGHBOUR, FOREIGN))
    gone = Target(kind="cache_key", id=cache.key(NEIGHBOUR, "never asked"))
    order = cache.order(kind=SelectorKind.SUBJECT, targets=(there, foreign, gone), known=(PASSPORT,), revision=2)
    (answer,) = cache.adapter.erase([order])
    assert answer == Erased(already_absent=2)  # the other tenant's and the one that is not there
    assert cache.dump() == before
    assert cache.remaining(order) == 0


def test_bookkeeping_is_not_removed_and_counts_as_left_over(cache: Cache) -> None:
    cache.fill(ANNA, "stays", ALLERGY)
    base = cache.key(ANNA, "").split(":a:")[0]
    books = tuple(Target(kind="cache_key", id=f"{base}:{name}") for name in ("keys", "scopes", "rev:unknown"))
    assert cache.adapter.erase([cache.order(targets=books)]) == [Erased(already_absent=1)]
    assert cache.raw.exists(*(t.id for t in books)) == 2


@pytest.mark.parametrize(
    "name",
    ["user:1", "user:10", "User:1", "*", "user:*", "user?1", "[a-z]", "a\\*", "'\"`;--", "line\nbreak", "😀",
     "caf\u00e9", "cafe\u0301", "{brace}", "x" * 512, "%_"],
)  # fmt: skip
def test_names_are_taken_exactly(cache: Cache, name: str) -> None:
    others = [n for n in ("user:1", "user:10", "User:1", "😀", "caf\u00e9", "cafe\u0301", "anything") if n != name]
    for user in (name, *others):
        cache.fill(replace(ANNA, user=user), f"question {name}", replace(PASSPORT, id=name))
    before = cache.dump()
    order = cache.order(replace(ANNA, user=name), known=(replace(PASSPORT, id=name),), revision=2)
    assert cache.forget(order) == Erased(erased=1)
    assert cache.remaining(order) == 0
    del before[cache.key(replace(ANNA, user=name), f"question {name}").encode()]
    assert cache.dump() == before


def test_prefix_of_a_neighbouring_cache_is_another_cache(cache: Cache, redis_url: str, tmp_path: Path) -> None:
    other = build(redis_url, tmp_path, cache.gate, cache.clock, prefix="cache-2")
    other.answers.put(ANNA, "q", "x", [PASSPORT], 1)
    cache.fill(ANNA, "q", PASSPORT)
    order = cache.order(known=(PASSPORT,), revision=2)
    assert cache.forget(order) == Erased(erased=1)
    assert cache.remaining(order) == 0
    assert other.answers.get(ANNA, "q") == "x"
    other.close()


def test_log_lines_hold_ids_and_counts_alone(cache: Cache) -> None:
    cache.fill(ANNA, "Which passport?", PASSPORT)
    order = cache.order(known=(PASSPORT,), revision=2)
    with capture_logs() as logs:
        cache.forget(order)
    assert logs == [{"event": "answers.erased", "job_id": str(order.job), "erased": 1, "log_level": "info"}]
