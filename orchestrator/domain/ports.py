"""What the services need from outside: a clock, a ledger, a broker. Implemented in the outer rings."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """The one clock of expiry, windows and deadlines; leases use the database's own."""

    def now(self) -> datetime:
        """Give the time as an aware UTC datetime."""
