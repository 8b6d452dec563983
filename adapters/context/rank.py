"""The order in which records are tried. A ranking sees eligible records alone, and whatever else it names is dropped.

A score says how near a record lies to a question, and nothing of whether it still holds: that
was decided before.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from adapters.context.record import Record
from adapters.memory.chains.recall import STOP_WORDS
from orchestrator import InvalidRequest, Target, fold

_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Ranked:
    """Records by name, the best first. `failed`: what ranks did not answer, so nothing is named."""

    order: tuple[Target, ...] = ()
    dropped: int = 0
    failed: bool = False


Ranking: TypeAlias = Callable[[Sequence[Record]], Ranked]
"""Chooses among eligible records. It is called outside of any transaction, once more where the memory has changed."""


def by_words(question: str) -> Ranking:
    """Give the ranking by words that a record and a question share; a record without one is left out."""
    if not isinstance(question, str):
        message = "question must be a text"
        raise InvalidRequest(message, field="question")
    asked = _words(question)

    def rank(records: Sequence[Record]) -> Ranked:
        shared = [(len(asked & _words(f"{record.key or ''} {record.text}")), record.target) for record in records]
        # Sorting keeps the order of equals: that of the eligible records.
        best = sorted((one for one in shared if one[0]), key=lambda one: -one[0])
        return Ranked(order=tuple(target for _, target in best))

    return rank


def chosen(records: Sequence[Record], ranked: Ranked) -> tuple[list[Record], int]:
    """Give the records that a ranking names, in its order and each once, and how many names were dropped."""
    known = {record.target: record for record in records}
    names = dict.fromkeys(ranked.order)
    return [known[name] for name in names if name in known], ranked.dropped + len(names.keys() - known.keys())


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(fold(text).replace("_", " "))) - STOP_WORDS
