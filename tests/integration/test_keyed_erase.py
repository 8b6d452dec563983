"""Events and candidates are erased by exact handles, counted as facts are, and looked for by another road."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adapters.memory.engine import writing
from adapters.memory.keyed.named import any_here
from adapters.memory.preferences import State
from adapters.memory.preferences.marks import key_mac
from adapters.memory.tables import fact_candidates, preference_events
from orchestrator import MAX_PAGE, EraseOrder, InvalidRequest, Target
from tests.integration.keyed_harness import (
    ANNA,
    AT_WORK,
    BERTA,
    EVERYWHERE,
    FOREIGN,
    SUBJECT,
    Keyed,
    by_key,
    by_memory,
    by_source,
    keyed,
)

__all__ = ["keyed"]


def test_erase_takes_exactly_its_handles_of_its_tenant_and_counts_a_repeat_as_absent(keyed: Keyed) -> None:
    event, other = keyed.prefer(ANNA, "tone", "brief", "turn-1"), keyed.prefer(ANNA, "tone-2", "long", "turn-1")
    candidate, stays = keyed.propose(ANNA, "seat", "any", "turn-1"), keyed.propose(ANNA, "seat-2", "any", "turn-1")
    before = keyed.told()
    targets = [event, candidate, replace(event, version=event.version + 1), replace(candidate, version=1)]
    targets += [replace(event, id=event.id[:-1]), replace(event, id="%"), replace(candidate, id=candidate.id + "0")]
    foreign = keyed.order(SUBJECT, FOREIGN)
    answer = keyed.erase(foreign, *targets)
    assert (answer.erased, answer.already_absent) == (0, len(targets))
    assert keyed.told() == before
    order = keyed.order(SUBJECT)
    answer = keyed.erase(order, *targets[2:])
    assert (answer.erased, answer.already_absent) == (0, len(targets) - 2), "a version is part of a handle"
    assert keyed.told() == before
    answer = keyed.erase(order, *targets)
    assert (answer.erased, answer.already_absent, answer.extra) == (2, len(targets) - 2, 0)
    assert keyed.kept(event, candidate) == []
    assert keyed.kept(other, stays) == [("live", "long"), ("pending", "any")]
    assert keyed.rows("SELECT key FROM preferences") == [("tone-2",)]
    again = keyed.erase(order, *targets)
    assert (again.erased, again.already_absent) == (0, len(targets))


def test_of_two_orders_of_a_batch_that_name_one_id_the_first_erased_it(keyed: Keyed) -> None:
    targets = (keyed.prefer(ANNA, "tone", "brief", "turn-1"), keyed.propose(ANNA, "tone", "long", "turn-1"))
    orders = [replace(keyed.order(by_source("turn-1")), targets=targets) for _ in range(2)]
    assert [(a.erased, a.already_absent) for a in keyed.adapter.erase(orders)] == [(2, 0), (0, 2)]


@pytest.mark.req("R93")
def test_erased_event_leaves_a_keyed_mark_and_no_older_answer_takes_its_place(keyed: Keyed) -> None:
    old, erased = keyed.prefer(ANNA, "tone", "brief", "turn-1"), keyed.prefer(ANNA, "tone", "detailed", "turn-2")
    keyed.run(keyed.order(by_memory(erased.id)))
    marks = keyed.rows("SELECT tenant, key_mac, sequence FROM erased_events")
    assert marks == [("acme", key_mac(keyed.gate, ANNA, "tone"), erased.version)]
    answer = keyed.preferences.resolve(ANNA, "tone")
    assert (answer.state, answer.value, answer.sequence) == (State.ERASED, None, erased.version)
    assert keyed.preferences.resolve(ANNA, "tone", as_of=old.version).value == "brief"
    assert keyed.preferences.state(ANNA, "tone").value is None
    assert keyed.kept(old) == [("live", "brief")]


def test_revoked_event_answers_as_erased_before_its_row_is_gone(keyed: Keyed) -> None:
    keyed.prefer(ANNA, "tone", "brief", "turn-1")
    newest = keyed.prefer(ANNA, "tone", "detailed", "turn-2")
    keyed.revoke(keyed.order(by_memory(newest.id)))
    assert keyed.preferences.resolve(ANNA, "tone").state is State.ERASED
    assert keyed.preferences.state(ANNA, "tone").value is None


def test_look_sees_events_what_holds_by_them_and_candidates_by_handle_by_list_and_by_selector(keyed: Keyed) -> None:
    event, candidate = keyed.prefer(ANNA, "tone", "brief", "turn-1"), keyed.propose(ANNA, "tone", "long", "turn-1")
    abroad = keyed.prefer(AT_WORK, "tone", "plain", "turn-2")
    for selector, scope, remaining in (
        (by_key("tone"), ANNA, 2),
        (by_key("tone"), EVERYWHERE, 3),
        (by_source("turn-1"), AT_WORK, 2),
        (by_memory(event.id), ANNA, 1),
        (by_memory(candidate.id), ANNA, 1),
        (SUBJECT, ANNA, 2),
        (SUBJECT, FOREIGN, 0),
        (SUBJECT, BERTA, 0),
        (by_key("%"), ANNA, 0),
    ):
        assert keyed.look(keyed.order(selector, scope)).remaining == remaining, (selector, scope.project)
    nobodys = keyed.order(by_key("nothing"))
    assert keyed.look(nobodys, event, candidate).remaining == 3, "what holds by an event is looked at as well"
    assert keyed.look(nobodys, known=(event, candidate)).remaining == 3
    assert keyed.look(keyed.order(by_key("nothing"), FOREIGN), event, candidate).remaining == 0
    order = keyed.order(by_key("tone"), EVERYWHERE)
    assert len(keyed.revoke(order).targets) == 3
    assert keyed.look(order, event, candidate, abroad).remaining == 3, "a row is there though it is blank"
    keyed.erase(order, event, candidate, abroad)
    assert keyed.look(order, event, candidate, abroad).remaining == 0


def test_look_sees_what_holds_though_its_event_is_gone(keyed: Keyed) -> None:
    event = keyed.prefer(ANNA, "tone", "brief", "turn-1")
    keyed.change("DELETE FROM preference_events")
    order = keyed.order(by_key("tone"))
    assert keyed.look(order, event).remaining == 1
    answer = keyed.erase(order, event)
    assert (answer.erased, answer.already_absent) == (0, 1)
    assert keyed.look(order, event).remaining == 0
    assert keyed.rows("SELECT * FROM preferences") == []


def test_what_was_accepted_after_the_cut_off_is_neither_found_nor_seen(keyed: Keyed) -> None:
    event = keyed.prefer(ANNA, "tone", "brief", "turn-1")
    order = keyed.order(by_key("tone"))
    keyed.revoke(order)
    later = keyed.prefer(ANNA, "tone", "long", "turn-2", stated=True)
    proposed = keyed.propose(ANNA, "tone", "dry", "turn-3")
    assert keyed.found(order) == (event,)
    keyed.erase(order, event)
    assert keyed.look(order, event).remaining == 0
    assert keyed.kept(later, proposed) == [("live", "long"), ("pending", "dry")]
    assert keyed.preferences.state(ANNA, "tone").value == "long"


def test_pages_go_on_from_facts_over_events_to_candidates(keyed: Keyed) -> None:
    named = {keyed.put(ANNA, f"fact-{n}", f"text {n}", "turn-1") for n in range(3)}
    named |= {Target(kind="event", id=f"e{n:05}", version=1000 + n) for n in range(MAX_PAGE + 5)}
    named |= {Target(kind="candidate", id=f"c{n:05}") for n in range(MAX_PAGE + 7)}
    place = {"tenant": "acme", "user_id": "anna", "project": "trips", "source": "turn-1"}
    with writing(keyed.adapter._engine, ["acme"]) as connection:
        for target in named:
            row = {**place, "handle": target.id, "key": f"key-{target.id}", "value": f"text {target.id}"}
            if target.kind == "event":
                more = {"sequence": target.version, "operation": "set", "accepted_at_us": 0, "state": "live"}
                connection.execute(preference_events.insert().values(**row, **more))
            elif target.kind == "candidate":
                more = {"expires": 9e99, "proposed_by": "p", "state": "pending", "proposed_at_us": 0}
                connection.execute(fact_candidates.insert().values(**row, **more))
    order = keyed.order(SUBJECT)
    assert of_pages(keyed, order) == named
    answer = keyed.revoke(order)
    targets = list(answer.targets)
    while answer.cursor is not None:
        answer = keyed.revoke(replace(order, cursor=answer.cursor))
        targets += answer.targets
    assert (set(targets), len(targets)) == (named, len(named))
    assert of_pages(keyed, order) == named
    erased = sum(keyed.erase(order, *targets[n : n + MAX_PAGE]).erased for n in range(0, len(targets), MAX_PAGE))
    assert erased == len(named)
    assert keyed.look(order).remaining == 0


def of_pages(keyed: Keyed, order: EraseOrder) -> set[Target]:
    found: list[Target] = []
    for _ in range(10):
        (holding,) = keyed.adapter.find([order])
        assert len(holding.targets) <= MAX_PAGE
        found += holding.targets
        if holding.cursor is None:
            assert len(found) == len(set(found))
            return set(found)
        order = replace(order, cursor=holding.cursor)
    raise AssertionError


def test_cursor_of_no_store_is_refused(keyed: Keyed) -> None:
    keyed.prefer(ANNA, "tone", "brief", "turn-1")
    with pytest.raises(InvalidRequest, match="not one of this store's"):
        keyed.adapter.find([keyed.order(SUBJECT, cursor="nothing")])


def test_live_values_are_those_that_stand_in_events_in_what_holds_and_in_candidates(keyed: Keyed) -> None:
    keyed.prefer(ANNA, "tone", "brief", "turn-1")
    keyed.propose(ANNA, "tone", "long", "turn-1")
    keyed.prefer(BERTA, "tone", "dry", "turn-2")
    keyed.change("UPDATE preferences SET value = 'held' WHERE user_id = 'berta'")
    assert sorted(keyed.adapter.live_values()) == [b"brief", b"brief", b"dry", b"held", b"long"]
    keyed.run(keyed.order(SUBJECT))
    assert sorted(keyed.adapter.live_values()) == [b"dry", b"held"]


def test_database_without_events_and_candidates_is_asked_one_question_a_batch(keyed: Keyed) -> None:
    keyed.put(ANNA, "seat", "aisle", "turn-1")
    with writing(keyed.adapter._engine, []) as connection:
        assert not any_here(connection)
    statements: list[str] = []
    count(keyed, statements)
    orders = [keyed.order(by_key(f"key-{n}")) for n in range(200)]
    keyed.adapter.revoke(orders)
    answers = keyed.adapter.find(orders)
    keyed.adapter.erase([replace(o, targets=a.targets) for o, a in zip(orders, answers, strict=True)])
    asked = [s for s in statements if "fact_candidates" in s or "preference" in s]
    assert sum("EXISTS" in s and "FROM preference_events" in s for s in asked) == 2, "of a revoke, and of a find"
    assert len(asked) <= 4, "and where tokens and projects are looked for, in statements of the facts"


def count(keyed: Keyed, statements: list[str]) -> None:
    import sqlalchemy as sa

    def note(_c: object, _k: object, statement: str, *_more: object) -> None:
        statements.append(statement)

    sa.event.listen(keyed.adapter._engine, "before_cursor_execute", note)
