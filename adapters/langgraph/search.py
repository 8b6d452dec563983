"""Searching items: by prefix of the namespace and by filter, ranked by words inside what these leave."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import ge, gt, le, lt
from typing import Any, Final

from langgraph.store.base import Item, SearchItem, SearchOp

from adapters.langgraph.names import check_labels
from adapters.langgraph.pages import check_page
from orchestrator import InvalidRequest, fold

_WORD: Final = re.compile(r"\w+")
_ORDERED: Final[Mapping[str, Callable[[float, float], bool]]] = {"$gt": gt, "$gte": ge, "$lt": lt, "$lte": le}
_OPERATORS: Final = ("$eq", "$ne", *_ORDERED)


def check_search(op: SearchOp) -> None:
    """Raise `InvalidRequest` for what no search can mean, whatever is stored."""
    check_labels("namespace_prefix", op.namespace_prefix)
    check_page(op.limit, op.offset)
    if op.query is not None and not isinstance(op.query, str):
        message = "query must be a string"
        raise InvalidRequest(message, field="query")
    if op.filter is not None:
        if not isinstance(op.filter, Mapping):
            message = "filter must be a mapping from fields to values"
            raise InvalidRequest(message, field="filter")
        for wanted in op.filter.values():
            _check_wanted(wanted)


def search(items: Sequence[Item], op: SearchOp) -> list[SearchItem]:
    """Give one page of the items under a prefix that a filter lets pass, the best for a query first.

    The prefix is compared label by label. A query only changes the order: `score` is the share of
    its words that an item has in its key, fields and values, and None where it has none of them.
    """
    depth = len(op.namespace_prefix)
    eligible = [
        item
        for item in items
        if item.namespace[:depth] == op.namespace_prefix
        and all(_matches(item.value.get(field), asked) for field, asked in (op.filter or {}).items())
    ]
    wanted = _words(op.query or "")
    scored = [(_score(item, wanted), item) for item in eligible]
    ranked = sorted(scored, key=lambda pair: -(pair[0] or 0.0))  # stable: by namespace and key where scores are even
    return [_found(item, score) for score, item in ranked[op.offset : op.offset + op.limit]]


def _check_wanted(wanted: object) -> None:
    if not isinstance(wanted, Mapping):
        return
    if not _is_comparison(wanted):
        for inner in wanted.values():
            _check_wanted(inner)
        return
    for operator, bound in wanted.items():
        if operator not in _OPERATORS:
            raise InvalidRequest(f"an operator of a filter must be one of {', '.join(_OPERATORS)}", field="filter")
        if operator in _ORDERED and _number(bound) is None:
            raise InvalidRequest(f"a filter compares by {', '.join(_ORDERED)} with numbers alone", field="filter")


def _is_comparison(wanted: Mapping[str, object]) -> bool:
    return any(str(name).startswith("$") for name in wanted)


def _matches(held: Any, wanted: Any) -> bool:  # noqa: ANN401 - whatever JSON holds
    if isinstance(wanted, Mapping):
        if _is_comparison(wanted):
            return all(_compares(held, operator, bound) for operator, bound in wanted.items())
        return isinstance(held, dict) and all(_matches(held.get(field), inner) for field, inner in wanted.items())
    if isinstance(wanted, (list, tuple)):
        return isinstance(held, list) and len(held) == len(wanted) and all(map(_matches, held, wanted))
    return bool(held == wanted)


def _compares(held: Any, operator: str, bound: Any) -> bool:  # noqa: ANN401 - as above
    if operator == "$eq":
        return bool(held == bound)
    if operator == "$ne":
        return bool(held != bound)
    # What is not there, or is no number, is neither more nor less than one.
    left, right = _number(held), _number(bound)
    return left is not None and right is not None and _ORDERED[operator](left, right)


def _number(value: Any) -> float | None:  # noqa: ANN401 - as above
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _score(item: Item, wanted: frozenset[str]) -> float | None:
    if not wanted:
        return None
    hits = wanted & _words(" ".join((item.key, *_texts(item.value))))
    return len(hits) / len(wanted) if hits else None


def _texts(held: object) -> Iterator[str]:
    if isinstance(held, dict):
        for field, inner in held.items():
            yield field
            yield from _texts(inner)
    elif isinstance(held, list):
        for inner in held:
            yield from _texts(inner)
    else:
        yield str(held)


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(fold(text)))


def _found(item: Item, score: float | None) -> SearchItem:
    return SearchItem(item.namespace, item.key, item.value, item.created_at, item.updated_at, score)
