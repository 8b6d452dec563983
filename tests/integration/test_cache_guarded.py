"""A cache that is asked with its masters gives no answer that was made from what is handed out no more."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import pytest

from orchestrator import Scope, StoreUnreachable, Target
from tests.integration.five_stores import ANNA, BERTA, SECRET, TURN_6, Five
from tests.integration.write_paths_harness import answers_url, five

__all__ = ["answers_url", "five"]

QUESTION = "Which passport?"


class Away:
    """A source that does not answer."""

    def active(self, scope: Scope, records: Collection[Target]) -> Mapping[Target, int]:
        del scope, records
        raise StoreUnreachable


def asked(five: Five, who: Scope = ANNA, question: str = QUESTION) -> str | None:
    return five.cache.guarded(five.memory.masters).get(who, question)


def test_answer_is_given_while_all_that_it_was_made_from_is_handed_out(five: Five) -> None:
    five.learn(ANNA)
    assert asked(five) == SECRET
    assert asked(five, BERTA) is None
    five.memory.store.put(ANNA, "passport", "It is renewed.", f"anna/{TURN_6}")
    assert asked(five) is None, "it was made from another version"
    assert five.cache.answers.get(ANNA, QUESTION) == SECRET


def test_one_origin_that_is_revoked_is_enough(five: Five) -> None:
    passport = five.learn(ANNA)
    version = five.memory.store.put(ANNA, "seat", "aisle", f"anna/{TURN_6}")
    seat = next(
        Target(kind="fact", id=f.id, version=version) for f in five.memory.store.current(ANNA) if f.key == "seat"
    )
    five.cache.answers.put(ANNA, "both?", "both", [passport, seat], five.memory.store.revision(ANNA))
    five.cache.answers.put(ANNA, "seat?", "aisle", [seat], five.memory.store.revision(ANNA))
    assert (asked(five, question="both?"), asked(five, question="seat?")) == ("both", "aisle")
    five.memory.store.forget(ANNA, "passport")
    assert (asked(five, question="both?"), asked(five, question="seat?")) == (None, "aisle")


def test_what_is_true_of_the_user_in_general_counts_in_each_project(five: Five) -> None:
    general = replace(ANNA, project=None)
    five.memory.store.register_source(general, "anna/general")
    version = five.memory.store.put(general, "meal", "fish", "anna/general")
    (fact,) = five.memory.store.current(general)
    made_from = [Target(kind="fact", id=fact.id, version=version)]
    assert five.cache.answers.put(ANNA, "meal?", "fish", made_from, five.memory.store.revision(ANNA))
    assert asked(five, question="meal?") == "fish"
    assert five.cache.answers.put(BERTA, "meal?", "fish", made_from, five.memory.store.revision(BERTA))
    assert asked(five, BERTA, "meal?") is None, "a fact of somebody else is none to answer from"


@pytest.mark.parametrize("made_from", [[], [Target(kind="fact", id="f-1")], [Target(kind="report", id="r:1@2")]])
def test_answer_whose_origin_nobody_knows_is_not_given(five: Five, made_from: list[Target]) -> None:
    assert five.cache.answers.put(ANNA, "which?", "x", made_from or [Target(kind="fact", id="f-1")], 0)
    if not made_from:  # as a writer of before has left it: the library takes none
        for key in five.cache.client().scan_iter("*:a:*", _type="hash"):
            five.cache.client().hset(key, "made_from", "[]")
    assert five.cache.answers.get(ANNA, "which?") == "x"
    assert asked(five, question="which?") is None


def test_source_that_does_not_answer_lets_no_answer_out(five: Five) -> None:
    five.learn(ANNA)
    with pytest.raises(StoreUnreachable):
        five.cache.guarded(Away()).get(ANNA, QUESTION)
    assert five.cache.guarded(Away()).get(ANNA, "another?") is None
