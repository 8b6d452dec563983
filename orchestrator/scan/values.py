"""Looking for fingerprints among the values of live records: bytes that others hold too are no residue."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping

import numpy as np

from orchestrator.domain.contract import Fingerprint
from orchestrator.scan.fingerprints import Fingerprinter
from orchestrator.scan.sieve import CHUNK, OVERLAP, Sieve
from orchestrator.scan.windows import WINDOW


def held_by_others(
    values: Iterable[bytes], wanted: Mapping[str, Collection[Fingerprint]], *, by: Fingerprinter
) -> Mapping[str, frozenset[Fingerprint]]:
    """Give, for each owner, which of its fingerprints lie in these values."""
    flat = [(owner, print_) for owner, prints in wanted.items() for print_ in prints]
    sieve = Sieve(by, [[print_] for _, print_ in flat])
    held: dict[str, set[Fingerprint]] = {owner: set() for owner in wanted}
    for piece in _pieces(values):
        for number in sieve.hits(np.frombuffer(piece, dtype=np.uint8)):
            owner, print_ = flat[number]
            held[owner].add(print_)
    return {owner: frozenset(prints) for owner, prints in held.items()}


def _pieces(values: Iterable[bytes]) -> Iterator[bytes]:
    """Put values together into pieces as large as a sieve takes; a longer value comes in parts that overlap."""
    # Between two values, so that no window of one ends in the next. By chance: zeros would complete those of vectors.
    gap = secrets.token_bytes(OVERLAP)
    gathered, size = list[bytes](), 0
    for value in values:
        for start in range(0, max(len(value) - OVERLAP, 0), CHUNK):
            part = value[start : start + CHUNK + OVERLAP]
            if size + len(part) + len(gap) > CHUNK and gathered:
                yield gap.join(gathered)
                gathered, size = [], 0
            gathered.append(part)
            size += len(part) + len(gap)
    if size >= WINDOW:
        yield gap.join(gathered)
