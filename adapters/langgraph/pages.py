"""One page of an answer: at most `limit`, after `offset`."""

from __future__ import annotations

from orchestrator import InvalidRequest


def check_page(limit: object, offset: object) -> None:
    """Raise `InvalidRequest` unless both are numbers from 0 on."""
    for field, number in (("limit", limit), ("offset", offset)):
        check_number(field, number, least=0)


def check_number(field: str, number: object, *, least: int) -> None:
    """Raise `InvalidRequest` unless this is a whole number, `least` or more."""
    if not isinstance(number, int) or isinstance(number, bool) or number < least:
        raise InvalidRequest(f"{field} must be a whole number, {least} or more", field=field)
