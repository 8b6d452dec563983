"""Readings of time: writing takes one, looking does not; and when something has expired."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Protocol

from orchestrator import Clock


class ReadingClock(Protocol):
    """A clock that tells a reading from a look. Times are aware UTC datetimes."""

    def now(self) -> datetime:
        """Take one reading: what is stored bears it."""

    def peek(self) -> datetime:
        """Look at the time without taking a reading."""


class WallClock:
    """The clock of a deployment: it shows the same to both."""

    def __init__(self, clock: Clock) -> None:
        """Read that clock."""
        self._clock = clock

    def now(self) -> datetime:
        """Give the time."""
        return self._clock.now()

    def peek(self) -> datetime:
        """Give the time."""
        return self._clock.now()


def expiry(created_at: datetime, ttl_days: int | None) -> datetime | None:
    """Give the instant from which on something is expired; None where it never is."""
    return None if ttl_days is None else created_at + timedelta(days=ttl_days)


def is_expired(expires_at: datetime | None, now: datetime) -> bool:
    """Tell whether that instant is reached, whatever offsets the two are written with."""
    return expires_at is not None and expires_at <= now
