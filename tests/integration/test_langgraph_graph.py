"""A real graph writes to our store: by the turn that the application has set, also in threads and tasks of its own."""

from __future__ import annotations

import asyncio
import operator
from contextvars import ContextVar
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.graph import END, START, StateGraph
from langgraph.store.base import BaseStore

from adapters.langgraph import ScopedStore
from adapters.memory import MemoryAdapter
from orchestrator import GateRefused, Refusal, Scope
from tests.integration.langgraph_harness import memory, postgresql_memory, sqlite_memory, told, user

__all__ = ["memory", "postgresql_memory", "sqlite_memory", "user"]

TURN = ContextVar[str]("turn")
PREFS = ("users", "prefs")


class State(TypedDict):
    said: str
    known: Annotated[list[str], operator.add]


def learn(state: State, *, store: BaseStore) -> dict[str, Any]:
    store.put(PREFS, "colour", {"text": state["said"]})
    return {}


async def learn_async(state: State, *, store: BaseStore) -> dict[str, Any]:
    await asyncio.gather(*(store.aput(PREFS, f"colour-{n}", {"text": state["said"]}) for n in range(2)))
    return {}


def recall(state: State, *, store: BaseStore) -> dict[str, Any]:
    return {"known": [item.value["text"] for item in store.search(PREFS, query=state["said"])]}


def graph(*, waits: bool) -> Any:  # noqa: ANN401 - of four parameters that say nothing here
    made = StateGraph(State)
    made.add_node("learn", learn_async if waits else learn)
    made.add_node("recall", recall)
    made.add_edge(START, "learn")
    made.add_edge("learn", "recall")
    made.add_edge("recall", END)
    return made.compile()


def test_graph_that_was_compiled_once_serves_each_user_with_a_store_of_their_own(
    memory: MemoryAdapter, user: Scope
) -> None:
    other = Scope(tenant=user.tenant, user="user-2", project=user.project)
    compiled = graph(waits=False)
    for scope, said in ((user, "green"), (other, "red")):
        memory.store.register_source(scope, f"{scope.user}/turn-1")
        TURN.set(f"{scope.user}/turn-1")
        bound = compiled.copy({"store": ScopedStore(memory.store, scope, TURN.get)})
        assert bound.invoke({"said": said, "known": []})["known"] == [said]
    assert [fact.source for fact in memory.store.current(user)] == ["user-1/turn-1"]
    assert [fact.source for fact in memory.store.current(other)] == ["user-2/turn-1"]


def test_graph_that_awaits_writes_by_the_turn_of_its_caller(memory: MemoryAdapter, user: Scope) -> None:
    async def turn(name: str) -> list[str]:
        memory.store.register_source(user, name)
        TURN.set(name)
        bound = graph(waits=True).copy({"store": ScopedStore(memory.store, user, TURN.get)})
        known: list[str] = (await bound.ainvoke({"said": name, "known": []}))["known"]
        return known

    assert asyncio.run(turn("turn-1")) == ["turn-1", "turn-1"]
    assert {(fact.version, fact.source) for fact in memory.store.current(user)} == {(1, "turn-1")}


def test_refusal_of_the_gate_comes_out_of_the_graph_as_it_is(memory: MemoryAdapter, user: Scope) -> None:
    store = ScopedStore(memory.store, user, lambda: "turn-that-nobody-accepted")
    with pytest.raises(GateRefused) as caught:
        graph(waits=False).copy({"store": store}).invoke({"said": "green", "known": []})
    assert caught.value.refusal is Refusal.UNKNOWN_SOURCE
    assert told(store.search(())) == []
