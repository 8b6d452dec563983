"""What a job finds in the index: what was made from what is known, by each of its versions, and nothing else."""

from __future__ import annotations

import struct
from dataclasses import replace
from datetime import timedelta

import pytest

from adapters.memory.chains import TaskScope
from adapters.vector import Point
from orchestrator import InvalidRequest, Scope, Selector, SelectorKind, Target
from orchestrator.scan.fingerprints import Fingerprinter
from tests.integration.vector_harness import (
    ANNA,
    BERTA,
    DIMENSIONS,
    ELSEWHERE,
    EVERYWHERE,
    EXPIRED,
    FOREIGN,
    PASSPORT,
    RING,
    SUBJECT,
    Shelf,
    by_key,
    by_source,
    embed,
    index_url,
    shelf,
)

__all__ = ["index_url", "shelf"]
TRIPS = TaskScope("anna", "trips", "acme")


def put(shelf: Shelf, made_from: Target, scope: Scope = ANNA, source: str = "s", part: int = 0) -> str:
    point = Point(made_from=made_from, source=source, vector=embed(f"{made_from}{part}"), part=part)
    (id_,) = shelf.unguarded.put(scope, [point]).ids
    return id_


def ids(targets: tuple[Target, ...]) -> set[str]:
    assert len(targets) == len({target.id for target in targets})
    assert {target.kind for target in targets} <= {"point"}
    return {target.id for target in targets}


def test_key_takes_the_points_of_all_versions_of_its_fact_and_of_no_other(shelf: Shelf) -> None:
    first = shelf.learn(ANNA, "passport", PASSPORT)
    second = shelf.learn(ANNA, "passport", "It is P7654321 by now.")
    others = [shelf.learn(ANNA, "seat", "aisle seat"), shelf.learn(BERTA, "passport", PASSPORT)]
    shelf.learn(FOREIGN, "passport", PASSPORT)
    _, order = shelf.revoke(shelf.order(by_key()))
    found = shelf.found(order)
    named = {f"fact:{fact.id}@{fact.version}" for fact in (first, second)}
    assert {target.derived_of for target in found} == named
    assert len(found) == 2
    assert not {target.derived_of for target in found} & {f"fact:{other.id}@1" for other in others}


def test_lineage_is_exact_in_kind_id_and_version_and_0_stands_for_every_version(shelf: Shelf) -> None:
    made = [
        Target(kind=kind, id=id_, version=version)
        for kind in ("fact", "memory")
        for id_ in ("f-1", "f-10", "F-1")
        for version in (0, 1, 2, 10)
    ]
    handles = {record: put(shelf, record) for record in made}
    fact = Target(kind="fact", id="f-1", version=1)
    unversioned = replace(fact, version=0)
    assert ids(shelf.found(shelf.order(by_key(), known=(fact,)))) == {handles[fact], handles[unversioned]}
    every = {handles[replace(fact, version=version)] for version in (0, 1, 2, 10)}
    assert ids(shelf.found(shelf.order(by_key(), known=(unversioned,)))) == every
    assert ids(shelf.found(shelf.order(by_key(), known=(fact, unversioned, fact)))) == every
    assert shelf.found(shelf.order(by_key())) == ()


def test_source_takes_its_points_in_every_project_though_nothing_is_known_of_them(shelf: Shelf) -> None:
    fact = Target(kind="fact", id="f-1", version=1)
    mine = {put(shelf, fact, scope, "turn-6") for scope in (ANNA, ELSEWHERE, EVERYWHERE)}
    for scope, source in ((ANNA, "turn-60"), (ANNA, "Turn-6"), (BERTA, "turn-6"), (FOREIGN, "turn-6")):
        put(shelf, fact, scope, source, part=1)
    assert ids(shelf.found(shelf.order(by_source("turn-6")))) == mine
    assert ids(shelf.found(shelf.order(by_source("turn-%")))) == set()


def test_subject_takes_the_whole_scope_and_what_was_made_from_it_elsewhere(shelf: Shelf) -> None:
    fact, orphan = Target(kind="fact", id="f-1", version=1), Target(kind="fact", id="f-2", version=1)
    here = {put(shelf, fact), put(shelf, orphan)}
    elsewhere = {put(shelf, fact, ELSEWHERE)}
    other = {put(shelf, orphan, ELSEWHERE), put(shelf, orphan, EVERYWHERE)}
    put(shelf, fact, BERTA)
    put(shelf, fact, FOREIGN)
    assert ids(shelf.found(shelf.order(SUBJECT, known=(fact,)))) == here | elsewhere
    assert ids(shelf.found(shelf.order(SUBJECT, EVERYWHERE))) == here | elsewhere | other


def test_what_has_expired_is_followed_by_lineage_alone(shelf: Shelf) -> None:
    told = shelf.remember(TRIPS, "The gate is B12.", "anna/turn-1", ttl_days=7)
    stays = shelf.remember(TRIPS, "I eat fish.", "anna/turn-1")
    for memory in (told, stays):
        assert shelf.enter(ANNA, memory, memory.id, "anna/turn-1").ids
    shelf.clock.at += timedelta(days=7)
    answer, order = shelf.revoke(shelf.order(EXPIRED))
    assert (answer.targets, order.revision) == ((told,), None)
    assert [t.derived_of for t in shelf.found(order)] == [f"memory:{told.id}@{told.version}"]
    order = replace(order, targets=shelf.found(order))
    assert shelf.seen(order).remaining == 1
    assert (shelf.erase(order).erased, shelf.seen(order).remaining) == (1, 0)
    assert shelf.shown(ANNA, stays.id) == [stays]


def test_every_version_of_a_chain_goes_with_it(shelf: Shelf) -> None:
    told = shelf.remember(TRIPS, "The gate is B12.", "anna/turn-1")
    shelf.enter(ANNA, told, "old")
    corrected = shelf.memory.chains.correct(TRIPS, told.version, "The gate is C3.", "anna/turn-1")
    shelf.enter(ANNA, replace(told, version=corrected), "new")
    assert shelf.shown(ANNA, "old") == [replace(told, version=corrected)]
    erased, seen = shelf.run(Selector(kind=SelectorKind.MEMORY, value=told.id))
    assert (erased.erased, seen.remaining, shelf.points()) == (2, 0, [])


def test_what_was_made_from_what_was_found_is_found_in_the_next_pass(shelf: Shelf) -> None:
    fact, draft = Target(kind="fact", id="f-1", version=1), Target(kind="draft", id="d-7", version=3)
    first, of_draft = put(shelf, fact), put(shelf, draft)
    of_point = put(shelf, Target(kind="point", id=first))
    put(shelf, replace(draft, version=4))
    put(shelf, Target(kind="point", id=of_draft, version=0), BERTA)
    found = shelf.found(shelf.order(by_key(), known=(fact,)))
    assert ids(found) == {first}
    # The draft was found in another store meanwhile.
    again = shelf.found(shelf.order(by_key(), known=(fact, *found, replace(draft, derived_of="fact:f-1@1"))))
    assert ids(again) == {first, of_draft, of_point}
    assert f"point:{first}@0" in {target.derived_of for target in again}


def test_points_that_name_no_origin_are_counted_once_and_go_with_the_subject(shelf: Shelf) -> None:
    fact = Target(kind="fact", id="f-1", version=1)
    silent = put(shelf, fact)
    put(shelf, fact, BERTA)
    put(shelf, fact, ELSEWHERE)
    shelf.change("UPDATE vector_points SET kind = NULL, origin = NULL, version = NULL")

    def counted(selector: Selector, scope: Scope = ANNA, cursor: str | None = None) -> int:
        (holding,) = shelf.adapter.find([shelf.order(selector, scope, known=(fact,), cursor=cursor)])
        return holding.no_lineage

    assert (counted(by_key()), counted(EXPIRED), counted(by_key(), EVERYWHERE)) == (1, 1, 2)
    assert counted(by_key(), cursor="after:0") == 0, "the first page tells it"
    assert counted(by_source("s")) == 0, "those of the source are found by it"
    assert counted(SUBJECT) == 0
    assert ids(shelf.found(shelf.order(SUBJECT))) == {silent}


def test_pages_hold_a_thousand_and_together_hold_all(shelf: Shelf) -> None:
    fact = Target(kind="fact", id="f-1", version=1)
    for parts in (range(1000), range(1000, 1300)):
        shelf.unguarded.put(ANNA, [Point(made_from=fact, source="s", vector=embed(str(n)), part=n) for n in parts])
    for selector in (SUBJECT, by_key(), by_source("s")):
        order, pages = shelf.order(selector, known=(fact,)), list[tuple[Target, ...]]()
        while True:
            (holding,) = shelf.adapter.find([order])
            pages.append(holding.targets)
            if holding.cursor is None:
                break
            order = replace(order, cursor=holding.cursor)
        assert [len(page) for page in pages] == [1000, 300]
        assert {target.id for page in pages for target in page} == shelf.ids()


def test_cursor_of_another_store_is_refused(shelf: Shelf) -> None:
    with pytest.raises(InvalidRequest, match="cursor"):
        shelf.found(shelf.order(SUBJECT, cursor="7@1"))


@pytest.mark.parametrize("scope", [ANNA, EVERYWHERE])
def test_what_a_person_states_after_the_revoke_is_neither_found_nor_left_over(shelf: Shelf, scope: Scope) -> None:
    shelf.learn(ANNA, "passport", PASSPORT)
    _, order = shelf.revoke(shelf.order(SUBJECT, scope))
    fresh = shelf.learn(ANNA, "passport", "It is P7654321 by now.", "anna/new")
    order = replace(order, targets=shelf.found(order))
    assert (shelf.erase(order).erased, shelf.seen(order).remaining) == (1, 0)
    assert shelf.shown(ANNA, PASSPORT) == [fresh]


def test_fingerprints_are_those_of_the_float32_bytes(shelf: Shelf) -> None:
    fact = shelf.learn(ANNA, "passport", PASSPORT)
    other = shelf.learn(ANNA, "seat", "aisle seat")
    (holding,) = shelf.adapter.find([shelf.order(by_key(), known=(fact,))])
    by = Fingerprinter.of(RING)
    if shelf.url.startswith("postgresql"):
        assert holding.fingerprints == (), "nobody could look for them"
        return
    packed = struct.pack(f"<{DIMENSIONS}f", *embed(PASSPORT))
    assert set(holding.fingerprints) <= set(by.of_bytes(packed, stride=1).rows)
    for end in (packed[:16], packed[-16:]):
        assert set(holding.fingerprints) >= set(by.of_bytes(end).rows) != set()
    (second,) = shelf.adapter.find([shelf.order(by_key(), known=(other,))])
    assert not set(second.fingerprints) & set(holding.fingerprints)


def test_orders_of_a_batch_are_answered_each_in_its_place(shelf: Shelf) -> None:
    facts = [Target(kind="fact", id=f"f-{n}", version=1) for n in range(30)]
    handles = [put(shelf, fact) for fact in facts]
    orders = [shelf.order(by_key(), known=(fact,)) for fact in facts]
    assert [ids(holding.targets) for holding in shelf.adapter.find(orders)] == [{handle} for handle in handles]
