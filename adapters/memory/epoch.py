"""The epoch of the source database, compared with that of the control database in each transaction."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import sqlalchemy as sa

from adapters.memory.tables import source_epoch
from orchestrator import StaleSource

FRESH_S: Final = 1.0
"""Seconds for which an answer of the control database is taken as it is: it is asked less often than the source."""
_READ: Final = sa.select(source_epoch.c.epoch)


class Epoch:
    """What the control database said last; it is asked again after a second, or where the source says otherwise."""

    def __init__(self, known: Callable[[], int]) -> None:
        """Ask the control database by `known`."""
        self._known, self._seen, self._asked = known, 0, 0.0

    def check(self, connection: sa.Connection) -> None:
        """Raise `StaleSource` where the source is not the one that the control database knows."""
        here = connection.scalar(_READ)
        if here != self._seen or time.monotonic() - self._asked > FRESH_S:
            self._seen, self._asked = self._known(), time.monotonic()
        if here != self._seen:
            raise StaleSource


def enter(connection: sa.Connection, epoch: int) -> None:
    """Write a new epoch."""
    connection.execute(source_epoch.update().values(epoch=epoch))
