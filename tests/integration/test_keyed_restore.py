"""After a restore no event or candidate is back that was forgotten, and none is gone that was not."""

from __future__ import annotations

import pytest

from adapters.drafts.tables import metadata as of_drafts
from adapters.memory.preferences import State
from adapters.memory.preferences.marks import key_mac
from orchestrator import GateRefused, Scope, Selector
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


def told(keyed: Keyed) -> None:
    keyed.register(ANNA, "turn-1")
    keyed.register(ANNA, "summary", "turn-1")
    keyed.prefer(ANNA, "tone", "brief", "turn-1")
    keyed.prefer(ANNA, "tone", "Detailed answers", "turn-2")
    keyed.prefer(ANNA, "seat", None, "turn-2")
    keyed.propose(ANNA, "tone", "long", "summary")
    keyed.propose(ANNA, "meal", "Eats no walnuts", "turn-2")
    keyed.prefer(AT_WORK, "tone", "plain", "turn-3")
    for scope in (BERTA, FOREIGN):
        keyed.prefer(scope, "tone", "brief", f"{scope.tenant}/{scope.user}/turn-1")
        keyed.propose(scope, "tone", "long", f"{scope.tenant}/{scope.user}/turn-1")


SELECTIONS: list[tuple[Selector, Scope]] = [
    (by_key("tone"), ANNA),
    (by_key("tone"), EVERYWHERE),
    (by_source("turn-1"), ANNA),
    (SUBJECT, ANNA),
    (SUBJECT, EVERYWHERE),
]


@pytest.mark.parametrize(("selector", "scope"), SELECTIONS, ids=lambda v: f"{v}"[:40])
def test_restore_takes_away_what_a_job_took_and_nothing_else(keyed: Keyed, selector: Selector, scope: Scope) -> None:
    told(keyed)
    before = keyed.told()
    order = keyed.order(selector, scope)
    erased, seen = keyed.run(order)
    assert seen.remaining == 0
    after, marks = keyed.told(), keyed.rows("SELECT * FROM erased_events ORDER BY sequence")
    keyed.change("DELETE FROM erased_events")
    assert keyed.restore(order, before) == erased.erased
    assert keyed.told() == after
    assert keyed.rows("SELECT * FROM erased_events ORDER BY sequence") == marks
    assert keyed.look(order).remaining == 0


def test_restore_takes_away_one_event_that_was_forgotten_by_its_handle(keyed: Keyed) -> None:
    told(keyed)
    again = keyed.prefer(ANNA, "tone", "brief", "turn-4")
    for query in (
        f"SELECT handle FROM preference_events WHERE sequence = {again.version}",  # noqa: S608 - a number of ours
        "SELECT handle FROM preference_events WHERE operation = 'delete'",
        "SELECT handle FROM preference_events WHERE value = 'Detailed answers'",
        "SELECT handle FROM fact_candidates WHERE value = 'long' AND tenant = 'acme' AND user_id = 'anna'",
    ):
        before = keyed.told()
        ((handle,),) = keyed.rows(query)
        order = keyed.order(by_memory(handle))
        erased, seen = keyed.run(order)
        assert (erased.erased, seen.remaining) == (1, 0)
        after = keyed.told()
        epoch = 2 + int(keyed.rows("SELECT max(epoch) FROM source_epoch")[0][0])
        assert keyed.restore(order, before, epoch) == 1
        assert keyed.told() == after, query


def test_what_was_revoked_when_the_copy_was_taken_goes_and_leaves_its_mark(keyed: Keyed) -> None:
    told(keyed)
    order = keyed.order(by_key("tone"))
    targets = keyed.revoke(order).targets
    keyed.change("DELETE FROM source_tombstones")
    assert keyed.adapter.restore(None, [], lambda: 2).erased == len(targets) == 3
    assert keyed.kept(*targets) == []
    marks = {(mac, n) for mac, n in keyed.rows("SELECT key_mac, sequence FROM erased_events")}
    assert marks == {(key_mac(keyed.gate, ANNA, "tone"), t.version) for t in targets if t.kind == "event"}
    assert keyed.preferences.resolve(ANNA, "tone").state is State.ERASED


def test_what_rests_on_no_event_does_not_hold_after_a_restore(keyed: Keyed) -> None:
    told(keyed)
    keyed.change("DELETE FROM preference_events WHERE user_id = 'berta'")
    keyed.adapter.restore(None, [], lambda: 2)
    assert keyed.rows("SELECT user_id FROM preferences WHERE user_id = 'berta'") == []
    assert keyed.preferences.state(AT_WORK, "tone").value == "plain"


def test_candidate_that_was_accepted_in_a_forgotten_message_goes(keyed: Keyed) -> None:
    told(keyed)
    candidate = keyed.propose(ANNA, "colour", "green", "turn-2")
    keyed.register(ANNA, "turn-7")
    keyed.candidates.accept(ANNA, candidate.id, source="turn-7", expected_version=0)
    before = keyed.told()
    order = keyed.order(by_source("turn-7"))
    keyed.run(order)
    after = keyed.told()
    keyed.restore(order, before)
    assert keyed.told() == after
    assert keyed.kept(candidate) == []


def test_events_after_a_restore_come_after_all_that_were_ever_accepted(keyed: Keyed) -> None:
    told(keyed)
    last = max(n for (n,) in keyed.rows("SELECT sequence FROM preference_events WHERE tenant = 'acme'"))
    order = keyed.order(by_key("tone"))
    before = keyed.told()
    keyed.run(order)
    keyed.restore(order, before)
    event = keyed.prefer(ANNA, "tone", "plain", "turn-9", stated=True)
    assert event.version > 2 * 2**40 > last
    with pytest.raises(GateRefused):
        keyed.prefer(ANNA, "tone", "brief", "turn-2")


def test_draft_that_was_made_from_a_forgotten_event_goes_with_it(keyed: Keyed) -> None:
    going, staying = keyed.prefer(ANNA, "tone", "brief", "turn-1"), keyed.prefer(ANNA, "seat", "aisle", "turn-2")
    of_drafts.create_all(keyed.adapter._engine)
    for target in (going, staying):
        row = f"'acme', 'd{target.version}', 'j{target.version}', 'anna', 'trips', 'input', 1, 'so it is'"
        keyed.change(f"INSERT INTO drafts VALUES ({row})")  # noqa: S608 - a number of ours
        used = f"'acme', 'd{target.version}', 'event', '{target.id}', {target.version}"
        keyed.change(f"INSERT INTO draft_used VALUES ({used})")  # noqa: S608 - as above
    order = keyed.order(by_key("tone"))
    before = keyed.told()
    keyed.run(order)
    assert keyed.restore(order, before) == 2, "an event, and what was made from it"
    assert keyed.rows("SELECT handle FROM drafts") == [(f"d{staying.version}",)]
    assert keyed.rows("SELECT handle FROM draft_used") == [(f"d{staying.version}",)]
