"""What find lists of the cache: the entries that were made from the known targets."""

from __future__ import annotations

from dataclasses import replace

from orchestrator import SelectorKind, Target
from tests.integration.cache_harness import ALLERGY, ANNA, ELSEWHERE, EVERYWHERE, FOREIGN, NEIGHBOUR, PASSPORT, Cache


def test_find_follows_lineage_by_id_and_version(cache: Cache) -> None:
    cache.fill(ANNA, "both", PASSPORT, ALLERGY)
    cache.fill(ANNA, "older version", replace(PASSPORT, version=1))
    cache.fill(ANNA, "longer id", replace(PASSPORT, id="f-10"))
    cache.fill(ANNA, "other kind", replace(PASSPORT, kind="memory"))
    cache.fill(ELSEWHERE, "in another project", PASSPORT)
    cache.fill(NEIGHBOUR, "neighbour's", PASSPORT)
    cache.fill(ANNA, "of unknown origin")
    (holding,) = cache.adapter.find([cache.order(known=(PASSPORT,))])
    assert {t.id for t in holding.targets} == {cache.key(ANNA, "both"), cache.key(ELSEWHERE, "in another project")}
    assert {(t.kind, t.derived_of) for t in holding.targets} == {("cache_key", "fact:f-1@2")}
    assert holding.no_lineage == 1
    assert holding.cursor is None


def test_known_target_without_a_version_names_every_version(cache: Cache) -> None:
    cache.fill(ANNA, "one", PASSPORT)
    cache.fill(ANNA, "two", replace(PASSPORT, version=1))
    assert len(cache.found(cache.order(known=(replace(PASSPORT, version=0),)))) == 2


def test_answer_made_from_an_answer_is_found_in_the_next_pass(cache: Cache) -> None:
    cache.fill(ANNA, "first", PASSPORT)
    first = Target(kind="cache_key", id=cache.key(ANNA, "first"))
    cache.fill(ANNA, "second", first)
    assert [t.id for t in cache.found(cache.order(known=(PASSPORT,)))] == [first.id]
    assert [t.id for t in cache.found(cache.order(known=(first,)))] == [cache.key(ANNA, "second")]


def test_subject_is_everything_of_the_scope_and_without_a_project_everything_of_the_user(cache: Cache) -> None:
    for scope in (ANNA, ELSEWHERE, EVERYWHERE, NEIGHBOUR, FOREIGN):
        cache.fill(scope, "with origin", PASSPORT)
        cache.fill(scope, "without")
    here = cache.found(cache.order(kind=SelectorKind.SUBJECT))
    assert {t.id for t in here} == {cache.key(ANNA, q) for q in ("with origin", "without")}
    (holding,) = cache.adapter.find([cache.order(EVERYWHERE, SelectorKind.SUBJECT)])
    wanted = {cache.key(s, q) for s in (ANNA, ELSEWHERE, EVERYWHERE) for q in ("with origin", "without")}
    assert {t.id for t in holding.targets} == wanted
    assert holding.no_lineage == 0
