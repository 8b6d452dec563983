"""What an erased event leaves: that there was one, so that no answer becomes another; and what holds, built anew."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from adapters.memory.preferences import Applying, Current, EventNotFound, Operation, State
from orchestrator import Scope
from tests.integration.preferences_harness import (
    COMET,
    DATA,
    EVENTS,
    KEY,
    ORION,
    READER_A,
    READER_B,
    TENANT,
    Hands,
    hands,
    url,
)

__all__ = ["hands", "url"]

FOREIGN = Scope(tenant="tenant-b", user="reader-A")
ERASED = Current(sequence=20, operation=Operation.ERASED)


def revoke(hands: Hands) -> None:
    hands.revoke(20)


def erase(hands: Hands) -> None:
    hands.erase(READER_A, KEY, 20)


def revoke_and_erase(hands: Hands) -> None:
    revoke(hands)
    erase(hands)


each_way = pytest.mark.parametrize("way", [revoke, erase, revoke_and_erase])


@pytest.mark.req("R93")
@each_way
def test_erasing_an_event_changes_no_earlier_answer_into_another_value(
    hands: Hands, way: Callable[[Hands], None]
) -> None:
    hands.accept(DATA["events"])
    way(hands)
    at_22 = hands.log.resolve(READER_A, KEY, 22)
    assert (at_22.state, at_22.value, at_22.sequence, at_22.resolved_scope) == (State.ERASED, None, 20, "global")
    assert "detailed" not in str(hands.rows("SELECT * FROM preference_events"))
    others = [(hands.log.resolve(READER_A, KEY, as_of).state, as_of) for as_of in (9, 19, 20, 44, 45)]
    assert others == [
        (State.UNSET, 9),
        (State.VALUE, 19),
        (State.ERASED, 20),
        (State.ERASED, 44),
        (State.DELETED, 45),
    ]
    assert hands.log.resolve(READER_A, KEY, 19).value == "brief"
    for scope, value, sequence in ((COMET, "brief", 25), (READER_B, "brief", 30)):
        found = hands.log.resolve(scope, KEY, 30)
        assert (found.value, found.sequence) == (value, sequence)
    assert hands.log.resolve(ORION, KEY, 30).state is State.ERASED
    assert hands.log.resolve(READER_A, "theme", 40).value == "dark"


@pytest.mark.req("R93")
@pytest.mark.parametrize("way", ["revoked", "erased"])
def test_erased_record_of_a_project_never_falls_back(hands: Hands, way: str) -> None:
    hands.accept(DATA["events"])
    if way == "revoked":
        hands.revoke(25)
    else:
        hands.erase(COMET, KEY, 25)
    found = hands.log.resolve(COMET, KEY, 30)
    assert (found.state, found.sequence, found.resolved_scope) == (State.ERASED, 25, "project:Comet")
    assert hands.log.resolve(COMET, KEY, 24).value == "detailed"
    hands.say(COMET, KEY, "long")
    assert hands.log.resolve(COMET, KEY).value == "long"
    marker = hands.say(COMET, KEY, None).sequence
    found = hands.log.resolve(COMET, KEY)
    assert (found.state, found.sequence, found.marker) == (State.DELETED, 45, marker)


@pytest.mark.req("R93")
@each_way
def test_late_event_is_not_applied_over_one_that_was_erased(hands: Hands, way: Callable[[Hands], None]) -> None:
    hands.accept(DATA["events"])
    hands.log.apply(READER_A, 20)
    way(hands)
    assert hands.log.state(READER_A, KEY) == ERASED
    assert hands.log.apply(READER_A, 10) is Applying.REJECTED
    assert hands.log.state(READER_A, KEY) == ERASED
    assert hands.log.apply(READER_A, 45) is Applying.APPLIED
    assert hands.log.state(READER_A, KEY) == Current(sequence=45, operation=Operation.DELETE)
    hands.log.prefer(READER_A, KEY, "long", "reader-A/said")
    assert hands.log.state(READER_A, KEY).value == "long"


def test_event_that_was_revoked_before_it_came_holds_as_erased(hands: Hands) -> None:
    hands.accept(DATA["events"])
    hands.log.apply(READER_A, 10)
    hands.revoke(20)
    assert hands.log.apply(READER_A, 20) is Applying.APPLIED
    assert hands.log.state(READER_A, KEY) == ERASED
    assert hands.log.apply(READER_A, 20) is Applying.DUPLICATE
    assert hands.log.apply(READER_A, 10) is Applying.REJECTED


def test_event_that_was_erased_before_it_came_is_as_one_that_never_was_and_hides_what_holds(hands: Hands) -> None:
    hands.accept(DATA["events"])
    hands.log.apply(READER_A, 10)
    hands.erase(READER_A, KEY, 20)
    with pytest.raises(EventNotFound):
        hands.log.apply(READER_A, 20)
    assert hands.log.state(READER_A, KEY) == ERASED
    assert hands.log.replay(READER_A) == 2, "45 of this key and 40 of the other"
    assert hands.log.state(READER_A, KEY).sequence == 45


def test_erased_event_that_is_put_back_stays_erased(hands: Hands) -> None:
    hands.accept(DATA["events"])
    hands.erase(READER_A, KEY, 20)
    hands.accept([EVENTS[20]])
    found = hands.log.resolve(READER_A, KEY, 22)
    assert (found.state, found.value, found.sequence) == (State.ERASED, None, 20)
    assert hands.log.apply(READER_A, 20) is Applying.REJECTED
    assert hands.log.state(READER_A, KEY) == ERASED


def test_revoked_event_tells_nothing_though_its_value_were_there(hands: Hands) -> None:
    hands.accept(DATA["events"])
    hands.execute("UPDATE preference_events SET state = 'revoked'", TENANT, 20)
    found = hands.log.resolve(READER_A, KEY, 22)
    assert (found.state, found.value) == (State.ERASED, None)
    assert hands.log.apply(READER_A, 20) is Applying.APPLIED
    assert hands.rows("SELECT operation, value FROM preferences") == [("erased", None)]
    assert hands.log.apply(READER_A, 20) is Applying.DUPLICATE


def test_mark_of_another_key_scope_or_tenant_counts_for_none_but_its_own(hands: Hands) -> None:
    hands.accept(DATA["events"])
    for scope, key in ((READER_A, "theme"), (COMET, KEY), (READER_B, KEY), (FOREIGN, KEY)):
        hands.erase(scope, key, 21)
    hands.log.apply(READER_A, 20)
    assert hands.log.state(READER_A, KEY).value == "detailed"
    assert hands.log.resolve(READER_A, KEY, 22).value == "detailed"
    assert hands.log.resolve(READER_B, KEY, 22).state is State.ERASED
    assert hands.log.resolve(FOREIGN, KEY).sequence == 21


def test_what_was_lost_or_changed_by_other_hands_is_built_anew_from_the_log(hands: Hands) -> None:
    hands.accept(DATA["events"])
    tone = hands.say(READER_A, "tone", "dry").sequence
    for sequence in (10, 40):
        hands.log.apply(READER_A, sequence)
    hands.accept(DATA["events"], FOREIGN.tenant)
    for scope, sequence in ((COMET, 25), (READER_B, 30), (FOREIGN, 10), (FOREIGN, 40)):
        hands.log.apply(scope, sequence)
    hands.execute("UPDATE preferences SET value = 'light'", TENANT, 40)
    query = "SELECT * FROM preferences WHERE tenant = 'tenant-b' OR sequence IN (25, 30) ORDER BY tenant, sequence"
    elsewhere = hands.rows(query)
    assert len(elsewhere) == 4
    assert hands.log.replay(READER_A) == 3, "one was behind, one was changed, one was never applied"
    held = [hands.log.state(READER_A, key) for key in (KEY, "theme", "tone")]
    assert [(each.sequence, each.value) for each in held] == [(45, None), (40, "dark"), (tone, "dry")]
    assert hands.log.replay(READER_A) == 0
    assert [hands.log.apply(READER_A, sequence) for sequence in (45, 40, tone)] == [Applying.DUPLICATE] * 3
    hands.execute("UPDATE preferences SET key = 'nobody-said-so'", TENANT, 40)
    assert hands.log.replay(READER_A) == 2, "one that no event tells of, and one that is missing"
    assert hands.log.state(READER_A, "nobody-said-so") == Current()
    assert hands.rows(query) == elsewhere
    assert hands.log.replay(FOREIGN) == 1, "of another tenant, the key that was behind"


@each_way
def test_what_is_built_anew_says_of_an_erased_event_what_held_before(
    hands: Hands, way: Callable[[Hands], None]
) -> None:
    hands.accept([event for event in DATA["events"] if event["sequence"] < 45])
    assert hands.log.replay(READER_A) == 2
    way(hands)
    assert hands.log.replay(READER_A) == 0
    hands.execute("DELETE FROM preferences", TENANT, 20)
    hands.log.replay(READER_A)
    assert hands.log.state(READER_A, KEY) == ERASED
    assert hands.log.state(READER_A, "theme").value == "dark"
