"""Erasing what the memory store has revoked: exactly the targets, seen by verify."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from orchestrator import Erased, InvalidRequest, Scope, Selector, SelectorKind, Target
from tests.integration.memory_harness import FOREIGN, SUBJECT, TURN_6, A, World


def test_a_fresh_statement_is_no_remaining_copy(world: World) -> None:
    order = world.order()
    erased, seen = world.run(order)
    assert (erased.erased, seen.remaining) == (1, 0)
    assert world.tell(A, "passport", "renewed, ask again", "turn-31", user_statement=True) == 2, "after version 1"
    assert world.adapter.verify([order])[0].remaining == 0
    assert world.adapter.find([order])[0].targets == ()
    late = (
        "INSERT INTO facts SELECT tenant, user_id, project, key, 99, 'late', 'x', 'trip-planning/turn-6', 1, 9e12, 0,"
    )
    connection = sqlite3.connect(world.file, isolation_level=None)
    connection.execute(late + " 'live' FROM facts WHERE version = 2 AND key = 'passport' AND user_id = 'reader-A'")
    connection.close()
    assert world.adapter.verify([order])[0].remaining == 1, "a copy from an old source is seen"


@pytest.mark.req("R10")
def test_versions_are_not_reused_after_erasure(world: World) -> None:
    world.tell(A, "passport", "second P7654321", "turn-7")
    world.run(world.order())
    assert world.tell(A, "passport", "none now", "turn-31", user_statement=True) == 3


def test_erase_takes_exact_handles_of_its_tenant(world: World) -> None:
    handle = world.store.current(A)[0].id
    target = (Target(kind="fact", id=handle, version=1), Target(kind="fact", id="unknown", version=1))
    connection = sqlite3.connect(world.file, isolation_level=None)
    connection.execute("UPDATE facts SET fact_id = ? WHERE tenant = 'tenant-b' AND key = 'passport'", (handle,))
    connection.close()
    first, second = world.order(), world.order()
    answers = world.adapter.erase([replace(first, targets=target), replace(second, targets=target), world.order()])
    assert answers == [Erased(erased=1, already_absent=1), Erased(already_absent=2), Erased()]
    assert world.rows("SELECT tenant FROM facts WHERE fact_id IS NOT NULL AND key = 'passport' ORDER BY tenant") == [
        ("tenant-a",),
        ("tenant-b",),
    ]
    assert [f.key for f in world.store.current(FOREIGN)] == ["passport", "seat"]


def test_a_thousand_and_one_targets_come_in_two_pages(world: World) -> None:
    connection = sqlite3.connect(world.file, isolation_level=None)
    connection.execute(
        "WITH RECURSIVE n(i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < 1009) INSERT INTO facts"
        " SELECT tenant, user_id, project, key, i, fact_id, 'old', source, 1, expires, 0, 'replaced' FROM facts, n"
        " WHERE key = 'passport' AND user_id = 'reader-A' AND tenant = 'tenant-a' AND version = 1"
    )
    connection.close()
    order = world.order()
    found = world.adapter.find([order])[0]
    rest = world.adapter.find([replace(order, cursor=found.cursor)])[0]
    first = world.revoke(order)
    second = world.revoke(replace(order, cursor=first.cursor))
    assert [len(x.targets) for x in (found, rest, first, second)] == [1000, 1, 1000, 1]
    assert (first.cursor, second.cursor, rest.cursor) == ("1000@3", None, None)
    assert first.tombstones
    assert not second.tombstones
    everything = first.targets + second.targets
    assert world.adapter.erase([replace(order, targets=everything)])[0].erased == 1001
    for cursor in ("x", "²", "a@b"):
        with pytest.raises(InvalidRequest):
            world.revoke(replace(order, cursor=cursor))
        with pytest.raises(InvalidRequest):
            world.adapter.find([replace(order, cursor=cursor)])


def test_log_lines_hold_ids_and_counts(world: World) -> None:
    with capture_logs() as lines:
        world.run(world.order())
    assert [line["event"] for line in lines] == ["source.revoked", "facts.erased"]
    for word in ("P1234567", "passport", "reader-A", TURN_6):
        assert word not in str(lines)


@pytest.mark.req("R8")
@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        ("Comet", "Comet-2"),
        ("user:1", "user:10"),
        ("User:1", "user:1"),
        ("a%", "ab"),
        ("a_c", "abc"),
        ("a*", "ab"),
        ("it's", "its"),
        ('quo"te', "quote"),
        ("back\\slash", "back\\\\slash"),
        ("new\nline", "new line"),
        ("caf\u00e9", "cafe\u0301"),
        ("\U0001f600", "\U0001f601"),
        ("x" * 512, "x" * 511),
    ],
)
def test_a_job_takes_exactly_its_names(world: World, mine: str, theirs: str) -> None:
    asked = Scope(tenant="tenant-a", user=mine, project=mine)
    others = [
        Scope(tenant="tenant-a", user=mine, project=theirs),
        Scope(tenant="tenant-a", user=theirs, project=mine),
        Scope(tenant=f"tenant-{theirs}"[:512], user=mine, project=mine),
    ]
    for number, scope in enumerate((asked, *others)):
        for key in (mine, theirs):
            world.tell(scope, key, f"text {number}", f"{mine[:500]}{number}")
    answer = world.run(world.order(Selector(kind=SelectorKind.KEY, value=mine), asked))
    assert (answer[0].erased, answer[1].remaining) == (1, 0)
    assert [f.key for f in world.store.current(asked)] == [theirs]
    assert world.run(world.order(SUBJECT, asked))[0].erased == 1
    assert [len(world.store.current(scope)) for scope in others] == [2, 2, 2]
