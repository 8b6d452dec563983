"""How much of the memory goes into one input: whole records, the best first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from adapters.context.record import Record

MAX_RECORDS: Final = 5
MAX_CHARACTERS: Final = 1_500
"""Of the texts of the records; what the rendering puts around them is not counted."""


def fill(records: Iterable[Record]) -> tuple[list[Record], list[Record]]:
    """Give what goes in, both limits included, and what is omitted: one that does not fit is passed over, never cut."""
    within, omitted, characters = list[Record](), list[Record](), 0
    for record in records:
        if len(within) < MAX_RECORDS and characters + len(record.text) <= MAX_CHARACTERS:
            within.append(record)
            characters += len(record.text)
        else:
            omitted.append(record)
    return within, omitted
