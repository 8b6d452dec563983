"""Namespaces and keys of a graph as keys of facts: a JSON array, so that no two of them become one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final, TypeAlias

from orchestrator import InvalidRequest, Selector, SelectorKind

Namespace: TypeAlias = tuple[str, ...]

MAX_KEY: Final = 512


def key_of(namespace: Namespace, key: str) -> str:
    """Give the key of the fact that an item is: what a request for a key names, and `put` of the memory store.

    Raises `InvalidRequest` for what is no namespace, and for names that are too long together.
    """
    check_labels("namespace", namespace)
    if not isinstance(key, str):
        message = "key must be a string"
        raise InvalidRequest(message, field="key")
    text = _joined([*namespace, key])
    if len(text) > MAX_KEY:
        message = f"namespace and key, written as one JSON array, must have at most {MAX_KEY} characters"
        raise InvalidRequest(message, field="key")
    Selector(kind=SelectorKind.KEY, value=text)
    return text


def names_of(key: str) -> tuple[Namespace, str] | None:
    """Give namespace and key of an item; None for the key of a fact that no graph has put."""
    try:
        names = json.loads(key)
    except ValueError:
        return None
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        return None
    *namespace, last = names
    return (tuple(namespace), last) if all(namespace) and _joined(names) == key else None


def check_labels(field: str, labels: object) -> None:
    """Raise `InvalidRequest` unless these are labels of a namespace; they may hold any character."""
    if not isinstance(labels, tuple) or not all(isinstance(label, str) and label for label in labels):
        raise InvalidRequest(f"{field} must be a tuple of strings that are not empty", field=field)


def _joined(names: Sequence[str]) -> str:
    return json.dumps(names, ensure_ascii=False, separators=(",", ":"))
