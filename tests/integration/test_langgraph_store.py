"""Where our store differs from LangGraph's own on purpose: whose items they are, times, order, and what is none."""

from __future__ import annotations

import math
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from adapters.langgraph import key_of, text_of
from adapters.memory import MemoryAdapter
from orchestrator import Scope
from tests.fakes import FakeClock
from tests.integration.langgraph_harness import (
    START,
    TURN,
    clock,
    memory,
    open_memory,
    postgresql_memory,
    rows,
    sqlite_memory,
    store_of,
    told,
    user,
)
from tests.integration.rows_harness import bound_url

__all__ = ["clock", "memory", "postgresql_memory", "sqlite_memory", "user"]

PREFS = ("users", "prefs")
SECRET = "P1234567"


@pytest.mark.req("R1")
@pytest.mark.req("R4")
@pytest.mark.req("R5")
@pytest.mark.req("R8")
def test_no_name_that_a_graph_hands_in_reaches_another_scope(memory: MemoryAdapter, user: Scope) -> None:
    scopes = [
        user,
        replace(user, project="project-B"),
        replace(user, user="user-2"),
        replace(user, tenant=f"{user.tenant}-b"),
        replace(user, project=f"{user.project}-2"),
    ]
    stores = [store_of(memory, scope, f"{n}/{TURN}") for n, scope in enumerate(scopes)]
    for n, store in enumerate(stores):
        store.put(("user-2", "summaries"), "language", {"lang": n})
    for n, store in enumerate(stores):
        assert told(store.search(())) == [(("user-2", "summaries"), "language", {"lang": n})]
        assert store.list_namespaces() == [("user-2", "summaries")]
    stores[0].delete(("user-2", "summaries"), "language")
    assert stores[0].search(()) == []
    assert stores[0].get(("user-2", "summaries"), "language") is None
    left = [store.get(("user-2", "summaries"), "language") for store in stores[1:]]
    assert [item.value["lang"] for item in left if item is not None] == [1, 2, 3, 4]


@pytest.mark.req("R10")
@pytest.mark.req("R27")
@pytest.mark.req("R29")
def test_delete_blanks_every_version_here_and_the_same_turn_may_put_it_again(
    memory: MemoryAdapter, user: Scope
) -> None:
    store = store_of(memory, user)
    store.put(PREFS, "language", {"is": "en"})
    store.put(PREFS, "language", {"is": "zh-CN"})
    store.put(PREFS, "theme", {"is": "dark"})
    store.delete(PREFS, "language")
    revision = memory.store.revision(user)
    assert rows(memory, user)[:2] == [(key_of(PREFS, "language"), n, "[deleted]", 0) for n in (1, 2)]
    store.delete(PREFS, "language")
    assert memory.store.revision(user) == revision, "the second one has changed nothing"
    assert told(store.search(())) == [(PREFS, "theme", {"is": "dark"})]
    store.put(PREFS, "language", {"is": "zh-CN"})
    assert rows(memory, user)[2] == (key_of(PREFS, "language"), 3, '{"is":"zh-CN"}', 1)


@pytest.mark.req("R16")
@pytest.mark.case(46)
def test_what_has_expired_is_read_by_nobody_and_no_read_lengthens_its_time(
    memory: MemoryAdapter, clock: FakeClock, user: Scope
) -> None:
    store = store_of(memory, user)
    clock.at = datetime.fromtimestamp(40, UTC)
    store.put(PREFS, "theme", {"n": 1}, ttl=1)
    store.put(PREFS, "kept", {"n": 2})
    assert [fact.expires for fact in memory.store.current(user)] == [math.inf, 100.0]
    clock.at = datetime.fromtimestamp(99.999, UTC)
    assert store.get(PREFS, "theme", refresh_ttl=True) is not None
    assert len(store.search(PREFS, refresh_ttl=True)) == 2
    clock.at = datetime.fromtimestamp(100, UTC)
    assert store.get(PREFS, "theme") is None
    assert told(store.search(PREFS)) == [(PREFS, "kept", {"n": 2})]
    store.put(("other",), "theme", {"n": 1}, ttl=0.5)
    clock.at += timedelta(seconds=30)
    assert store.list_namespaces() == [PREFS]
    assert [expired.scope for expired in memory.expired() if expired.scope == user] == [user], (
        "a job of the clock takes it"
    )
    store.put(PREFS, "theme", {"n": 3})
    clock.at += timedelta(days=9999)
    assert store.get(PREFS, "theme") is not None, "a put without a time has none"


def test_times_of_an_item_are_those_at_which_its_sources_were_accepted(
    memory: MemoryAdapter, clock: FakeClock, user: Scope
) -> None:
    def put(turn: str) -> tuple[datetime, datetime]:
        store = store_of(memory, user, turn)
        store.put(PREFS, "theme", {"of": turn})
        item = store.get(PREFS, "theme")
        assert item is not None
        assert [found for found in store.search(PREFS) if found.key == "theme"] == [item]
        return item.created_at, item.updated_at

    first, second = START + timedelta(microseconds=1), START + timedelta(days=1)
    clock.at = START
    others = (
        replace(user, tenant=f"{user.tenant}-b"),
        replace(user, user="user-2"),
        replace(user, project="project-B"),
    )
    for turn, other in zip(("chat/turn-1", "chat/turn-7", "chat/turn-8"), others, strict=True):
        store_of(memory, other, turn).put(PREFS, "theme", {"of": "others"})
    store_of(memory, user, "chat/turn-9").put(PREFS, "other", {})
    clock.at = first
    assert put("chat/turn-1") == (first, first)
    clock.at = second
    assert put("chat/turn-2") == (first, second)
    assert put("chat/turn-1") == (first, first)
    store_of(memory, user).delete(PREFS, "theme")
    assert put("chat/turn-2") == (second, second), "of what was forgotten not even the time is told"


@pytest.mark.req("R32")
def test_query_ranks_by_words_inside_what_the_reader_may_see(memory: MemoryAdapter, user: Scope) -> None:
    store, foreign = store_of(memory, user), store_of(memory, replace(user, user="user-2"), "theirs")
    foreign.put(PREFS, "best", {"text": "green tea from Japan"})
    store.put(PREFS, "a", {"text": "nothing of it"})
    store.put(PREFS, "b", {"text": "coffee", "of": ["from\nJAPAN", {"n": 7}]})
    store.put(PREFS, "tea", {"text": "black"})
    found = store.search((), query="Green tea from Japan, 7", limit=3)
    assert [(item.key, item.score) for item in found] == [("b", 0.6), ("tea", 0.2), ("a", None)]
    assert [item.key for item in store.search((), query="green tea", limit=1)] == ["tea"]
    assert [item.key for item in store.search((), query="?!")] == ["a", "b", "tea"]


def test_pages_come_in_the_order_of_names(memory: MemoryAdapter, user: Scope) -> None:
    store = store_of(memory, user)
    for name in ("b", "a"):
        for namespace in (("y",), ("x!",), ("x", "z"), ("x",)):
            store.put(namespace, name, {})
    names = [(*item.namespace, item.key) for item in store.search((), limit=4, offset=1)]
    assert names == [("x", "b"), ("x", "z", "a"), ("x", "z", "b"), ("x!", "a")]


def test_fact_that_no_graph_has_put_is_no_item_and_stays(memory: MemoryAdapter, user: Scope) -> None:
    store = store_of(memory, user)
    told_otherwise = {
        "passport": '{"n":1}',
        '["a", "spaced"]': '{"n":1}',
        '["","k"]': '{"n":1}',
        '["a",1]': '{"n":1}',
        "[]": '{"n":1}',
        "[" * 500: '{"n":1}',
        '["a","text"]': "green",
        '["a","list"]': "[1]",
        '["a","deep"]': "[" * 2000,
    }
    for key, text in told_otherwise.items():
        memory.store.put(user, key, text, TURN)
    assert store.search(()) == []
    assert store.list_namespaces() == []
    assert store.get(("a",), "text") is None
    assert {fact.key: fact.value for fact in memory.store.current(user)} == told_otherwise


def test_fact_that_was_not_confirmed_is_no_item(memory: MemoryAdapter, user: Scope) -> None:
    store = store_of(memory, user)
    memory.store.put(user, key_of(PREFS, "theme"), text_of({"n": 1}), TURN, confirmed=False)
    assert (store.get(PREFS, "theme"), store.search(()), store.list_namespaces()) == (None, [], [])


def test_role_that_row_level_security_binds_may_do_all_of_it(postgres_url: str, user: Scope, tmp_path: Path) -> None:
    with closing(open_memory(bound_url(postgres_url), tmp_path, FakeClock(START))) as bound:
        store = store_of(bound, user)
        store.put(PREFS, "theme", {"n": 1})
        store.put(PREFS, "other", {"n": 2})
        store.delete(PREFS, "other")
        item = store.get(PREFS, "theme")
        assert item is not None
        assert told(store.search(())) == [(PREFS, "theme", {"n": 1})]
        assert store.list_namespaces() == [PREFS]


def test_namespace_that_holds_nothing_is_not_listed(memory: MemoryAdapter, user: Scope) -> None:
    store = store_of(memory, user)
    store.put(PREFS, "theme", {})
    assert store.get(("asked", "for"), "theme") is None
    assert store.list_namespaces() == [PREFS]
    store.delete(PREFS, "theme")
    assert store.list_namespaces() == []
    assert store.search(()) == []


def test_field_that_is_missing_or_no_number_is_neither_more_nor_less(memory: MemoryAdapter, user: Scope) -> None:
    store = store_of(memory, user)
    values: list[dict[str, Any]] = [{}, {"n": None}, {"n": "many"}, {"n": [1]}, {"n": int("9" * 400)}, {"n": 5}]
    for n, value in enumerate(values):
        store.put(PREFS, str(n), value)
    for operator in ("$gt", "$lt", "$gte", "$lte"):
        assert [item.key for item in store.search(PREFS, filter={"n": {operator: 5}})] == ["5"] * ("e" in operator)
