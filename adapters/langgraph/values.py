"""Values of a graph as texts of facts: JSON that the gate can read, and that reads back as what was put."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from adapters.memory.facts import MAX_VALUE
from orchestrator import InvalidRequest

_ESCAPE: Final = re.compile(r"\\(?:u[0-9a-f]{4}|.)")
_KEPT: Final = frozenset({'\\"', "\\\\"})


def text_of(value: Mapping[str, Any]) -> str:
    """Give the text of the fact that an item is: one text for one value, whatever the order of its fields.

    Raises `InvalidRequest` for what would not read back as it is, and for more than 2,000 characters.
    """
    text = _json(value)
    if text is None:
        message = (
            "value must be a mapping with strings as keys, of what JSON holds as it is: no tuples, no dates, no NaN"
        )
        raise InvalidRequest(message, field="value")
    # A line break stays one: escaped, it would begin the word behind it, and the gate would see another word.
    text = _ESCAPE.sub(_plain, text)
    if len(text) > MAX_VALUE:
        message = f"value, written as JSON, must have at most {MAX_VALUE} characters: put long texts elsewhere"
        raise InvalidRequest(message, field="value")
    return text


def value_of(text: str) -> dict[str, Any] | None:
    """Read a value back; None for the text of a fact that no graph has put."""
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _json(value: object) -> str | None:
    if not isinstance(value, Mapping):
        return None
    try:
        text = json.dumps(dict(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=True)
        return text if json.loads(text) == dict(value) else None
    except (TypeError, ValueError, RecursionError):
        return None


def _plain(escape: re.Match[str]) -> str:
    return escape[0] if escape[0] in _KEPT else str(json.loads(f'"{escape[0]}"'))
