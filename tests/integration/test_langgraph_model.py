"""Whatever a graph does, in whatever order: our store answers as LangGraph's own one does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import uuid4

from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.store.base import BaseStore, GetOp, Item, ListNamespacesOp, MatchCondition, Op, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from adapters.langgraph import key_of
from adapters.langgraph.names import names_of
from adapters.memory import MemoryAdapter
from tests.integration.langgraph_harness import USER, sqlite_memory, store_of, told

__all__ = ["sqlite_memory"]

LABELS = st.sampled_from(["a", "b", "a.b", 'a","b', "*", "A", "\\", "é", "é"])
NAMESPACES = st.lists(LABELS, max_size=3).map(tuple)
KEYS = st.sampled_from(["a", "b", 'a","b', "", "["])
VALUES = st.dictionaries(st.sampled_from("xy"), st.sampled_from([1, 2, "1", [1], {"x": 1}, None, True]), max_size=2)
FILTERS: st.SearchStrategy[dict[str, Any] | None] = st.none() | st.sampled_from(
    [{"x": 1}, {"x": {"$ne": 1}}, {"y": {"x": 1}}, {"x": [1]}]
)
CONDITIONS = st.builds(MatchCondition, st.sampled_from(["prefix", "suffix"]), st.lists(LABELS, max_size=2).map(tuple))
NUMBERS = st.integers(0, 4)

# By tuples: asked to build an operation, hypothesis thinks of times and orders that only ours knows.
PUTS = st.tuples(NAMESPACES, KEYS, st.none() | VALUES).map(lambda parts: PutOp(*parts))
GETS = st.tuples(NAMESPACES, KEYS).map(lambda parts: GetOp(*parts))
SEARCHES = st.tuples(NAMESPACES, FILTERS).map(lambda parts: SearchOp(parts[0], parts[1], 1000))
LISTS = st.tuples(st.lists(CONDITIONS, max_size=2).map(tuple), st.none() | st.integers(1, 3), NUMBERS, NUMBERS).map(
    lambda parts: ListNamespacesOp(*parts)
)
BATCHES = st.lists(st.lists(PUTS | GETS | SEARCHES | LISTS, min_size=1, max_size=6), min_size=1, max_size=6)


@settings(deadline=None, max_examples=60)
@given(BATCHES)
def test_batches_of_all_operations_are_answered_alike(sqlite_memory: MemoryAdapter, batches: list[list[Op]]) -> None:
    ours, theirs = store_of(sqlite_memory, replace(USER, tenant=f"tenant-{uuid4()}")), InMemoryStore()
    for ops in batches:
        # Theirs goes on listing a namespace that was emptied, or only asked for.
        expected = [(only_what_it_holds(theirs).batch([op])[0]) for op in ops]
        theirs.batch(ops)
        assert [plain(answer) for answer in ours.batch(ops)] == [plain(answer) for answer in expected]
    assert told(ours.search((), limit=1000)) == told(theirs.search((), limit=1000))


@given(st.lists(st.text(min_size=1), max_size=4).map(tuple), st.text())
def test_names_are_read_back_from_the_key_that_they_became(namespace: tuple[str, ...], key: str) -> None:
    try:
        text = key_of(namespace, key)
    except ValueError:
        return
    assert names_of(text) == (namespace, key)


def only_what_it_holds(store: BaseStore) -> InMemoryStore:
    fresh = InMemoryStore()
    fresh.batch([PutOp(item.namespace, item.key, item.value) for item in store.search((), limit=1000)])
    return fresh


def plain(answer: Any) -> Any:  # noqa: ANN401 - of whatever operation
    if isinstance(answer, Item):
        return told([answer])
    if isinstance(answer, list) and all(isinstance(one, Item) for one in answer):
        return told(answer)
    return answer
