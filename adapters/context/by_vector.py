"""Ranking by a vector index: its hits name records, and each has to be one of the eligible ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from adapters.context.rank import Ranked, Ranking
from adapters.context.record import Record
from adapters.vector.floats import Numbers
from adapters.vector.index import VectorIndex
from orchestrator import Scope

HITS: Final = 50
"""Points that are asked for: several may be of one record."""


def by_vector(index: VectorIndex, scope: Scope, vector: Numbers) -> Ranking:
    """Give the ranking by nearness to a vector, in exactly this scope.

    An index that does not answer names nothing, so nothing is let in by it. Raises
    `InvalidRequest` for a vector that the index cannot compare.
    """

    def rank(_records: Sequence[Record]) -> Ranked:
        answer = index.search(scope, vector, HITS)
        order = tuple(hit.made_from for hit in answer.hits)
        return Ranked(order=order, dropped=answer.dropped, failed=answer.failed)

    return rank
