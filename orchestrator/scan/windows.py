"""Which windows of a value get a fingerprint, and what that guarantees.

A window is 16 bytes. A value of up to 32 bytes has all of its windows; a longer one has every
eighth and the last, by default. So any surviving run of 23 bytes of a value (16 bytes, where
the value has up to 32 or the run is its end) holds a window that has a fingerprint: whatever
the first byte of the run is, one of the eight windows that begin in its first eight bytes is
chosen. With another stride the run is `stride + 15` bytes.

A window that repeats four bytes or fewer (zeros, spaces, dots, one float32 over and over) says
nothing: pages that were overwritten are full of it. It gets no fingerprint. The nearest
windows on both sides that do say something stand in for it, which keeps the guarantee for
every run that is not all repetition.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

WINDOW: Final = 16
STRIDE: Final = 8
SHORT: Final = 32
PERIOD: Final = 4


def starts(value: bytes, stride: int = STRIDE) -> list[int]:
    """Give where the chosen windows of a value begin, in order; none where nothing of it can be looked for."""
    last = len(value) - WINDOW
    if last < 0:
        return []
    step = 1 if len(value) <= SHORT else stride
    chosen = {*range(0, last + 1, step), last}
    return sorted({start for place in chosen for start in _telling(value, place, step)})


def repeats(value: bytes, start: int) -> bool:
    """Tell whether a window is a repetition of at most four bytes."""
    return value[start + PERIOD : start + WINDOW] == value[start : start + WINDOW - PERIOD]


def _telling(value: bytes, place: int, step: int) -> Iterator[int]:
    """Give the window at a place, or its nearest neighbours within less than a step that are no repetition."""
    if not repeats(value, place):
        yield place
        return
    last = len(value) - WINDOW
    for way in (range(place - 1, max(place - step, -1), -1), range(place + 1, min(place + step, last + 1))):
        near = next((start for start in way if not repeats(value, start)), None)
        if near is not None:
            yield near
