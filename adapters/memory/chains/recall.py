"""Which memories a question brings up: by words that both have. Pure: it reads no store and no clock.

Word overlap brings unrelated memories up as well, sensitive ones among them; nothing here solves that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from adapters.memory.batch import Found
from adapters.memory.chains.clock import is_expired
from adapters.memory.chains.scope import Level

_WORD: Final = re.compile(r"[a-z0-9]+")
STOP_WORDS: Final = frozenset(
    _WORD.findall(
        "a an and are as at be by did do does for from how i in is it my of on or that the this to was we what when "
        "where which who will with you your"
    )
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Recalled:
    """A memory that a question brought up. `score` counts the words that both have."""

    id: int
    level: Level
    text: str = field(repr=False)
    source: str
    supersedes: int | None
    expires_at: datetime | None
    score: int


def words(text: str) -> frozenset[str]:
    """Give the distinct words of a text that say something."""
    return frozenset(_WORD.findall(text.lower())) - STOP_WORDS


def rank(query: str, rows: Iterable[Found], now: datetime, limit: int) -> list[Recalled]:
    """Give at most `limit` memories with a word of the question, best first, and the newest first among equals.

    `rows` are memories that nothing has corrected; what has expired at `now` is left out.
    """
    asked = words(query)
    unexpired = (row for row in rows if not is_expired(row.expires_at, now))
    found = [_recalled(row, len(asked & words(row.text))) for row in unexpired]
    matching = [memory for memory in found if memory.score > 0]
    return sorted(matching, key=lambda memory: (-memory.score, -memory.id))[:limit]


def _recalled(row: Found, score: int) -> Recalled:
    return Recalled(
        id=row.id,
        level=Level.USER if row.task_id is None else Level.TASK,
        text=row.text,
        source=row.source,
        supersedes=row.supersedes,
        expires_at=row.expires_at,
        score=score,
    )
