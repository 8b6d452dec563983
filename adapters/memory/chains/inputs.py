"""What may be stored and asked, checked before anything is read or written. No message repeats a value."""

from __future__ import annotations

from typing import Final, TypeGuard

from adapters.memory import facts
from adapters.memory.chains.errors import MemoryInputError, MemoryNotFound
from adapters.memory.chains.scope import Level
from orchestrator import InvalidRequest

MAX_TEXT: Final = 2000
"""Characters of a text, a source or a reason."""
MAX_TTL_DAYS: Final = 3650
MAX_LIMIT: Final = 20
_IDS_END: Final = 2**63


def check_text(name: str, value: object) -> None:
    """Raise `MemoryInputError` unless the value is a text of 1 to 2000 characters that are not all blank."""
    try:
        facts.check_text(name, value, MAX_TEXT)
    except InvalidRequest as error:
        raise MemoryInputError(str(error), **error.facts) from None


def check_statement(text: object, source: object, ttl_days: object) -> None:
    """Raise `MemoryInputError` for what may not be stored as a version."""
    check_text("text", text)
    check_text("source", source)
    check_ttl(ttl_days)


def check_level(value: object) -> Level:
    """Give the level; raises `MemoryInputError` for anything but `user` and `task`."""
    if not isinstance(value, str) or value not in set(Level):
        raise MemoryInputError(f"level must be one of {', '.join(Level)}", field="level")
    return Level(value)


def check_ttl(value: object) -> None:
    """Raise `MemoryInputError` unless the value is None or a whole number of 1 to 3650 days."""
    if value is not None:
        _check_number("ttl_days", value, MAX_TTL_DAYS)


def check_limit(value: object) -> None:
    """Raise `MemoryInputError` unless the value is a whole number of 1 to 20."""
    _check_number("limit", value, MAX_LIMIT)


def check_query(value: object) -> None:
    """Raise `MemoryInputError` unless the value is a text; one without words finds nothing."""
    if not isinstance(value, str):
        message = "query must be a text"
        raise MemoryInputError(message, field="query")


def check_id(value: object) -> None:
    """Raise `MemoryInputError` for what is no whole number, and `MemoryNotFound` for what no memory can have."""
    if not _is_number(value):
        message = "memory_id must be a whole number"
        raise MemoryInputError(message, field="memory_id")
    if not 0 < value < _IDS_END:
        raise MemoryNotFound(value)


def _check_number(name: str, value: object, highest: int) -> None:
    if not _is_number(value) or not 1 <= value <= highest:
        raise MemoryInputError(f"{name} must be a whole number from 1 to {highest}", field=name)


def _is_number(value: object) -> TypeGuard[int]:
    return type(value) is int  # True is an int as well, and no number of days
