"""What LangGraph's own store does, ours does: the same tests run over both."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from langgraph.store.base import GetOp, ListNamespacesOp, MatchCondition, PutOp, SearchOp

from tests.integration.langgraph_harness import (
    Asked,
    asked,
    either,
    postgresql_memory,
    sqlite_memory,
    told,
    user,
)

__all__ = ["asked", "either", "postgresql_memory", "sqlite_memory", "user"]

PREFS = ("users", "prefs")


def test_what_is_put_is_read_back_as_it_was_put(asked: Asked) -> None:
    value = {
        "text": 'Tab\tand "quotes", \\ and\na line 报告 \x07',
        "n": [1, 2.5, -0.0, True, None],
        "in": {"a": {}},
        "": "",
    }
    asked.put(PREFS, "theme", value)
    item = asked.get(PREFS, "theme")
    assert item is not None
    assert (item.namespace, item.key, item.value) == (PREFS, "theme", value)
    assert item.created_at <= item.updated_at
    assert item.updated_at.tzinfo is not None
    assert told(asked.search(PREFS)) == [(PREFS, "theme", value)]


def test_what_was_never_put_is_none_and_no_error(asked: Asked) -> None:
    assert asked.get(PREFS, "theme") is None
    assert asked.search(PREFS) == []
    asked.delete(PREFS, "theme")
    assert asked.get(PREFS, "theme") is None


def test_second_put_takes_the_place_of_the_first_as_a_whole(asked: Asked) -> None:
    asked.put(PREFS, "theme", {"colour": "dark", "size": 2})
    asked.put(PREFS, "theme", {"colour": "light"})
    assert told(asked.search()) == [(PREFS, "theme", {"colour": "light"})]


def test_delete_takes_its_item_alone_and_the_key_may_be_put_again(asked: Asked) -> None:
    for namespace, key in ((PREFS, "theme"), (PREFS, "them"), (("users",), "theme"), ((*PREFS, "x"), "theme")):
        asked.put(namespace, key, {"of": [*namespace, key]})
    asked.delete(PREFS, "theme")
    assert asked.get(PREFS, "theme") is None
    assert len(told(asked.search())) == 3
    asked.put(PREFS, "theme", {"again": True})
    assert asked.value(PREFS, "theme") == {"again": True}


@pytest.mark.case(56)
@pytest.mark.case(62)
def test_prefix_is_compared_label_by_label(asked: Asked) -> None:
    for n, namespace in enumerate([("user:1",), ("user:10",), ("user:1", "x"), ("user", "1"), ("users",)]):
        asked.put(namespace, f"k{n}", {"n": n})
    assert asked.keys(("user:1",)) == ["k0", "k2"]
    assert asked.keys(("user:1", "x")) == ["k2"]
    assert asked.keys(("user",)) == ["k3"]
    assert asked.keys(("us",)) == []
    assert asked.keys(()) == ["k0", "k1", "k2", "k3", "k4"]


@pytest.mark.case(62)
def test_names_that_join_to_the_same_text_are_different_items(asked: Asked) -> None:
    """The methods of the library refuse labels with a period; what is handed to `batch` passes them by."""
    names: list[tuple[tuple[str, ...], str]] = [
        (("a", "b.c"), "k"),
        (("a.b", "c"), "k"),
        (("a", "b", "c"), "k"),
        (("a",), 'b.c","k'),
        (("a", "b.c", "k"), ""),
        (("a",), "b.c.k"),
    ]
    asked.batch(*(PutOp(namespace, key, {"n": n}) for n, (namespace, key) in enumerate(names)))
    found = asked.batch(*(GetOp(namespace, key) for namespace, key in names))
    assert [item.value["n"] for item in found] == [0, 1, 2, 3, 4, 5]
    (under,) = asked.batch(SearchOp(("a", "b")))
    assert [item.value["n"] for item in under] == [2]


@pytest.mark.case(59)
def test_names_are_taken_exactly(asked: Asked) -> None:
    names = [
        "User",
        "user",
        "%",
        "*",
        "us_r",
        "ä",
        unicodedata.normalize("NFD", "ä"),
        "a'b",
        'a"b',
        "a\\b",
        "a\nb",
        "😀",
        " ",
    ]
    for n, name in enumerate(names):
        asked.put(("n", name), name, {"n": n})
    assert [asked.value(("n", name), name) for name in names] == [{"n": n} for n in range(len(names))]
    assert [[i.value["n"] for i in asked.search(("n", name))] for name in names] == [[n] for n in range(len(names))]
    for name in names[::2]:
        asked.delete(("n", name), name)
    assert sorted(item.value["n"] for item in asked.search(limit=100)) == list(range(1, len(names), 2))


FILTERS: list[tuple[dict[str, Any], list[str]]] = [
    ({}, ["a", "b", "c"]),
    ({"kind": "report"}, ["a", "b"]),
    ({"kind": "report", "score": 3}, ["a"]),
    ({"kind": "Report"}, []),
    ({"missing": None}, ["a", "b", "c"]),
    ({"kind": {"$eq": "report"}}, ["a", "b"]),
    ({"kind": {"$ne": "report"}}, ["c"]),
    ({"missing": {"$ne": "report"}}, ["a", "b", "c"]),
    ({"score": {"$gt": 3}}, ["b", "c"]),
    ({"score": {"$gte": 3}}, ["a", "b", "c"]),
    ({"score": {"$lt": 5.5}}, ["a", "b"]),
    ({"score": {"$lte": 5.5}}, ["a", "b", "c"]),
    ({"score": {"$gt": 3, "$lt": 5.5}}, ["b"]),
    ({"score": {"$gt": "4.9"}}, ["b", "c"]),
    ({"tags": ["x", "y"]}, ["a"]),
    ({"tags": ("x", "y")}, ["a"]),
    ({"tags": ["x"]}, ["b"]),
    ({"meta": {"lang": "en"}}, ["a", "b"]),
    ({"meta": {"lang": "en", "year": {"$gte": 2024}}}, ["b"]),
    ({"meta": "en"}, []),
    ({"kind": {"lang": "en"}}, []),
]


@pytest.mark.parametrize(("wanted", "found"), FILTERS, ids=lambda one: str(one)[:40])
def test_filter_lets_pass_what_the_library_lets_pass(asked: Asked, wanted: dict[str, Any], found: list[str]) -> None:
    meta = {"lang": "en", "year": 2023}
    asked.batch(
        PutOp(("docs",), "a", {"kind": "report", "score": 3, "tags": ["x", "y"], "meta": meta}),
        PutOp(("docs",), "b", {"kind": "report", "score": 5, "tags": ["x"], "meta": {**meta, "year": 2024}}),
        PutOp(("docs",), "c", {"kind": "note", "score": 5.5, "tags": [], "meta": {"lang": "de", "year": 2030}}),
    )
    assert asked.keys(("docs",), filter=wanted) == found


def test_pages_of_a_search_hold_each_item_once(asked: Asked) -> None:
    asked.batch(*(PutOp(("docs",), f"{n:02}", {"n": n}) for n in range(12)))
    pages = [[item.key for item in asked.search(("docs",), limit=5, offset=at)] for at in (0, 5, 10, 15)]
    assert [len(page) for page in pages] == [5, 5, 2, 0]
    assert sorted(key for page in pages for key in page) == [f"{n:02}" for n in range(12)]
    assert len(asked.search(("docs",))) == 10, "the library's limit"
    assert asked.search(("docs",), limit=0) == []


def test_query_without_an_index_hides_nothing(asked: Asked) -> None:
    asked.put(("docs",), "a", {"text": "apples"})
    asked.put(("docs",), "b", {"text": "pears"})
    assert asked.keys(("docs",), query="bananas") == ["a", "b"]
    assert asked.keys(("docs",), query="pears", filter={"text": "apples"}) == ["a"]
    assert [item.score for item in asked.search(("docs",), query="bananas")] == [None, None]


def in_the_docs(asked: Asked) -> None:
    for path in ("a/b/c", "a/b/d/e", "a/b/d/i", "a/b/f", "a/c/f"):
        asked.put(tuple(path.split("/")), "k", {"at": path})


def test_namespaces_are_listed_as_the_library_says(asked: Asked) -> None:
    in_the_docs(asked)
    assert asked.namespaces(prefix=("a", "b"), max_depth=3) == [("a", "b", "c"), ("a", "b", "d"), ("a", "b", "f")]
    assert asked.namespaces() == [tuple(p.split("/")) for p in ("a/b/c", "a/b/d/e", "a/b/d/i", "a/b/f", "a/c/f")]
    assert asked.namespaces(suffix=("f",)) == [("a", "b", "f"), ("a", "c", "f")]
    assert asked.namespaces(prefix=("a", "*", "f")) == [("a", "b", "f"), ("a", "c", "f")]
    assert asked.namespaces(suffix=("b", "*", "*")) == [("a", "b", "d", "e"), ("a", "b", "d", "i")]
    assert asked.namespaces(prefix=("a", "b"), suffix=("f",)) == [("a", "b", "f")]
    assert asked.namespaces(prefix=("a", "b", "f", "x")) == []
    assert asked.namespaces(max_depth=1) == [("a",)]
    assert asked.namespaces(limit=2, offset=1) == [("a", "b", "d", "e"), ("a", "b", "d", "i")]
    assert asked.namespaces(max_depth=2, limit=1, offset=1) == [("a", "c")]


def test_reads_of_a_batch_see_what_was_there_before_it_and_its_last_put_counts(asked: Asked) -> None:
    asked.put(PREFS, "theme", {"n": 0})
    answers = asked.batch(
        PutOp(PREFS, "theme", {"n": 1}),
        GetOp(PREFS, "theme"),
        PutOp(PREFS, "gone", {"n": 1}),
        SearchOp(PREFS),
        PutOp(PREFS, "theme", {"n": 2}),
        ListNamespacesOp(match_conditions=(MatchCondition("suffix", ("prefs",)),)),
        PutOp(PREFS, "gone", None),
        PutOp(("other",), "k", {"n": 3}),
    )
    assert [answers[n] for n in (0, 2, 4, 6, 7)] == [None] * 5
    assert answers[1].value == {"n": 0}
    assert told(answers[3]) == [(PREFS, "theme", {"n": 0})]
    assert answers[5] == [PREFS]
    assert told(asked.search()) == [(("other",), "k", {"n": 3}), (PREFS, "theme", {"n": 2})]
    assert asked.batch() == []


@pytest.mark.case(71)
def test_names_that_put_refuses_are_refused_by_every_method(asked: Asked) -> None:
    asked.put(PREFS, "theme", {"n": 0})
    names: list[tuple[str, ...]] = [("a.b",), ("",), ("a", ""), ("a\0",)]
    for namespace in names:
        with pytest.raises(ValueError, match="amespace"):
            asked.put(namespace, "k", {})
        with pytest.raises(ValueError, match="amespace"):
            asked.get(namespace, "k")
        with pytest.raises(ValueError, match="amespace"):
            asked.delete(namespace, "k")
        with pytest.raises(ValueError, match="amespace"):
            asked.search(namespace)
    unrooted: list[tuple[str, ...]] = [(), ("langgraph", "x")]
    for namespace in unrooted:
        with pytest.raises(ValueError, match="amespace"):
            asked.put(namespace, "k", {})
    assert told(asked.search()) == [(PREFS, "theme", {"n": 0})]


def test_unknown_operators_and_operations_are_refused(asked: Asked) -> None:
    asked.put(PREFS, "theme", {"n": 0})
    for wanted in ({"n": {"$like": 1}}, {"n": {"$gt": -1, "plain": 1}}, {"n": {"$gt": "many"}}):
        with pytest.raises(ValueError, match=r".+"):
            asked.search(PREFS, filter=wanted)
    with pytest.raises(ValueError, match="operation"):
        asked.batch("get")  # type: ignore[arg-type]
