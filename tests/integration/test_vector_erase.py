"""Erasing from the index: by exact ids, counted from what the statement gave back, and what stays until a look."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import product
from typing import Final

import pytest
import sqlalchemy as sa

from adapters.vector import Point, erase
from orchestrator import DeadlinePassed, Erased, EraseOrder, Gate, Residual, Scope, Target
from tests.integration.vector_harness import (
    ANNA,
    BERTA,
    EVERYWHERE,
    FOREIGN,
    PASSPORT,
    SUBJECT,
    Shelf,
    by_key,
    by_source,
    embed,
    index_url,
    shelf,
)

__all__ = ["index_url", "shelf"]
HOSTILE: Final = (
    "user:1",
    "user:10",
    "User:1",
    "user:1 ",
    "user:*",
    "user:_",
    "user:%",
    "x[ab]*?\\",
    'say "hi"',
    "o'brien",
    "new\nline",
    "smile-\U0001f600",
    "caf\u00e9",
    "cafe\u0301",
    "y" * 512,
)
FACT: Final = Target(kind="fact", id="f-1", version=1)


def put(shelf: Shelf, scope: Scope, made_from: Target = FACT, source: str = "s") -> str:
    point = Point(made_from=made_from, source=source, vector=embed(f"{scope}{made_from}{source}"))
    (id_,) = shelf.unguarded.put(scope, [point]).ids
    return id_


def targets(*ids: str) -> tuple[Target, ...]:
    return tuple(Target(kind="point", id=id_, derived_of="fact:f-1@1") for id_ in ids)


def test_order_takes_its_targets_and_leaves_every_other_point_as_it_is(shelf: Shelf) -> None:
    mine = put(shelf, ANNA)
    for scope in (BERTA, FOREIGN, EVERYWHERE):
        put(shelf, scope)
    put(shelf, ANNA, replace(FACT, version=2))
    before = shelf.points()
    erased = shelf.erase(shelf.order(by_key(), targets=targets(mine)))
    assert (erased.erased, erased.already_absent, erased.extra) == (1, 0, 0)
    assert shelf.points() == [row for row in before if row[1] != mine]
    again = shelf.erase(shelf.order(by_key(), targets=targets(mine)))
    assert (again.erased, again.already_absent, again.residuals) == (0, 1, frozenset())


@pytest.mark.case(91)
@pytest.mark.case(92)
def test_order_without_targets_erases_nothing_and_no_match_is_no_success(shelf: Shelf) -> None:
    put(shelf, ANNA)
    before = shelf.points()
    for selector in (SUBJECT, by_key(), by_source("s")):
        assert shelf.erase(shelf.order(selector, EVERYWHERE)) == Erased()
    unknown = targets("", "%", "*", before[0][1][:-1], before[0][1].upper(), before[0][1] + " ")
    assert shelf.erase(shelf.order(SUBJECT, targets=unknown)) == Erased(already_absent=len(unknown))
    assert shelf.points() == before


def test_point_of_another_user_is_left_over_and_one_of_another_tenant_is_absent(shelf: Shelf) -> None:
    berta, foreign, gone = put(shelf, BERTA), put(shelf, FOREIGN), put(shelf, ANNA)
    before = shelf.points()
    wanted = targets(berta, foreign, gone)
    erased = shelf.erase(shelf.order(SUBJECT, targets=wanted))
    assert (erased.erased, erased.already_absent) == (1, 1), "the third is there, and not this order's"
    assert shelf.points() == [row for row in before if row[1] != gone]


def test_of_two_orders_that_name_one_point_the_first_has_erased_it(shelf: Shelf) -> None:
    mine, berta = put(shelf, ANNA), put(shelf, BERTA)
    orders = [
        shelf.order(SUBJECT, targets=targets(mine)),
        shelf.order(SUBJECT, EVERYWHERE, targets=targets(mine, mine)),
        shelf.order(SUBJECT, BERTA, targets=targets(mine, berta)),
    ]
    counts = [(answer.erased, answer.already_absent) for answer in shelf.adapter.erase(orders)]
    assert counts == [(1, 0), (0, 2), (1, 1)]
    assert shelf.points() == []


@pytest.mark.case(56)
@pytest.mark.case(57)
@pytest.mark.case(59)
@pytest.mark.case(65)
def test_names_that_look_like_patterns_prefixes_or_one_another_are_told_apart(shelf: Shelf) -> None:
    places = {name: put(shelf, replace(ANNA, user=name), source=name) for name in HOSTILE}
    facts = {name: put(shelf, ANNA, Target(kind="fact", id=name, version=1), source=name) for name in HOSTILE}
    left = shelf.ids()
    assert len(left) == 2 * len(HOSTILE)
    for name in HOSTILE:
        for order in (
            shelf.order(SUBJECT, replace(EVERYWHERE, user=name)),
            shelf.order(by_key(name), known=(Target(kind="fact", id=name, version=1),)),
        ):
            found = shelf.found(order)
            assert len(found) == 1
            assert shelf.erase(replace(order, targets=found)).erased == 1
            assert shelf.seen(replace(order, targets=found)).remaining == 0
            left -= {found[0].id}
            assert {found[0].id} <= {places[name], facts[name]}
            assert shelf.ids() == left
    assert left == set()


@pytest.mark.case(62)
def test_parts_of_a_name_that_join_to_the_same_text_are_different_points(shelf: Shelf) -> None:
    parts = ("a", "b:c", "a:b", "c", 'a","b', '["a"]', "null")
    scopes = [Scope(tenant="acme", user=user, project=project) for user, project in product(parts, (*parts, None))]
    made = [Target(kind="fact", id=id_, version=version) for id_ in ("f", "f@1", "f:1", "1") for version in (1, 11)]
    ids = [put(shelf, scope, record) for scope, record in product(scopes[:20], made)]
    assert len(set(ids)) == len(ids) == len(shelf.points())
    assert {len(id_) for id_ in ids} == {32}, "a handle says nothing of what it stands for"


@pytest.mark.case(101)
def test_postgresql_says_that_deleted_rows_stay_in_its_files(shelf: Shelf) -> None:
    erased = shelf.erase(shelf.order(by_key(), targets=targets(put(shelf, ANNA))))
    stays = {Residual.DEAD_TUPLES, Residual.WAL_ARCHIVE} if shelf.url.startswith("postgresql") else set()
    assert erased.residuals == stays
    assert shelf.unguarded.search(ANNA, embed(PASSPORT)).hits == ()


def test_sketch_of_what_goes_stays_until_a_look_has_found_nothing(shelf: Shelf) -> None:
    mine, stays = put(shelf, ANNA), put(shelf, ANNA, replace(FACT, version=2))
    order = shelf.order(by_key(), known=(FACT,), targets=targets(mine, stays))
    shelf.erase(replace(order, targets=targets(mine)))
    kept = shelf.rows("SELECT tenant, id, sketch FROM vector_probes")
    assert [row[:2] for row in kept] == [("acme", mine)]
    assert shelf.seen(order).remaining == 1
    assert shelf.rows("SELECT tenant, id, sketch FROM vector_probes") == kept
    assert shelf.seen(replace(order, targets=targets(mine))).remaining == 0
    assert shelf.rows("SELECT count(*) FROM vector_probes") == [(0,)]
    assert shelf.seen(replace(order, targets=targets(mine))).remaining == 0, "a repeat goes without"


def test_call_neither_begins_nor_commits_after_its_deadline(shelf: Shelf) -> None:
    mine = put(shelf, ANNA)
    order = shelf.order(SUBJECT, targets=targets(mine))
    late = replace(order, deadline=shelf.clock.at - timedelta(seconds=1))
    for verb in (shelf.adapter.find, shelf.adapter.erase, shelf.adapter.verify):
        with pytest.raises(DeadlinePassed):
            verb([order, late])
    assert shelf.ids() == {mine}


def test_call_that_took_too_long_commits_nothing(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = put(shelf, ANNA)
    order = shelf.order(SUBJECT, targets=targets(mine))
    real = erase.erase

    def slow(
        connection: sa.Connection, gate: Gate, orders: Sequence[EraseOrder], residuals: frozenset[Residual]
    ) -> list[Erased]:
        answers = real(connection, gate, orders, residuals)
        shelf.clock.at += timedelta(hours=1)
        return answers

    monkeypatch.setattr(erase, "erase", slow)
    with pytest.raises(DeadlinePassed):
        shelf.erase(order)
    assert shelf.ids() == {mine}
