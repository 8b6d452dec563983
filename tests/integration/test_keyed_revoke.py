"""A job takes events and candidates as it takes facts: what each selector names, what is hidden, and what is marked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator import Refusal, Selector, SelectorKind
from tests.integration.keyed_harness import (
    ANNA,
    AT_WORK,
    BERTA,
    EVERYWHERE,
    FOREIGN,
    PASSPORT,
    SUBJECT,
    Keyed,
    by_key,
    by_memory,
    by_source,
    keyed,
    kinds,
)

__all__ = ["keyed"]


def everybody(keyed: Keyed) -> None:
    """Let others tell the same, in the same words."""
    for scope in (BERTA, FOREIGN):
        source = f"{scope.tenant}/{scope.user}/turn-1"
        keyed.prefer(scope, "tone", "brief", source)
        keyed.propose(scope, "tone", "brief", source)


def test_key_names_events_and_candidates_of_exactly_its_scope(keyed: Keyed) -> None:
    everybody(keyed)
    before = keyed.told()
    mine = {keyed.prefer(ANNA, "tone", "brief", "turn-1"), keyed.propose(ANNA, "tone", "long", "turn-1")}
    abroad = {keyed.prefer(AT_WORK, "tone", "plain", "turn-2"), keyed.propose(AT_WORK, "tone", "dry", "turn-2")}
    other = {keyed.prefer(ANNA, "tone-2", "loud", "turn-1"), keyed.propose(ANNA, "ton", "soft", "turn-1")}
    for selector, scope, named in (
        (by_key("tone"), ANNA, mine),
        (by_key("tone"), EVERYWHERE, mine | abroad),
        (SUBJECT, ANNA, mine | other),
        (SUBJECT, EVERYWHERE, mine | abroad | other),
        (Selector(kind=SelectorKind.EXPIRED), EVERYWHERE, set()),
        (by_key("ton%"), ANNA, set()),
    ):
        assert set(keyed.found(keyed.order(selector, scope))) == named
    order = keyed.order(SUBJECT, EVERYWHERE)
    assert set(keyed.revoke(order).targets) == mine | abroad | other
    after = keyed.told()
    for table, rows in before.items():
        assert set(rows) <= set(after[table]), "others are as they were"


def test_source_names_what_was_told_in_it_or_in_what_was_made_of_it_in_every_project(keyed: Keyed) -> None:
    keyed.register(ANNA, "turn-1")
    keyed.register(ANNA, "summary", "turn-1")
    keyed.register(AT_WORK, "report", "summary")
    told = {keyed.prefer(ANNA, "tone", "brief", "turn-1"), keyed.propose(AT_WORK, "tone", "long", "report")}
    decided = keyed.propose(ANNA, "seat", "aisle", "turn-2")
    keyed.register(ANNA, "turn-3")
    keyed.candidates.accept(ANNA, decided.id, source="turn-3", expected_version=0)
    assert set(keyed.found(keyed.order(by_source("turn-1")))) == told
    in_which_it_was_decided = {t for t in keyed.found(keyed.order(by_source("turn-3"), AT_WORK)) if t.kind != "fact"}
    assert in_which_it_was_decided == {decided}
    assert set(keyed.found(keyed.order(by_source("turn-1"), BERTA))) == set(), "nobody names another user's"


def test_memory_names_one_event_or_candidate_or_what_stands_under_the_key_of_a_fact(keyed: Keyed) -> None:
    event, other = keyed.prefer(ANNA, "tone", "brief", "turn-1"), keyed.prefer(ANNA, "tone", "long", "turn-2")
    fact = keyed.put(ANNA, "seat", "aisle", "turn-1")
    proposed = {keyed.propose(ANNA, "seat", "window", "turn-2"), keyed.propose(ANNA, "seat", "any", "turn-2")}
    stated = keyed.prefer(ANNA, "seat", "by the window", "turn-1")
    abroad, at_work = keyed.propose(AT_WORK, "seat", "window", "turn-4"), keyed.prefer(AT_WORK, "seat", "any", "turn-4")
    assert keyed.found(keyed.order(by_memory(event.id))) == (event,)
    assert set(keyed.found(keyed.order(by_memory(fact.id)))) == {fact, stated, *proposed}
    before = keyed.look(keyed.order(by_memory(fact.id))).remaining
    assert before == len({fact, stated, *proposed}), "a look counts them by the selector alone"
    assert at_work not in keyed.found(keyed.order(by_memory(fact.id), EVERYWHERE)), "the key is that of its scope"
    assert keyed.found(keyed.order(by_memory(abroad.id), ANNA)) == ()
    assert keyed.found(keyed.order(by_memory(abroad.id), EVERYWHERE)) == (abroad,)
    assert keyed.found(keyed.order(by_memory(event.id), FOREIGN)) == ()
    keyed.revoke(keyed.order(by_memory(event.id)))
    assert keyed.kept(event, other) == [("revoked", None), ("live", "long")]
    assert keyed.preferences.state(ANNA, "tone").value == "long"


def test_what_is_revoked_is_blank_and_hidden_at_once_and_what_holds_says_erased(keyed: Keyed) -> None:
    event, candidate = keyed.prefer(ANNA, "tone", "brief", "turn-1"), keyed.propose(ANNA, "tone", "long", "turn-1")
    rejected = keyed.propose(ANNA, "tone", "short", "turn-1")
    keyed.candidates.reject(ANNA, rejected.id)
    before = keyed.adapter.store.revision(ANNA)
    answer = keyed.revoke(keyed.order(by_key("tone")))
    assert [(t.kind, t.version) for t in answer.targets] == [("event", event.version), *[("candidate", 0)] * 2]
    assert {t.id for t in answer.targets} == {event.id, candidate.id, rejected.id}
    assert keyed.kept(event, candidate, rejected) == [("revoked", None), ("blocked", None), ("rejected", None)]
    assert keyed.rows("SELECT operation, value, sequence FROM preferences") == [("erased", None, event.version)]
    assert keyed.candidates.pending(ANNA) == []
    assert (answer.revision, keyed.adapter.store.revision(ANNA)) == (before + 1, before + 1)
    assert "brief" not in repr(answer)
    assert "long" not in repr(answer)


def test_what_held_in_general_changes_every_project_of_its_user_and_no_one_elses(keyed: Keyed) -> None:
    for scope in (EVERYWHERE, AT_WORK, BERTA):
        keyed.put(scope, "seat", "aisle", f"{scope.user}/{scope.project}/turn-1")
    event = keyed.prefer(EVERYWHERE, "tone", "brief", "turn-9")
    before = {scope: keyed.adapter.store.revision(scope) for scope in (EVERYWHERE, AT_WORK, BERTA)}
    keyed.revoke(keyed.order(by_memory(event.id), EVERYWHERE))
    after = {scope: keyed.adapter.store.revision(scope) for scope in before}
    assert after[EVERYWHERE] > before[EVERYWHERE]
    assert after[AT_WORK] > before[AT_WORK]
    assert after[BERTA] == before[BERTA]


def test_repeat_answers_the_same_and_changes_nothing(keyed: Keyed) -> None:
    keyed.prefer(ANNA, "tone", "brief", "turn-1")
    keyed.propose(ANNA, "tone", "long", "turn-1")
    order = keyed.order(by_source("turn-1"))
    first = keyed.revoke(order)
    after = keyed.told(), keyed.adapter.store.revision(ANNA)
    assert keyed.revoke(order) == first
    assert (keyed.told(), keyed.adapter.store.revision(ANNA)) == after
    other = keyed.revoke(keyed.order(by_source("turn-1")))
    assert other.targets == first.targets, "another job names what a job has revoked"
    assert other.revision == first.revision, "and changes nothing"


@pytest.mark.parametrize("kind", ["event", "candidate"])
def test_tombstones_keep_a_text_from_coming_back_by_each_way_of_asking(keyed: Keyed, kind: str) -> None:
    tell = keyed.prefer if kind == "event" else keyed.propose
    target = tell(ANNA, "passport", PASSPORT, "turn-1")
    (event,) = (target,)
    cases = (
        (by_key("passport"), ["fact_source", "key", "source_token", "source_token", "source_token", "text"]),
        (by_source("turn-1"), ["source", "text"]),
        (by_memory(event.id), ["fact_source", "source_token", "source_token", "source_token", "text", "text"]),
        (SUBJECT, ["source", "subject"]),
    )
    before = keyed.told()
    for selector, expected in cases:
        order = keyed.order(selector)
        assert kinds(keyed.revoke(order)) == expected, selector.kind
        keyed.change("DELETE FROM source_tombstones")
        put_back(keyed, before)


def put_back(keyed: Keyed, rows: dict[str, list[tuple[object, ...]]]) -> None:
    keyed.change("DELETE FROM fact_candidates", "DELETE FROM preferences", "DELETE FROM preference_events")
    for table, some in rows.items():
        for row in some:
            values = ", ".join("NULL" if v is None else repr(v).replace("inf", "'Infinity'") for v in row)
            if "sqlite" in keyed.url:
                values = values.replace("'Infinity'", "9e999")
            keyed.change(f"INSERT INTO {table} VALUES ({values})")  # noqa: S608 - rows of ours


def test_forgotten_preference_is_refused_from_old_sources_and_admitted_when_it_is_stated_afresh(keyed: Keyed) -> None:
    keyed.prefer(ANNA, "passport", PASSPORT, "turn-1")
    keyed.register(ANNA, "old")
    keyed.run(keyed.order(by_key("passport")))
    assert keyed.refused(ANNA, "passport", PASSPORT, "old") is Refusal.KEY_TOMBSTONED
    assert keyed.refused(ANNA, "travel", "It is P1234567, I said.", "turn-1") is Refusal.TOKEN_TOMBSTONED
    assert keyed.refused(ANNA, "passport", PASSPORT, "new") is Refusal.TEXT_TOMBSTONED
    keyed.prefer(ANNA, "passport", PASSPORT, "newest", stated=True)
    keyed.prefer(AT_WORK, "passport", PASSPORT, "at-work")


def test_key_without_a_project_is_blocked_where_a_user_has_events_alone(keyed: Keyed) -> None:
    keyed.register(EVERYWHERE, "turn-1")
    keyed.preferences.prefer(AT_WORK, "passport", PASSPORT, "turn-1")
    keyed.run(keyed.order(by_key("passport"), EVERYWHERE))
    with pytest.raises(Exception, match=Refusal.KEY_TOMBSTONED.sentence):
        keyed.preferences.prefer(AT_WORK, "passport", "Another one.", "turn-1")


def test_token_that_stands_in_an_event_that_stays_tells_nothing_of_a_fact(keyed: Keyed) -> None:
    keyed.put(ANNA, "airport", "Flies from Schiphol, desk D7.", "turn-1")
    staying = keyed.prefer(ANNA, "start", "Schiphol", "turn-2")
    keyed.prefer(ANNA, "desk", "D7", "turn-3")
    keyed.run(keyed.order(by_key("airport")))
    assert keyed.kept(staying) == [("live", "Schiphol")]
    keyed.put(ANNA, "way", "By train to Schiphol.", "turn-1")
    assert keyed.refused(ANNA, "way", "It flies.", "turn-1") is Refusal.TOKEN_TOMBSTONED


def test_token_that_stands_in_a_fact_that_stays_tells_nothing_of_an_event(keyed: Keyed) -> None:
    keyed.prefer(ANNA, "airport", "Flies from Schiphol.", "turn-1")
    keyed.put(ANNA, "start", "Schiphol", "turn-2")
    keyed.run(keyed.order(by_key("airport")))
    keyed.prefer(ANNA, "way", "By train to Schiphol.", "turn-1")
    assert keyed.refused(ANNA, "way", "It flies.", "turn-1") is Refusal.TOKEN_TOMBSTONED


def test_text_that_another_source_told_as_well_stays_and_may_be_told_again(keyed: Keyed) -> None:
    going, staying = keyed.prefer(ANNA, "tone", "brief", "turn-1"), keyed.prefer(ANNA, "tone", "Brief ", "turn-2")
    proposed = keyed.propose(ANNA, "seat", "aisle", "turn-1"), keyed.propose(ANNA, "seat", "aisle", "turn-2")
    answer = keyed.revoke(keyed.order(by_source("turn-1")))
    assert set(answer.targets) == {going, proposed[0]}
    assert kinds(answer) == ["source"]
    assert keyed.kept(staying, proposed[1]) == [("live", "Brief "), ("pending", "aisle")]
    keyed.prefer(ANNA, "tone", "brief", "turn-3")


def test_what_a_hold_covers_stays_and_is_taken_when_it_is_free(keyed: Keyed) -> None:
    held, other = keyed.prefer(ANNA, "tone", "brief", "turn-1"), keyed.prefer(ANNA, "tone", "long", "turn-1")
    kept, proposed = keyed.propose(ANNA, "tone", "dry", "turn-1"), keyed.propose(ANNA, "tone", "odd", "turn-1")
    keyed.put(ANNA, "seat", "aisle", "turn-1")
    order = keyed.order(by_source("turn-1"))
    first = keyed.revoke(replace(order, held=frozenset({held.id, kept.id, "nobody's"})))
    assert first.left == {held.id, kept.id}
    assert {t for t in first.targets if t.kind != "fact"} == {other, proposed}
    assert keyed.kept(held, kept) == [("live", "brief"), ("pending", "dry")]
    again = keyed.revoke(replace(order, held=frozenset({held.id})))
    assert again.left == {held.id}
    assert {t for t in again.targets if t.kind != "fact"} == {other, proposed, kept}
    last = keyed.revoke(order)
    assert not last.left
    assert {t for t in last.targets if t.kind != "fact"} == {held, other, proposed, kept}
    assert last.revision is not None
    assert first.revision is not None
    assert last.revision > first.revision, "whoever asks again is told of the new tombstones"
    assert set(last.tombstones) > set(first.tombstones)
    assert keyed.kept(held, kept) == [("revoked", None), ("blocked", None)]
    assert keyed.revoke(order) == last


def test_fingerprints_are_made_before_a_text_goes_and_stay_until_it_is_erased(keyed: Keyed) -> None:
    long = "A text that is long enough to be looked for in files, at any rate."
    event, candidate = keyed.prefer(ANNA, "tone", long, "turn-1"), keyed.propose(ANNA, "tone", long + "!", "turn-1")
    object.__setattr__(keyed.context, "fingerprinter", Prints())
    order = keyed.order(by_key("tone"))
    answer = keyed.revoke(order)
    assert len(answer.fingerprints) == 2
    assert answer.unprobed == 0
    kept = keyed.rows("SELECT kind, handle, version FROM record_prints ORDER BY kind DESC")
    assert kept == [("event", event.id, event.version), ("candidate", candidate.id, 0)]
    keyed.erase(order, *answer.targets)
    assert keyed.rows("SELECT * FROM record_prints") == []


class Prints:
    """Makes one fingerprint of each text, as the engine's own does of longer ones."""

    def of_text(self, text: str) -> Prints:
        made = Prints()
        made.text = text
        return made

    text = ""
    not_probeable: tuple[object, ...] = ()

    @property
    def rows(self) -> list[object]:
        from orchestrator import Fingerprint

        return [Fingerprint(len(self.text), f"{len(self.text):064x}")]
