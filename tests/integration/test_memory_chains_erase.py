"""Erasing chains: each as a whole and counted exactly, with a record that holds no text; and looking again."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import structlog

from orchestrator import MAX_PAGE, Erased, Scope, Selector, Target
from tests.integration.memory_chains_harness import (
    ALICE,
    BOB,
    FOREIGN,
    PASSPORT,
    RENEWED,
    SUBJECT,
    Source,
    by_memory,
    by_source,
    everything,
    place,
    source,
    target,
)

__all__ = ["source"]


def counts(answer: Erased) -> tuple[int, int, int]:
    return answer.erased, answer.already_absent, answer.extra


def corrected(source: Source) -> tuple[int, int]:
    """Let alice tell a memory and correct it, and let others tell the same."""
    first = source.tell(ALICE, PASSPORT, "turn-1")
    for scope, name in ((BOB, "bob-1"), (FOREIGN, "turn-1")):
        source.tell(scope, PASSPORT, name)
    return first, source.correct(ALICE, first, RENEWED, "turn-2")


def test_erase_takes_whole_chains_of_its_tenant_and_leaves_the_neighbours(source: Source) -> None:
    first, second = corrected(source)
    source.adapter.store.put(place(ALICE), "seat", "aisle", "turn-1")
    neighbours = [row for row in source.memories() if row[0] not in (first, second)]
    facts = source.rows("SELECT * FROM facts")
    order = source.order(by_memory(second), everything(ALICE))
    erased, seen = source.run(order)
    assert (counts(erased), seen.remaining) == ((2, 0, 0), 0)
    assert source.memories() == neighbours
    assert source.rows("SELECT * FROM facts") == facts
    again = source.adapter.erase([replace(order, targets=source.revoke(order).targets, attempt=2)])[0]
    assert counts(again) == (0, 2, 0)


def test_record_of_a_deletion_names_ids_and_a_job_and_holds_no_text(source: Source) -> None:
    first, second = corrected(source)
    lines: list[structlog.typing.EventDict]
    with structlog.testing.capture_logs() as lines:
        order = source.order(by_source("turn-1"), everything(ALICE))
        source.run(order)
    ((user, ids, reason, tenant),) = source.rows(
        "SELECT user_id, memory_ids, reason, tenant FROM deletions JOIN deletion_tenants ON deletion_id = id"
    )
    assert (user, json.loads(ids), tenant) == ("alice", [first, second], "acme")
    assert reason == f"expunge job {order.job}"
    (told,) = source.adapter.chains.deletions(ALICE)
    assert (told.memory_ids, told.reason, told.deleted_at) == ((first, second), reason, source.clock.now())
    assert source.adapter.chains.deletions(BOB) == []
    everywhere = source.rows("SELECT * FROM deletions") + source.rows("SELECT * FROM source_tombstones")
    for secret in (PASSPORT, RENEWED, "P1234567", "P7654321", "turn-1"):
        assert secret not in repr(everywhere)
        assert secret not in repr(lines)


def test_exact_handles_are_erased_and_nothing_that_looks_like_them(source: Source) -> None:
    first, second = corrected(source)
    before = source.memories()
    third = source.tell(ALICE, "Eats fish.", "turn-3")
    strangers = (
        target(third, second),  # the memory of one chain under the id of another
        target(second, second),  # a version that is not the first of its chain
        target(first, third),
        Target(kind="memory", id=f"0{first}", version=first),
        Target(kind="memory", id=f"{first} ", version=first),
        Target(kind="memory", id="%", version=first),
        Target(kind="memory", id=str(2**63), version=first),
        Target(kind="fact", id=str(first), version=first),
        Target(kind="point", id=str(first), version=first),
    )
    order = source.order(SUBJECT, everything(ALICE), targets=strangers)
    assert counts(source.adapter.erase([order])[0]) == (0, len(strangers), 0)
    assert source.memories()[: len(before)] == before
    exact = (target(first, first), target(first, second))
    elsewhere = source.order(SUBJECT, everything(FOREIGN), targets=exact)
    assert counts(source.adapter.erase([elsewhere])[0]) == (0, 2, 0)
    assert source.adapter.verify([elsewhere])[0].remaining == 1, "of the other tenant's own alone"
    assert source.memories()[: len(before)] == before


def test_chain_goes_whole_where_a_page_names_a_part_of_it(source: Source) -> None:
    ids = source.bulk(ALICE, MAX_PAGE + 1, "turn-1")
    other = source.tell(ALICE, PASSPORT, "turn-2")
    order = source.order(by_memory(ids[500]), everything(ALICE))
    first = source.revoke(order)
    last = source.revoke(replace(order, cursor=first.cursor))
    assert [len(page.targets) for page in (first, last)] == [MAX_PAGE, 1]
    assert [t.version for page in (first, last) for t in page.targets] == ids
    pages = [replace(order, targets=page.targets) for page in (first, last)]
    assert counts(source.adapter.erase(pages[:1])[0]) == (MAX_PAGE + 1, 0, 1)
    assert source.ids() == [other], "no version stays behind another"
    assert counts(source.adapter.erase(pages[1:])[0]) == (0, 1, 0)
    (record,) = source.adapter.chains.deletions(ALICE)
    assert list(record.memory_ids) == ids
    looks = [replace(page, known=page.targets) for page in pages]
    assert [seen.remaining for seen in source.adapter.verify(looks)] == [0, 0]


def test_pages_of_one_batch_count_their_own(source: Source) -> None:
    ids = source.bulk(ALICE, MAX_PAGE + 1, "turn-1")
    order = source.order(by_source("turn-1"), everything(ALICE))
    first = source.revoke(order)
    pages = (source.revoke(replace(order, cursor=first.cursor)), first)
    stranger = source.order(SUBJECT, everything(ALICE), targets=(target(ids[0], ids[0]),))
    answers = source.adapter.erase([*(replace(order, targets=page.targets) for page in pages), stranger])
    assert [counts(answer) for answer in answers] == [(1, 0, 0), (MAX_PAGE, 0, 0), (0, 1, 0)]


def test_version_that_came_after_the_find_goes_with_its_chain(source: Source) -> None:
    first = source.tell(ALICE, PASSPORT, "turn-1")
    order = source.order(SUBJECT, everything(ALICE))
    targets = source.adapter.find([order])[0].targets
    source.correct(ALICE, first, RENEWED, "turn-2")
    assert counts(source.adapter.erase([replace(order, targets=targets)])[0]) == (2, 0, 1)
    assert source.ids() == []


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE memories SET user_id = 'nobody'",
        "DELETE FROM memory_tenants",
        "UPDATE memory_tenants SET revoked = 1",
        "UPDATE memories SET source = 'unknown', task_id = NULL",
    ],
)
def test_look_sees_every_version_that_stays_whatever_hides_it(source: Source, statement: str) -> None:
    first, second = corrected(source)
    orders = [source.order(s, everything(ALICE)) for s in (by_memory(first), by_source("turn-1"), SUBJECT)]
    targets = [source.revoke(order).targets for order in orders]
    source.change(statement)
    for order, named in zip(orders, targets, strict=True):
        assert source.adapter.verify([replace(order, targets=named)])[0].remaining >= 2
        assert source.adapter.verify([replace(order, known=named)])[0].remaining >= 2
    assert {first, second} <= set(source.ids())


@pytest.mark.parametrize(
    ("selector", "project", "remaining"),
    [
        (SUBJECT, None, 2),
        (SUBJECT, "trips", 2),
        (SUBJECT, "work", 0),
        (by_source("turn-1"), "work", 2),  # of the source itself, and of one that derives from it
        (by_source("turn-2"), None, 1),
        (by_source("turn-9"), None, 0),
        (Selector(kind=SUBJECT.kind.KEY, value="1"), None, 0),
    ],
)
@pytest.mark.parametrize("orphaned", [False, True])
def test_look_by_selector_sees_what_no_target_names(
    source: Source, selector: Selector, project: str | None, remaining: int, *, orphaned: bool
) -> None:
    first = source.tell(ALICE, PASSPORT, "turn-1")
    source.register(ALICE, "turn-2", "turn-1")
    second = source.correct(ALICE, first, RENEWED, "turn-2")
    source.tell(BOB, PASSPORT, "bob-1")
    source.change("UPDATE memory_tenants SET revoked = 1", *(["DELETE FROM memory_tenants"] if orphaned else []))
    order = source.order(selector, Scope(tenant="acme", user="alice", project=project))
    assert source.adapter.verify([order])[0].remaining == remaining
    for memory in (first, second):
        named = source.order(by_memory(memory), Scope(tenant="acme", user="alice", project=project))
        assert source.adapter.verify([named])[0].remaining == (project != "work")
    foreign = source.order(selector, Scope(tenant="other", user="alice", project=project))
    assert bool(source.adapter.verify([foreign])[0].remaining) is (orphaned and remaining > 0), "it might be anybody's"


def test_what_was_told_after_the_cut_off_is_no_copy(source: Source) -> None:
    corrected(source)
    order = source.order(SUBJECT, everything(ALICE))
    erased, seen = source.run(order)
    kept = source.tell(ALICE, "Eats fish.", "turn-9")
    assert (erased.erased, seen.remaining) == (2, 0)
    assert source.adapter.verify([order])[0].remaining == 0
    assert source.adapter.find([order])[0].targets == ()
    assert kept in source.ids()
