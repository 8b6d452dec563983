"""Looking at one file from end to end."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from orchestrator.scan.formats import HEAD, Unscannable, recognised
from orchestrator.scan.report import Doubt
from orchestrator.scan.sieve import OVERLAP, Sieve
from orchestrator.scan.walk import doubt_about

# A pipe that has taken the place of a file must not keep us waiting for a writer.
FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
# File systems stamp by a clock that ticks every 10 ms or faster.
TICK: Final = 0.02


@dataclass(frozen=True, slots=True)
class Stamp:
    """What tells that a file is the same and was not written to. Writes through a memory map may show late or never."""

    device: int
    number: int
    size: int
    written_ns: int
    changed_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> Stamp:
        """Take it from what the file system says."""
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


@dataclass(kw_only=True, slots=True)
class Look:
    """What was seen in one file; `hits` by owner number, `stamp` as it was when it was opened."""

    size: int = 0
    hits: Counter[int] = field(default_factory=Counter)
    doubt: Doubt | None = None
    unscannable: Unscannable | None = None
    stamp: Stamp | None = None


def look_at(path: Path, sieve: Sieve, told: Callable[[int], None]) -> Look:
    """Read a file once and count what the sieve finds; no error of the file system leaves this function.

    `told` is called after each piece with how far it went, holes included. What is compressed
    is read all the same: a zip may store a member as it is, and what is seen is seen.
    """
    look = Look()
    try:
        file = os.open(path, FLAGS)
        try:
            _read(file, look, sieve, told)
        finally:
            os.close(file)
    except OSError as error:
        look.doubt = doubt_about(error)
    return look


def _read(file: int, look: Look, sieve: Sieve, told: Callable[[int], None]) -> None:
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode):
        look.doubt = Doubt.NOT_A_FILE
        return
    look.stamp = Stamp.of(status)
    if abs(time.time_ns() - status.st_ctime_ns) < TICK * 1e9:
        # Written to just now: a write in the same tick would leave the stamp as it is.
        time.sleep(TICK)
    look.unscannable = recognised(os.pread(file, HEAD, 0))
    buffer = np.empty(OVERLAP + sieve.chunk, dtype=np.uint8)
    view = buffer.data
    reached = 0
    for start, end in extents(file, status.st_size):
        place, kept = start, 0
        while place < end:
            read = os.preadv(file, [view[kept : kept + min(sieve.chunk, end - place)]], place)
            if not read:
                look.doubt = Doubt.CHANGED
                return
            place += read
            filled = kept + read
            look.hits += sieve.hits(buffer[:filled])
            # The last 15 bytes come again in front of the next piece: no window falls between two.
            kept = min(OVERLAP, filled)
            buffer[:kept] = buffer[filled - kept : filled]
            told(place - reached)
            reached = place
    look.size = status.st_size
    told(look.size - reached)
    # Some file systems tell no size, or an old one.
    if os.pread(file, 1, status.st_size):
        look.doubt = Doubt.CHANGED


def extents(file: int, size: int) -> Iterator[tuple[int, int]]:
    """Give the parts of a file that are no holes, as (start, end), with 15 bytes of the holes around them.

    A window that lies in a hole as a whole is all zeros, which nobody looks for.
    """
    place = end = 0
    while place < size:
        try:
            data = os.lseek(file, place, os.SEEK_DATA)
            place = os.lseek(file, data, os.SEEK_HOLE)
        except OSError as error:
            if error.errno == errno.ENXIO:  # nothing but a hole is left
                return
            data, place = place, size  # this file system knows no holes
        start = max(data, end) - OVERLAP
        end = min(place + OVERLAP, size)
        yield max(start, 0), end
