"""Revoking chains: whole ones, in the transaction of the facts, hidden from every read and not yet erased."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adapters.memory import revoke as revoking
from adapters.memory.chains import MemoryNotFound
from adapters.memory.engine import writing
from orchestrator import MAX_PAGE, InvalidRequest, Scope, Selector, SelectorKind
from tests.integration.memory_chains_harness import (
    ALICE,
    AT_WORK,
    BOB,
    FOREIGN,
    PASSPORT,
    RENEWED,
    SUBJECT,
    Source,
    by_memory,
    by_source,
    everything,
    kinds,
    place,
    source,
    target,
)

__all__ = ["source"]


def filled(source: Source) -> list[int]:
    """Let alice tell two memories, one of them corrected, and others tell the same."""
    first = source.tell(ALICE, PASSPORT, "turn-1")
    second = source.correct(ALICE, first, RENEWED, "turn-2")
    diet = source.tell(ALICE, "Eats fish.", "turn-3", level="user")
    seat = source.tell(AT_WORK, "Sits at the passport window.", "work-1")
    source.tell(BOB, PASSPORT, "bob-1")
    source.tell(FOREIGN, PASSPORT, "turn-1")
    return [first, second, diet, seat]


@pytest.mark.parametrize(
    ("selector", "project", "taken"),
    [
        ("first", None, [0, 1]),
        ("second", "trips", [0, 1]),
        ("first", "work", []),
        ("turn-1", None, [0, 1]),
        ("turn-2", "work", [0, 1]),  # a source reaches into every project, as it does among the facts
        ("turn-3", None, [2]),
        ("subject", None, [0, 1, 2, 3]),
        ("subject", "trips", [0, 1]),  # what is of the user in general is no project's
        ("subject", "work", [3]),
        ("key", None, []),
    ],
)
def test_each_selector_names_whole_chains_and_hides_them(
    source: Source, selector: str, project: str | None, taken: list[int]
) -> None:
    ids = filled(source)
    before = source.memories()
    selectors = {
        "first": by_memory(ids[0]),
        "second": by_memory(ids[1]),
        "subject": SUBJECT,
        "key": Selector(kind=SelectorKind.KEY, value=str(ids[0])),
    }
    scope = Scope(tenant="acme", user="alice", project=project)
    order = source.order(selectors.get(selector) or by_source(selector), scope)
    assert [t for t in source.adapter.find([order])[0].targets if t.kind == "memory"] == [
        target(ids[0] if n == 1 else ids[n], ids[n]) for n in taken
    ]
    answer = source.revoke(order)
    assert answer.targets == tuple(target(ids[0] if n == 1 else ids[n], ids[n]) for n in taken)
    after = source.memories()
    assert [row[:-1] for row in after] == [row[:-1] for row in before], "every text is as it was"
    hidden = {ids[n] for n in taken}
    assert {row[0] for row in after if row[-1]} == hidden
    for n, scope_of in enumerate((ALICE, ALICE, ALICE, AT_WORK)):
        if n in taken:
            with pytest.raises(MemoryNotFound):
                source.adapter.chains.history(scope_of, ids[n])
        else:
            assert source.adapter.chains.history(scope_of, ids[n])
    assert (source.recalled(BOB), source.recalled(FOREIGN)) == ([ids[3] + 1], [ids[3] + 2])


def test_a_source_names_what_was_told_by_one_that_derives_from_it(source: Source) -> None:
    for name, *behind in (("turn-0",), ("summary-1", "turn-0"), ("summary-2", "summary-1")):
        source.register(ALICE, name, *behind)
    derived = source.tell(ALICE, PASSPORT, "summary-2")
    other = source.tell(ALICE, RENEWED, "turn-1")
    order = source.order(by_source("turn-0"), everything(ALICE))
    assert source.adapter.find([order])[0].targets == (target(derived, derived),)
    assert source.revoke(order).targets == (target(derived, derived),)
    assert source.recalled(ALICE) == [other]


def test_facts_and_chains_of_one_job_are_revoked_together_and_raise_one_revision(source: Source) -> None:
    ids = filled(source)
    store = source.adapter.store
    store.put(place(ALICE), "seat", "aisle", "turn-1")
    store.register_source(replace(place(ALICE), project="home"), "home-1")
    store.put(replace(place(ALICE), project="home"), "colour", "green", "home-1")
    scopes = [everything(ALICE), place(ALICE), place(AT_WORK), replace(place(ALICE), project="home")]
    before = [store.revision(scope) for scope in (*scopes, place(BOB), place(FOREIGN))]
    order = source.order(SUBJECT, everything(ALICE))
    answer = source.revoke(order)
    assert sorted(t.kind for t in answer.targets) == ["fact"] * 2 + ["memory"] * 4
    ordinals = [row[0] for row in source.rows("SELECT ordinal FROM revocation_targets ORDER BY ordinal")]
    assert ordinals == [1, 2, 3, 4, 5, 6]
    assert source.rows("SELECT targets, revision FROM source_revocations") == [(6, max(before[:4]) + 1)]
    after = [store.revision(scope) for scope in (*scopes, place(BOB), place(FOREIGN))]
    assert after == [max(before[:4]) + 1] * 4 + before[4:]
    assert answer.revision == after[0]
    assert len(ids) == 4


@pytest.mark.parametrize("at_once", [revoking.AT_ONCE, 0])
def test_facts_by_lists_and_by_conditions_take_the_chains_with_them(source: Source, at_once: int) -> None:
    ids = filled(source)
    source.adapter.store.put(place(ALICE), "seat", "aisle", "turn-1")
    order = source.order(SUBJECT, everything(ALICE))
    told = []
    for held in (frozenset({str(ids[0])}), frozenset[str]()):
        with writing(source.adapter._engine, ["acme"]) as connection:
            asked = [replace(order, held=held)]
            told += revoking.revoke(
                connection, source.adapter._context.gate, asked, at=source.clock.now(), at_once=at_once
            )
    assert [len(answer.targets) for answer in told] == [3, 5]
    assert (told[1].revision or 0) == (told[0].revision or 0) + 1
    scopes = (everything(ALICE), place(ALICE), place(AT_WORK))
    assert [source.adapter.store.revision(scope) for scope in scopes] == [told[1].revision] * 2 + [told[0].revision]
    assert source.adapter.store.current(place(ALICE)) == []


@pytest.mark.parametrize("at_once", [revoking.AT_ONCE, 0])
def test_a_memory_of_the_user_in_general_raises_the_revision_of_every_project(source: Source, at_once: int) -> None:
    diet = source.tell(ALICE, "Eats fish.", "turn-3", level="user")
    for text in ("Sits at the window.", "Works on Mondays."):
        source.tell(AT_WORK, text, "work-1")
        source.adapter.store.put(place(ALICE), "seat", text, "turn-3")
    for other in (BOB, FOREIGN):
        source.tell(other, PASSPORT, "theirs")
    scopes = [everything(ALICE), place(ALICE), place(AT_WORK), place(BOB), place(FOREIGN)]
    before = [source.adapter.store.revision(scope) for scope in scopes]
    assert before[0] < min(before[1:3]), "or an answer of a project would be void by chance"
    order = source.order(by_memory(diet), everything(ALICE))
    with writing(source.adapter._engine, ["acme"]) as connection:
        gate = source.adapter._context.gate
        (answer,) = revoking.revoke(connection, gate, [order], at=source.clock.now(), at_once=at_once)
    after = [source.adapter.store.revision(scope) for scope in scopes]
    assert [answer.revision, *after] == [max(before[:3]) + 1] * 4 + before[3:]


def test_a_repeat_answers_the_same_and_another_job_names_the_same_records_again(source: Source) -> None:
    ids = filled(source)
    order = source.order(by_source("turn-1"), everything(ALICE))
    first = source.revoke(order)
    revision = source.adapter.store.revision(place(ALICE))
    rows = source.memories()
    assert source.revoke(replace(order, attempt=2)) == first
    again = source.order(by_memory(ids[0]), everything(ALICE))
    other = source.revoke(again)
    assert other.targets == first.targets
    assert source.adapter.store.revision(place(ALICE)) == revision, "nothing changed for those who read"
    assert source.memories() == rows
    source.adapter.erase([replace(order, targets=first.targets)])
    assert source.revoke(order) == first
    assert source.revoke(again) == other


def test_two_orders_of_one_batch_that_name_one_chain_both_name_it(source: Source) -> None:
    ids = filled(source)
    orders = [source.order(by_memory(ids[0]), everything(ALICE)), source.order(SUBJECT, everything(ALICE))]
    one, other = source.adapter.revoke(orders)
    assert one.targets == (target(ids[0], ids[0]), target(ids[0], ids[1]))
    assert len(other.targets) == 4
    assert source.adapter.revoke(orders) == [one, other]


@pytest.mark.parametrize("selector", ["first", "turn-1", "subject"])
def test_a_held_chain_is_left_whole_and_taken_when_it_is_free(source: Source, selector: str) -> None:
    ids = filled(source)
    item = str(ids[0])
    order = source.order(
        {"first": by_memory(ids[1]), "turn-1": by_source("turn-1")}.get(selector, SUBJECT), everything(ALICE)
    )
    before = source.memories()
    held = replace(order, held=frozenset({item, "7f1c2d4e-0000-4000-8000-000000000000"}))
    first = source.revoke(held)
    assert first.left == {item}
    assert item not in {t.id for t in first.targets}
    assert [row for row in source.memories() if row[0] in ids[:2]] == before[:2]
    assert [v.id for v in source.adapter.chains.history(ALICE, ids[0])] == ids[:2]
    assert source.revoke(held) == first
    last = source.revoke(order)
    assert not last.left
    assert set(last.targets) - set(first.targets) == {target(ids[0], ids[0]), target(ids[0], ids[1])}
    assert last.targets[: len(first.targets)] == first.targets, "what was told stays in its place"
    assert source.revoke(order) == last
    with pytest.raises(MemoryNotFound):
        source.adapter.chains.history(ALICE, ids[0])
    assert source.rows("SELECT * FROM revocation_left") == []
    assert "text" in kinds(last) or selector == "subject"


def test_an_item_that_another_job_took_meanwhile_is_told_with_its_tombstones_when_it_is_free(source: Source) -> None:
    ids = filled(source)
    order = source.order(by_memory(ids[0]), everything(ALICE))
    first = source.revoke(replace(order, held=frozenset({str(ids[0])})))
    assert (first.targets, first.tombstones) == ((), ())
    source.revoke(source.order(by_source("turn-1"), everything(ALICE)))
    last = source.revoke(order)
    assert len(last.targets) == 2
    assert kinds(last) == ["fact_source", "source_token", "text"]
    assert (last.revision or 0) > (first.revision or 0), "who is in the middle of the pages begins with the tombstones"


def test_a_chain_that_was_corrected_while_it_was_held_goes_whole(source: Source) -> None:
    first = source.tell(ALICE, PASSPORT, "turn-1")
    order = source.order(SUBJECT, everything(ALICE))
    source.revoke(replace(order, held=frozenset({str(first)})))
    corrected = source.correct(ALICE, first, "None any more.", "turn-9")
    later = source.tell(ALICE, "A new one.", "turn-9")
    assert source.revoke(order).targets == (target(first, first), target(first, corrected))
    erase = replace(order, targets=source.revoke(order).targets)
    assert (source.adapter.erase([erase])[0].erased, source.adapter.verify([erase])[0].remaining) == (2, 0)
    assert source.ids() == [later], "what was told after the job's cut-off stays"
    assert source.adapter.find([order])[0].targets == ()


def test_ids_of_facts_and_of_chains_are_told_apart_by_their_form(source: Source) -> None:
    ids = filled(source)
    source.adapter.store.put(place(ALICE), "seat", "aisle", "turn-1")
    (fact,) = source.adapter.store.current(place(ALICE))
    assert not fact.id.isdigit()
    named = [
        f"{ids[0]}",
        f"0{ids[0]}",
        f"+{ids[0]}",
        f" {ids[0]}",
        f"{ids[0]}.0",
        f"{ids[0]}\u0663",
        str(2**63),
        fact.id,
    ]
    answers = [
        source.revoke(source.order(Selector(kind=SelectorKind.MEMORY, value=value), everything(ALICE)))
        for value in named
    ]
    assert [len(answer.targets) for answer in answers] == [2, 0, 0, 0, 0, 0, 0, 1]


def test_a_database_without_chains_is_asked_once_and_nothing_else(source: Source) -> None:
    store = source.adapter.store
    store.register_source(place(ALICE), "turn-1")
    store.put(place(ALICE), "seat", "aisle", "turn-1")
    assert "memories" not in str(source.rows("SELECT * FROM facts"))
    erased, seen = source.run(source.order(SUBJECT, everything(ALICE)))
    assert (erased.erased, seen.remaining) == (1, 0)
    stray = source.order(SUBJECT, everything(ALICE), targets=(target(1, 1),))
    assert source.adapter.erase([stray])[0].already_absent == 1
    assert source.adapter.verify([stray])[0].remaining == 0


def test_find_goes_on_from_the_facts_to_the_chains_page_by_page(source: Source) -> None:
    ids = source.bulk(ALICE, MAX_PAGE + 1, "turn-1")
    for key in ("seat", "meal"):
        source.adapter.store.put(place(ALICE), key, "aisle", "turn-1")
    for selector in (SUBJECT, by_source("turn-1")):
        order = source.order(selector, everything(ALICE))
        first = source.adapter.find([order])[0]
        second = source.adapter.find([replace(order, cursor=first.cursor)])[0]
        assert [t.kind for t in first.targets] == ["fact"] * 2 + ["memory"] * (MAX_PAGE - 2)
        assert [t.version for t in (*first.targets[2:], *second.targets)] == ids
        assert second.cursor is None
    with pytest.raises(InvalidRequest):
        source.adapter.find([source.order(SUBJECT, everything(ALICE), cursor="memory:1")])


def test_chains_begin_a_page_of_their_own_where_the_facts_fill_one(source: Source) -> None:
    source.register(ALICE, "turn-1")
    scope = place(ALICE)
    source.change(
        *(
            f"INSERT INTO facts VALUES ('acme', 'alice', '{scope.project}', 'k-{n}', 1, 'id-{n:05}', 'v', 'turn-1',"  # noqa: S608
            f" 1, 9e99, 1, 'live')"
            for n in range(MAX_PAGE)
        )
    )
    memory = source.tell(ALICE, PASSPORT, "turn-1")
    order = source.order(SUBJECT, everything(ALICE))
    first = source.adapter.find([order])[0]
    assert len(first.targets) == MAX_PAGE
    assert source.adapter.find([replace(order, cursor=first.cursor)])[0].targets == (target(memory, memory),)
