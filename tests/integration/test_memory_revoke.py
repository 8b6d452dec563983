"""Revocation in the memory store: what each request takes, and what stays of the neighbours."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator import Erased, Refusal, Scope, Selector, SelectorKind, Target
from tests.integration.memory_harness import (
    ALL,
    BY_KEY,
    BY_SOURCE,
    FOREIGN,
    NEIGHBOUR,
    OTHER_PROJECT,
    PASSPORT,
    SUBJECT,
    TURN_6,
    A,
    World,
    kinds,
)


@pytest.mark.req("R123")
def test_a_repeat_of_a_job_gives_the_same_answer_and_changes_nothing(world: World) -> None:
    world.tell(A, "passport", "P7654321 since May", "turn-7")
    order = world.order()
    first = world.revoke(order)
    assert [t.version for t in first.targets] == [1, 2]
    world.tell(A, "passport", "lost it, ask me again", "turn-31", user_statement=True)
    assert world.revoke(order) == first
    assert [f.value for f in world.store.current(A)] == ["lost it, ask me again", "aisle seat"]
    other = world.revoke(world.order())
    assert len(other.targets) == 3, "what another job has revoked is named too"


def test_a_second_job_on_blank_data_raises_nothing_and_marks_no_text(world: World) -> None:
    first, second = world.revoke(world.order()), world.revoke(world.order())
    assert second.targets == first.targets
    assert second.revision == first.revision == 3
    assert kinds(second) == ["key"]


@pytest.mark.parametrize(
    ("selector", "scope", "marks", "left"),
    [
        (BY_KEY, A, {"key", "text", "source_token", "fact_source"}, ["seat"]),
        (BY_SOURCE, A, {"source", "text"}, []),
        (SUBJECT, A, {"subject", "source"}, []),
    ],
)
def test_each_request_takes_its_own_and_leaves_the_neighbours(
    world: World, selector: Selector, scope: Scope, marks: set[str], left: list[str]
) -> None:
    others = "SELECT * FROM facts WHERE user_id <> 'reader-A' OR tenant <> 'tenant-a' ORDER BY tenant, user_id, key"
    before = world.rows(others)
    order = world.order(selector, scope)
    preview = world.adapter.find([order])[0]
    answer = world.revoke(order)
    assert preview.targets == answer.targets == world.adapter.find([order])[0].targets
    assert set(kinds(answer)) == marks
    assert [f.key for f in world.store.current(A)] == left
    targets = replace(order, targets=answer.targets)
    assert world.adapter.verify([targets])[0].remaining == len(answer.targets), "blank is not erased"
    assert world.adapter.erase([targets])[0] == Erased(erased=len(answer.targets))
    assert world.adapter.verify([targets])[0].remaining == 0
    assert world.adapter.erase([targets])[0] == Erased(already_absent=len(answer.targets))
    assert world.rows(others) == before


def test_a_memory_is_named_by_its_handle_within_its_owner(world: World) -> None:
    handle = world.store.current(A)[0].id
    selector = Selector(kind=SelectorKind.MEMORY, value=handle)
    for scope in (NEIGHBOUR, FOREIGN, OTHER_PROJECT):
        answer = world.revoke(world.order(selector, scope))
        assert (answer.targets, answer.tombstones) == ((), ())
    assert world.revoke(world.order(selector)).targets == (Target(kind="fact", id=handle, version=1),)
    assert world.refused(A, "passport", "something else", TURN_6) is Refusal.KEY_TOMBSTONED


def test_without_a_project_a_key_goes_in_every_project(world: World) -> None:
    world.tell(OTHER_PROJECT, "passport", PASSPORT, "b/turn-1")
    world.tell(ALL, "passport", PASSPORT, "general/turn-1")
    empty = Scope(tenant="tenant-a", user="reader-A", project="empty")
    world.store.register_source(empty, "empty/turn-1")
    answer = world.revoke(world.order(BY_KEY, ALL))
    assert len(answer.targets) == 3
    assert {world.store.revision(s) for s in (A, OTHER_PROJECT, ALL)} == {answer.revision}
    assert world.refused(empty, "passport", "any", "empty/turn-1") is Refusal.KEY_TOMBSTONED


def test_a_source_reaches_derived_facts_in_other_projects_but_no_other_user(world: World) -> None:
    world.store.register_source(OTHER_PROJECT, "summary-9", kind="model", derived_from=[TURN_6])
    world.tell(OTHER_PROJECT, "trip", "travels in May", "summary-9")
    world.store.register_source(NEIGHBOUR, "summary-10", kind="model", derived_from=[TURN_6])
    world.tell(NEIGHBOUR, "trip", "travels in May", "summary-10")
    answer = world.revoke(world.order(BY_SOURCE))
    assert len(answer.targets) == 3
    assert world.store.current(OTHER_PROJECT) == []
    assert [f.key for f in world.store.current(NEIGHBOUR)] == ["passport", "seat", "trip"]


def test_nobody_blocks_another_users_source(world: World) -> None:
    answer = world.revoke(world.order(BY_SOURCE, NEIGHBOUR))
    assert (answer.targets, answer.tombstones) == ((), ())
    assert world.tell(A, "seat", "window seat", TURN_6) == 2
