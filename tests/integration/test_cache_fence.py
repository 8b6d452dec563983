"""The fence of the cache: a fill that began before an erase is refused after it."""

from __future__ import annotations

import pytest

from orchestrator import Erased, Scope, SelectorKind
from tests.integration.cache_harness import ALLERGY, ANNA, ELSEWHERE, EVERYWHERE, NEIGHBOUR, PASSPORT, Cache


def test_order_without_targets_removes_nothing_but_raises_the_fence(cache: Cache) -> None:
    cache.fill(ANNA, "stays", PASSPORT)
    before = cache.dump()
    assert cache.adapter.erase([cache.order(revision=5)]) == [Erased()]
    assert cache.dump() == before
    assert not cache.answers.put(ANNA, "late", "x", [PASSPORT], 4)
    assert cache.answers.put(ANNA, "in time", "x", [ALLERGY], 5)


@pytest.mark.case(30)
@pytest.mark.parametrize("scope", [ANNA, EVERYWHERE], ids=["project", "user"])
def test_fill_that_began_before_the_erase_is_refused(cache: Cache, scope: Scope) -> None:
    cache.fill(ANNA, "asked before", ALLERGY)
    assert cache.answers.get(ANNA, "Which passport?") is None
    loaded, loaded_under = "P1234567", 1  # an application reads the fact under revision 1, and is slow
    # Meanwhile the source revokes, which raises the revision to 2, and the cache is erased: nothing is there.
    order = cache.order(scope, known=(PASSPORT,), revision=2)
    assert cache.forget(order) == Erased()
    assert not cache.answers.put(ANNA, "Which passport?", loaded, [PASSPORT], loaded_under)
    assert cache.answers.get(ANNA, "Which passport?") is None
    assert cache.remaining(order) == 0
    assert cache.answers.put(ANNA, "Which passport?", "none is known", [ALLERGY], 2)
    assert cache.answers.put(NEIGHBOUR, "Which passport?", "x", [PASSPORT], 1)
    assert cache.remaining(order) == 0


def test_fence_never_sinks_and_a_preview_raises_none(cache: Cache) -> None:
    cache.adapter.erase([cache.order(revision=7)])
    cache.adapter.erase([cache.order(revision=3), cache.order(revision=None)])
    assert not cache.answers.put(ANNA, "q", "x", [ALLERGY], 6)
    assert cache.answers.put(ANNA, "q", "x", [ALLERGY], 7)


def test_source_that_reached_into_another_project_raises_the_fence_there(cache: Cache) -> None:
    cache.fill(ELSEWHERE, "q", PASSPORT)
    assert cache.forget(cache.order(ANNA, SelectorKind.SOURCE, known=(PASSPORT,), revision=2)) == Erased(erased=1)
    assert not cache.answers.put(ELSEWHERE, "q", "x", [PASSPORT], 1)
