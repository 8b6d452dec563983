"""A fact that two sources told stays by the one that is not forgotten; by key, memory or subject it goes."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from orchestrator import Refusal, Residual, Scope, Selector
from tests.integration.keyed_harness import (
    ANNA,
    EVERYWHERE,
    FOREIGN,
    SUBJECT,
    Keyed,
    by_key,
    by_memory,
    by_source,
    keyed,
    kinds,
)
from tests.integration.repointing_harness import AGAIN, EITHER, HOME, Revoke, current, repointed, twice

__all__ = ["keyed"]


@EITHER
def test_fact_whose_newest_source_is_forgotten_holds_by_the_one_before(keyed: Keyed, revoke: Revoke) -> None:
    keyed.register(ANNA, "acme/told-first")
    keyed.adapter.store.put(ANNA, "home", HOME, "acme/told-first", expires=9e9)
    keyed.put(ANNA, "home", AGAIN, "acme/told-last")
    twice(keyed, FOREIGN)
    others, before = current(keyed, FOREIGN), keyed.adapter.store.revision(ANNA)
    order = keyed.order(by_source("acme/told-last"))
    answer = revoke(keyed, order)
    assert [target.version for target in answer.targets] == [2]
    assert current(keyed) == [("home", 3, HOME, "acme/told-first", 9e9)]
    assert answer.revision == keyed.adapter.store.revision(ANNA) == before + 1
    assert kinds(answer) == ["source"], "its text is not marked"
    assert repointed(keyed, order.job) == 1
    assert current(keyed, FOREIGN) == others
    after = keyed.told(), keyed.adapter.store.revision(ANNA)
    assert revoke(keyed, order) == answer
    assert (keyed.told(), keyed.adapter.store.revision(ANNA)) == after, "a repeat makes no version more"
    erased = keyed.erase(order, *answer.targets)
    assert (erased.erased, erased.already_absent) == (1, 0)
    assert Residual.TOLD_ELSEWHERE in erased.residuals
    assert Residual.TOLD_ELSEWHERE in keyed.erase(order, *answer.targets).residuals, "a repeat says so as well"
    assert keyed.look(order, *answer.targets, known=answer.targets).remaining == 0
    assert current(keyed) == [("home", 3, HOME, "acme/told-first", 9e9)]
    assert HOME.encode() in set(keyed.adapter.live_values()), "its bytes are no residue"
    assert keyed.put(ANNA, "home", HOME, "told-afresh").version == 4


@EITHER
def test_fact_whose_older_source_is_forgotten_stays_as_it_is_and_is_not_marked(keyed: Keyed, revoke: Revoke) -> None:
    twice(keyed)
    order = keyed.order(by_source("acme/told-first"))
    answer = revoke(keyed, order)
    assert [target.version for target in answer.targets] == [1]
    assert current(keyed) == [("home", 2, AGAIN, "acme/told-last", math.inf)]
    assert kinds(answer) == ["source"]
    assert repointed(keyed, order.job) == 1
    assert Residual.TOLD_ELSEWHERE in keyed.erase(order, *answer.targets).residuals
    assert keyed.look(order, *answer.targets).remaining == 0
    assert keyed.put(ANNA, "home", HOME, "told-afresh").version == 3


@EITHER
@pytest.mark.parametrize("selector", [by_key("home"), SUBJECT, None], ids=["key", "subject", "memory"])
def test_by_key_memory_or_subject_the_fact_goes(keyed: Keyed, revoke: Revoke, selector: Selector | None) -> None:
    fact = twice(keyed)
    order = keyed.order(selector or by_memory(fact))
    answer = revoke(keyed, order)
    assert [target.version for target in answer.targets] == [1, 2]
    assert current(keyed) == []
    assert repointed(keyed, order.job) == 0
    assert Residual.TOLD_ELSEWHERE not in keyed.erase(order, *answer.targets).residuals
    assert keyed.rows("SELECT * FROM facts") == []


def nothing_stands(keyed: Keyed, scope: Scope, why: str) -> None:
    """Let a fact be told twice so that the older version cannot stand for it."""
    first, last = f"{scope.user}/told-first", f"{scope.user}/told-last"
    register = {"derived from it": [last, (first, last)]}.get(why, [first])
    for name in register:
        keyed.register(scope, *([name] if isinstance(name, str) else name))
    at, store = keyed.clock.now().timestamp(), keyed.adapter.store
    match why:
        case "another value":
            keyed.put(scope, "home", "I live in Leiden.", first)
        case "unconfirmed":
            store.put(scope, "home", HOME, first, confirmed=False)
        case "expired":
            store.put(scope, "home", HOME, first, expires=at)
        case "the same source":
            keyed.put(scope, "home", HOME, last)
        case "forgotten itself":
            keyed.put(scope, "home", HOME, first)
        case "another key":
            keyed.put(scope, "house", HOME, first)
        case "another project":
            keyed.put(replace(scope, project="work"), "home", HOME, first)
        case _:
            keyed.put(scope, "home", HOME, first)
    keyed.put(scope, "home", AGAIN, last)
    if why == "forgotten itself":
        keyed.run(keyed.order(by_source(first), scope))


@EITHER
def test_fact_goes_where_nothing_else_stands_for_it(keyed: Keyed, revoke: Revoke) -> None:
    whys = ("another value", "unconfirmed", "expired", "the same source", "derived from it", "forgotten itself")
    for number, why in enumerate((*whys, "another key", "another project")):
        scope = replace(ANNA, user=f"anna-{number}")
        nothing_stands(keyed, scope, why)
        order = keyed.order(by_source(f"{scope.user}/told-last"), scope)
        answer = revoke(keyed, order)
        assert "home" not in [key for key, *_ in current(keyed, scope)], why
        assert "text" in kinds(answer), why
        assert repointed(keyed, order.job) == 0, why
        assert Residual.TOLD_ELSEWHERE not in keyed.erase(order, *answer.targets).residuals
        assert keyed.look(order, *answer.targets).remaining == 0
        assert keyed.refused(scope, "home", HOME, f"{scope.user}/told-afresh") is Refusal.TEXT_TOMBSTONED, why


@EITHER
def test_fact_that_is_held_stays_and_is_pointed_elsewhere_when_it_is_free(keyed: Keyed, revoke: Revoke) -> None:
    fact = twice(keyed)
    other = keyed.put(ANNA, "seat", "aisle", "acme/told-last")
    order = keyed.order(by_source("acme/told-last"))
    first = revoke(keyed, replace(order, held=frozenset({fact})))
    assert first.left == {fact}
    assert first.targets == (other,)
    assert current(keyed) == [("home", 2, AGAIN, "acme/told-last", math.inf)]
    assert repointed(keyed, order.job) == 0
    last = revoke(keyed, order)
    assert last.left == frozenset()
    assert current(keyed) == [("home", 3, HOME, "acme/told-first", math.inf)]
    assert repointed(keyed, order.job) == 1
    assert kinds(last) == ["source", "text"], "the text of the seat alone is marked"


@EITHER
def test_version_whose_own_source_is_forgotten_and_that_was_held_stands_for_nothing(
    keyed: Keyed, revoke: Revoke
) -> None:
    fact = twice(keyed)
    first, last = keyed.order(by_source("acme/told-first")), keyed.order(by_source("acme/told-last"))
    assert revoke(keyed, replace(first, held=frozenset({fact}))).left == {fact}
    answer = revoke(keyed, last)
    assert current(keyed) == []
    assert kinds(answer) == ["source", "text"]
    assert repointed(keyed, last.job) == 0
    assert [target.version for target in revoke(keyed, first).targets] == [1]


def test_two_orders_of_a_batch_that_forget_both_sources_leave_nothing(keyed: Keyed) -> None:
    twice(keyed)
    orders = [keyed.order(by_source("acme/told-last")), keyed.order(by_source("acme/told-first"))]
    answers = keyed.adapter.revoke(orders)
    assert [[t.version for t in answer.targets] for answer in answers] == [[2], [1]]
    assert current(keyed) == []
    assert [repointed(keyed, order.job) for order in orders] == [0, 0]
    assert "text" in kinds(answers[0])


@EITHER
def test_every_one_of_many_facts_is_pointed_elsewhere(keyed: Keyed, revoke: Revoke) -> None:
    twice(keyed)
    keyed.change(
        "INSERT INTO facts WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 450)"
        " SELECT tenant, user_id, project, key || i, version, fact_id || i, value, source, confirmed, expires, active,"
        " state FROM facts, n"
    )
    order = keyed.order(by_source("acme/told-last"))
    assert len(revoke(keyed, order).targets) == 451
    assert {(version, source) for _, version, _, source, _ in current(keyed)} == {(3, "acme/told-first")}
    assert len(current(keyed)) == repointed(keyed, order.job) == 451


@pytest.mark.parametrize("selector", [by_key("home"), SUBJECT])
def test_what_another_order_of_the_batch_takes_stands_for_nothing(keyed: Keyed, selector: Selector) -> None:
    twice(keyed)
    orders = [keyed.order(by_source("acme/told-last")), keyed.order(selector)]
    answers = keyed.adapter.revoke(orders)
    assert [[t.version for t in answer.targets] for answer in answers] == [[2], [1, 2]]
    assert {state for (state,) in keyed.rows("SELECT state FROM facts")} == {"revoked"}
    assert [repointed(keyed, order.job) for order in orders] == [0, 0]


def test_text_stands_by_nothing_that_an_order_of_the_same_batch_forgets_with_the_fact(keyed: Keyed) -> None:
    fact = twice(keyed)
    keyed.prefer(ANNA, "home", HOME, "turn-3")
    orders = [keyed.order(by_source("acme/told-first")), keyed.order(by_memory(fact))]
    answers = keyed.adapter.revoke(orders)
    assert kinds(answers[0]) == ["source", "text"]
    assert {"key", "text"} <= set(kinds(answers[1]))


@EITHER
def test_two_that_were_derived_from_another_users_source_do_not_stand_for_each_other(
    keyed: Keyed, revoke: Revoke
) -> None:
    keyed.register(replace(ANNA, user="berta"), "of-berta")
    for name in ("acme/told-first", "acme/told-last"):
        keyed.register(ANNA, name, "of-berta")
    twice(keyed)
    order = keyed.order(by_source("of-berta"))
    answer = revoke(keyed, order)
    assert [target.version for target in answer.targets] == [1, 2]
    assert kinds(answer) == ["text"], "both said the same, and nobody blocks another user's source"
    assert current(keyed) == []
    assert repointed(keyed, order.job) == 0


def test_one_after_the_other_takes_the_fact_at_last(keyed: Keyed) -> None:
    twice(keyed)
    keyed.run(keyed.order(by_source("acme/told-last")))
    erased, seen = keyed.run(keyed.order(by_source("acme/told-first")))
    assert (erased.erased, seen.remaining) == (2, 0)
    assert keyed.rows("SELECT * FROM facts") == []
    assert keyed.refused(ANNA, "home", HOME, "told-afresh") is Refusal.TEXT_TOMBSTONED


def test_version_that_was_erased_is_not_used_again_by_what_is_pointed_elsewhere(keyed: Keyed) -> None:
    twice(keyed)
    third = keyed.put(ANNA, "home", HOME, "acme/told-third")
    erased = keyed.order(by_source("acme/told-third"))
    keyed.run(erased)
    assert (third.version, [row[1] for row in current(keyed)]) == (3, [4])
    keyed.run(keyed.order(by_source("acme/told-last")))
    assert [row[1:4] for row in current(keyed)] == [(5, HOME, "acme/told-first")]


def test_stranger_who_names_the_source_changes_nothing(keyed: Keyed) -> None:
    twice(keyed)
    before = keyed.told()
    for scope in (FOREIGN, replace(EVERYWHERE, user="berta")):
        order = keyed.order(by_source("acme/told-last"), scope)
        assert keyed.revoke(order).targets == ()
        assert keyed.told() == before
        assert repointed(keyed, order.job) == 0
