"""How many of something: "1 unit is due", "2 units are due"."""

from __future__ import annotations


def counted(count: int, one: str, many: str) -> str:
    """Give a count with the words that go with it: `one` after 1, `many` after any other."""
    return f"{count} {one if count == 1 else many}"
