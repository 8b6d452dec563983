"""Copies of the source database hold events and candidates as well: they are found, erased and looked for there."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

import pytest

from adapters.backup.manifest import Copy
from adapters.memory.candidates import Candidates
from adapters.memory.preferences import PreferenceLog
from adapters.memory.preferences.marks import key_mac
from orchestrator import Scope, Selector, SelectorKind, Target
from tests.integration.backup_harness import ANNA, AT_WORK, BERTA, ELSEWHERE, EVERYWHERE, SUBJECT, Stage, backups, sql

__all__ = ["backups"]
TABLES = ("preference_events", "preferences", "fact_candidates", "facts")


def prefer(backups: Stage, scope: Scope, key: str, value: str, source: str) -> Target:
    memory = backups.memory
    if not memory.store.knows_source(scope, source):
        memory.store.register_source(scope, source)
    log = PreferenceLog(memory._engine, memory._context.gate, backups.clock)
    event = log.prefer(scope, key, value, source)
    return Target(kind="event", id=event.id, version=event.sequence)


def propose(backups: Stage, scope: Scope, key: str, value: str, source: str) -> Target:
    memory = backups.memory
    made = Candidates(memory._engine, memory._context.gate, backups.clock)
    return Target(kind="candidate", id=made.propose(scope, key, value, source, proposed_by="summariser").id)


def kept(backups: Stage, copy: Copy) -> dict[str, list[tuple[object, ...]]]:
    return {table: sorted(backups.rows(copy, f"SELECT * FROM {table}"), key=repr) for table in TABLES}  # noqa: S608 - ours


def everybody_prefers(backups: Stage) -> dict[Scope, tuple[Target, Target]]:
    told = {}
    for scope in (ANNA, AT_WORK, BERTA, ELSEWHERE):
        source = f"{scope.tenant}/{scope.user}/{scope.project}/turn-9"
        told[scope] = (prefer(backups, scope, "tone", "brief", source), propose(backups, scope, "tone", "dry", source))
    return told


SOURCE = Selector(kind=SelectorKind.SOURCE, value="acme/anna/trips/turn-9")
TONE = Selector(kind=SelectorKind.KEY, value="tone")


@pytest.mark.parametrize(("selector", "scope"), [(TONE, ANNA), (SOURCE, AT_WORK), (TONE, EVERYWHERE)])
def test_copy_loses_what_an_order_names_and_nothing_else(backups: Stage, selector: Selector, scope: Scope) -> None:
    told = everybody_prefers(backups)
    copy = backups.take()
    before = kept(backups, copy)
    going = told[ANNA] + (told[AT_WORK] if scope == EVERYWHERE else ())
    names = {target.id for target in going}
    order = backups.revoked(selector, scope)
    assert {target.id for target in order.known} == names
    found = backups.found(order)
    assert [target.id for target in found.targets] == [copy.handle]
    assert backups.look(order).remaining == 1
    assert (backups.erase(found).erased, backups.look(order).remaining) == (1, 0)
    expected = {t: [row for row in rows if not names.intersection(map(str, row))] for t, rows in before.items()}
    assert kept(backups, copy) == expected
    marks = backups.rows(copy, "SELECT tenant, key_mac, sequence FROM erased_events")
    gate = backups.memory._context.gate
    places = [(ANNA, told[ANNA][0])] + ([(AT_WORK, told[AT_WORK][0])] if scope == EVERYWHERE else [])
    assert set(marks) == {("acme", key_mac(gate, place, "tone"), event.version) for place, event in places}
    again = backups.erase(found)
    assert (again.erased, again.already_absent) == (0, 1)


@pytest.mark.parametrize("number", [0, 1], ids=["event", "candidate"])
def test_copy_is_found_by_one_record_alone_and_by_what_the_source_has_revoked(backups: Stage, number: int) -> None:
    told = everybody_prefers(backups)
    copy = backups.take()
    target = told[ANNA][number]
    order = backups.revoked(Selector(kind=SelectorKind.MEMORY, value=target.id))
    assert order.known == (target,)
    nothing = replace(order, selector=Selector(kind=SelectorKind.KEY, value="nothing"))
    for asked in (order, replace(order, known=()), nothing):
        assert backups.look(asked).remaining == 1, "by its handle, by its selector, and by what was revoked"
        (found,) = backups.found(asked).targets
        assert found.derived_of == f"{target.kind}:{target.id}@{target.version}"
    other = replace(order, scope=ELSEWHERE)
    assert backups.look(other).remaining == 0
    assert backups.found(other).targets == ()
    assert backups.erase(backups.found(order)).erased == 1
    assert backups.look(order).remaining == 0
    assert all(row[0] != target.id for row in backups.rows(copy, "SELECT handle FROM preferences"))


def test_memory_takes_what_stands_under_the_key_of_its_fact_from_a_copy(backups: Stage) -> None:
    event, _ = everybody_prefers(backups)[ANNA]
    handles = dict(backups.rows(backups.take(), "SELECT handle, key FROM preference_events"))
    key, store = handles[event.id], backups.memory.store
    store.register_source(ANNA, "turn-of-the-fact")
    store.put(ANNA, key, "a fact of the same key", "turn-of-the-fact")
    (fact,) = [fact.id for fact in store.current(ANNA) if fact.key == key]
    copy = backups.take()
    order = backups.revoked(Selector(kind=SelectorKind.MEMORY, value=fact))
    assert event in order.known
    by_selector_alone = replace(order, job=uuid4(), known=())  # of a job that the source knows nothing of
    assert backups.erase(backups.found(by_selector_alone)).erased >= 1
    assert all(row[0] != event.id for row in backups.rows(copy, "SELECT handle FROM preference_events"))
    assert backups.look(replace(order, known=())).remaining == 0


def test_what_holds_in_a_copy_is_seen_and_goes_though_its_event_is_not_there(backups: Stage) -> None:
    event, _ = everybody_prefers(backups)[ANNA]
    copy = backups.take()
    with sql(backups.path(copy)) as database:
        database.execute("DELETE FROM preference_events")
    backups.as_listed(copy)
    order = backups.revoked(Selector(kind=SelectorKind.MEMORY, value=event.id))
    assert backups.look(order).remaining == 1
    assert backups.erase(backups.found(order)).erased == 1
    assert backups.look(order).remaining == 0
    assert len(backups.rows(copy, "SELECT handle FROM preferences")) == 3


def test_what_a_hold_covers_stays_in_a_copy(backups: Stage) -> None:
    event, candidate = everybody_prefers(backups)[ANNA]
    copy = backups.take()
    held = frozenset({event.id, candidate.id})
    order = replace(backups.revoked(SUBJECT, held=held), held=held)
    assert backups.erase(replace(backups.found(order), held=held)).erased == 1
    query = "SELECT handle FROM preference_events UNION SELECT handle FROM fact_candidates"
    assert held <= {handle for (handle,) in backups.rows(copy, query)}


def test_copy_without_those_tables_is_looked_into_all_the_same(backups: Stage) -> None:
    everybody_prefers(backups)
    copy = backups.take()
    with sql(backups.path(copy)) as database:
        for table in ("preference_events", "preferences", "fact_candidates", "erased_events"):
            database.execute(f"DROP TABLE {table}")
    backups.as_listed(copy)
    order = backups.revoked(TONE)
    assert backups.found(order).targets == ()
    assert backups.look(order).remaining == 0
    whole = backups.revoked(SUBJECT)
    assert backups.erase(backups.found(whole)).erased == 1
    assert backups.look(whole).remaining == 0
