"""Ids in the order of their making: UUID version 7 (RFC 9562, section 5.7)."""

from __future__ import annotations

import secrets
import threading
import time
from uuid import UUID

_lock = threading.Lock()
_last = 0


def uuid7() -> UUID:
    """Give a new id, greater than every one that this process gave before.

    48 bits of milliseconds, then 12 bits of the fraction (method 3 of section 6.2), then
    random bits.
    """
    global _last  # noqa: PLW0603 - the order of ids is a fact of the process
    with _lock:
        _last = max(time.time_ns() * 4096 // 1_000_000, _last + 1)
        stamp = _last
    millis, fraction = divmod(stamp, 4096)
    value = (millis & (2**48 - 1)) << 80 | 0x7 << 76 | fraction << 64 | 0b10 << 62 | secrets.randbits(62)
    return UUID(int=value)
