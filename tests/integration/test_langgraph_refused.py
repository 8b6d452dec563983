"""What our store refuses: nothing of its batch has been written then, and no error repeats a value."""

from __future__ import annotations

import asyncio
import math
import traceback
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

import pytest
from langgraph.store.base import GetOp, ListNamespacesOp, MatchCondition, PutOp, SearchOp

from adapters.langgraph import ScopedStore, key_of, text_of
from adapters.memory import MemoryAdapter
from orchestrator import GateRefused, InvalidRequest, Refusal, Scope
from tests.integration.langgraph_harness import (
    START,
    TURN,
    memory,
    postgresql_memory,
    rows,
    sqlite_memory,
    store_of,
    told,
    user,
)

__all__ = ["memory", "postgresql_memory", "sqlite_memory", "user"]

PREFS = ("users", "prefs")
SECRET = "P1234567"


def test_scope_without_a_project_is_refused_for_delete_would_reach_into_all(memory: MemoryAdapter, user: Scope) -> None:
    with pytest.raises(InvalidRequest, match="must name a project"):
        ScopedStore(memory.store, replace(user, project=None), lambda: TURN)


@pytest.mark.parametrize(
    "value",
    [
        {"n": math.nan},
        {"n": math.inf},
        {"n": (1, 2)},
        {"n": START},
        {"n": {1: 2}},
        {1: SECRET},
        {"n": {SECRET}},
        {"n": "\ud800"},
        {"n": f"{SECRET}\0"},
        [["n", 1]],
        {"n": "x" * 1993},
    ],
    ids=lambda value: repr(value)[:30],
)
def test_value_that_would_not_read_back_or_does_not_fit_is_refused_and_not_repeated(
    memory: MemoryAdapter,
    user: Scope,
    value: Any,  # noqa: ANN401 - whatever a graph may come up with
) -> None:
    store = store_of(memory, user)
    with pytest.raises(InvalidRequest, match="value") as caught:
        store.batch([PutOp(PREFS, "a", {"n": 1}), PutOp(PREFS, "b", value), PutOp(PREFS, "c", None)])
    assert SECRET not in "".join(traceback.format_exception(caught.value)).replace(repr(value), "")
    assert rows(memory, user) == [], "what came before it in the batch was not written"


def test_two_thousand_characters_of_json_fit_and_512_of_names(memory: MemoryAdapter, user: Scope) -> None:
    store = store_of(memory, user)
    most = {"n": "é" * (2000 - len('{"n":""}'))}
    store.put(PREFS, "a", most)
    assert len(text_of(most)) == 2000
    with pytest.raises(InvalidRequest, match="written as JSON, must have at most 2000"):
        store.put(PREFS, "a", {"n": most["n"] + "é"})
    key = "k" * (512 - len('["users","prefs",""]'))
    assert len(key_of(PREFS, key)) == 512
    store.put(PREFS, key, {})
    assert told(store.search(PREFS)) == [(PREFS, "a", most), (PREFS, key, {})]
    for op in (PutOp(PREFS, f"{key}k", {}), PutOp(PREFS, f"{key}k", None), GetOp(PREFS, f"{key}k")):
        with pytest.raises(InvalidRequest, match="one JSON array, must have at most 512"):
            store.batch([op])


WRONG = [
    GetOp("users", "k"),  # type: ignore[arg-type]
    GetOp(["users"], "k"),  # type: ignore[arg-type]
    GetOp(("users",), 7),  # type: ignore[arg-type]
    GetOp(("users",), "\ud800"),
    PutOp(("users", ""), "k", {}),
    SearchOp(("users", 7)),  # type: ignore[arg-type]
    SearchOp((), limit=-1),
    SearchOp((), offset=-1),
    SearchOp((), limit=None),  # type: ignore[arg-type]
    SearchOp((), query=7),  # type: ignore[arg-type]
    SearchOp((), filter=[1]),  # type: ignore[arg-type]
    SearchOp((), filter={"a": {"b": {"$like": 1}}}),
    ListNamespacesOp(limit=-1),
    ListNamespacesOp(max_depth=0),
    ListNamespacesOp((MatchCondition("infix", ("a",)),)),  # type: ignore[arg-type]
    ListNamespacesOp((MatchCondition("prefix", ("",)),)),
    PutOp(("users",), "k", {}, ttl=0),
    PutOp(("users",), "k", {}, ttl=-1),
    PutOp(("users",), "k", {}, ttl=math.nan),
    PutOp(("users",), "k", {}, ttl=math.inf),
    PutOp(("users",), "k", {}, ttl="1"),  # type: ignore[arg-type]
    "get",
]


@pytest.mark.parametrize("op", WRONG, ids=lambda op: repr(op)[:60])
def test_wrong_operation_is_refused_before_anything_of_its_batch_is_done(
    sqlite_memory: MemoryAdapter,
    user: Scope,
    op: Any,  # noqa: ANN401 - as above
) -> None:
    store = store_of(sqlite_memory, user)
    with pytest.raises(InvalidRequest):
        store.batch([PutOp(PREFS, "a", {"n": 1}), op])
    assert rows(sqlite_memory, user) == []


def test_put_names_the_source_of_its_turn_and_a_turn_that_was_not_accepted_writes_nothing(
    memory: MemoryAdapter, user: Scope
) -> None:
    turn = ContextVar[str]("turn")
    store = ScopedStore(memory.store, user, turn.get)
    with pytest.raises(InvalidRequest, match="register the message of this turn"):
        store.put(PREFS, "theme", {"n": 1})
    turn.set("chat/turn-7")
    with pytest.raises(GateRefused) as caught:
        store.put(PREFS, "theme", {"n": 1})
    assert caught.value.refusal is Refusal.UNKNOWN_SOURCE
    assert memory.store.refused[Refusal.UNKNOWN_SOURCE] > 0, "the memory store has counted it"
    memory.store.register_source(replace(user, user="user-2"), "chat/turn-7")
    with pytest.raises(GateRefused):
        store.put(PREFS, "theme", {"n": 1})
    assert rows(memory, user) == []
    assert store.get(PREFS, "theme") is None, "reading needs no source"
    ScopedStore(memory.store, user, ContextVar[str]("none").get).delete(PREFS, "theme")
    memory.store.register_source(user, "chat/turn-8")

    async def work() -> None:
        turn.set("chat/turn-8")
        await store.aput(PREFS, "theme", {"n": 1})

    asyncio.run(work())
    (fact,) = memory.store.current(user)
    assert (fact.key, fact.value, fact.source) == ('["users","prefs","theme"]', '{"n":1}', "chat/turn-8")


def test_where_the_gate_refuses_one_put_those_before_it_stay_and_the_batch_may_be_sent_again(
    memory: MemoryAdapter, user: Scope
) -> None:
    store, turns = store_of(memory, user), iter([TURN, "nobody's", TURN])
    again = ScopedStore(memory.store, user, lambda: next(turns))
    batch = [PutOp(PREFS, "a", {"n": 1}), PutOp(PREFS, "b", {"n": 2})]
    again.batch(batch)
    with pytest.raises(GateRefused):
        again.batch(batch)
    again.batch(batch)
    assert told(store.search(())) == [(PREFS, "a", {"n": 1}), (PREFS, "b", {"n": 2})]
