"""The hot part of a scan: which wanted windows lie in a piece of a file.

Three sieves, each finer: a table of flags by the top bits of a 32-bit hash; the sorted 64-bit
hashes; an HMAC. A polynomial modulo 2**64 is, modulo 2**32, the polynomial of half the
width, so the first sieve is computed for every position in half the memory and the full hash
only where it lets a position pass. Only the HMAC makes a hit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from orchestrator.domain.contract import Fingerprint
from orchestrator.scan.fingerprints import MODULUS, Fingerprinter
from orchestrator.scan.windows import WINDOW

OVERLAP: Final = WINDOW - 1
CHUNK: Final = 128 * 1024
FEWEST_BITS: Final = 16
MOST_BITS: Final = 24
FLAGS_PER_ROW: Final = 64
HALF: Final = 2**32
ROW: Final = np.dtype([("roll", np.uint64), ("owner", np.int32), ("mac", np.uint8, 32)])

Bytes = npt.NDArray[np.uint8]
Places = npt.NDArray[np.intp]


class Sieve:
    """Looks for the fingerprints of many owners at once, in pieces of at most `chunk + 15` bytes.

    An owner is the index of its fingerprints in `wanted`. Memory is bounded, whatever the size of
    a file: 2.3 MB, 64 bytes of flags for each fingerprint (at most 17 MB) and 44 bytes for each
    row, twice that while they are sorted. A chunk in which every position is a hit takes up to
    40 MB more for as long as it is looked at.
    """

    def __init__(self, by: Fingerprinter, wanted: Sequence[Iterable[Fingerprint]], chunk: int = CHUNK) -> None:
        """Unseal and sort the rows; all of them must be made under the keys of `by`."""
        self.chunk = chunk
        self._by = by
        rows = np.fromiter(
            (
                (by.unsealed(print_), owner, tuple(bytes.fromhex(print_.mac)))
                for owner, prints in enumerate(wanted)
                for print_ in frozenset(prints)
            ),
            dtype=ROW,
        )
        rows.sort(order="roll")
        self._rolls, self._owners, self._macs = (np.ascontiguousarray(rows[name]) for name in ("roll", "owner", "mac"))
        bits = min(max((FLAGS_PER_ROW * len(rows)).bit_length(), FEWEST_BITS), MOST_BITS)
        self._shift = np.uint32(32 - bits)
        self._flags = np.zeros(1 << bits, dtype=np.bool_)
        self._flags[self._rolls.astype(np.uint32) >> self._shift] = True
        self._powers = [np.uint32(pow(by.base, step, HALF)) for step in (1, 2, 4, 8)]
        self._base = np.uint64(by.base % MODULUS)
        self._work = np.empty((2, chunk + OVERLAP), dtype=np.uint32)
        self._index = np.empty(chunk, dtype=np.intp)
        self._passed = np.empty(chunk, dtype=np.bool_)

    def hits(self, piece: Bytes) -> Counter[int]:
        """Count, for each owner, the positions of a piece at which one of its windows begins."""
        places = self._same_roll(piece, self._candidates(piece))
        if not places.size:
            return Counter()
        joined = np.lib.stride_tricks.sliding_window_view(piece, WINDOW)[places].tobytes()
        # A file that is full of one value asks for an HMAC a piece, and not for one at each position.
        return self._confirmed(Counter(joined[at : at + WINDOW] for at in range(0, len(joined), WINDOW)))

    def _candidates(self, piece: Bytes) -> Places:
        """Give the positions that the flags let pass; the hash of 16 bytes is doubled up from that of one.

        h2[i] = h1[i] * B + h1[i + 1], h4[i] = h2[i] * B**2 + h2[i + 2], and so on.
        """
        count = max(len(piece) - OVERLAP, 0)
        this, other = self._work
        this[: len(piece)] = piece
        length = len(piece)
        for step, power in zip((1, 2, 4, 8), self._powers, strict=True):
            length = max(length - step, 0)
            np.multiply(this[:length], power, out=other[:length])
            np.add(other[:length], this[step : step + length], out=other[:length])
            this, other = other, this
        np.right_shift(this[:count], self._shift, out=self._index[:count])
        # "clip" spares a copy; the shift leaves no index outside of the table.
        np.take(self._flags, self._index[:count], out=self._passed[:count], mode="clip")
        return np.flatnonzero(self._passed[:count])

    def _same_roll(self, piece: Bytes, places: Places) -> Places:
        """Keep the positions whose full hash is a wanted one."""
        if not places.size:
            return places
        rolls = np.zeros(places.size, dtype=np.uint64)
        for offset in range(WINDOW):
            rolls *= self._base
            rolls += piece[places + offset]
        near = np.minimum(np.searchsorted(self._rolls, rolls), self._rolls.size - 1)
        kept: Places = places[self._rolls[near] == rolls]
        return kept

    def _confirmed(self, windows: Counter[bytes]) -> Counter[int]:
        """Count the windows of each owner whose mac is wanted; where only the hash is the same, none is."""
        rolls = np.array([self._by.roll(window) for window in windows], dtype=np.uint64)
        macs = np.frombuffer(b"".join(map(self._by.mac, windows)), dtype=np.uint8).reshape(-1, 32)
        counts = np.fromiter(windows.values(), dtype=np.intp)
        first, end = np.searchsorted(self._rolls, rolls), np.searchsorted(self._rolls, rolls, "right")
        # Each window meets all rows of its hash: `which` of the windows against which `row`.
        which = np.repeat(np.arange(rolls.size), end - first)
        row = np.arange(which.size) + np.repeat(first - np.cumsum(end - first) + (end - first), end - first)
        same = (self._macs[row] == macs[which]).all(axis=1)
        found = np.bincount(self._owners[row[same]], weights=counts[which[same]])
        return Counter({int(owner): int(found[owner]) for owner in np.flatnonzero(found)})
