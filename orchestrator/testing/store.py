"""The store under test: what the suite must be able to do to a store behind its adapter's back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import ClassVar, Final

from orchestrator.domain.contract import Erased, EraseOrder, StorageAdapter, Target
from orchestrator.domain.scope import Scope

PLANTED: Final = 1
"""Scope revision under which the suite plants and late writers began."""
REVOKED: Final = 2
"""Scope revision that the source of a derived store has after its revoke."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """One thing that a user said.

    A source store uses `key`, `text` and `source`; a derived store keeps `text` as made from
    `fact`, which may be one of its own targets. No two records of the suite share scope and key.
    """

    scope: Scope
    key: str
    text: str = field(repr=False)
    source: str
    fact: Target


class StoreUnderTest(ABC):
    """One fresh, empty store with its adapter. An author implements it once for the whole suite."""

    adapter: StorageAdapter
    is_built_upon: ClassVar[bool] = True
    """False where nothing is ever made from what the store holds, as from a copy of a whole database."""

    @abstractmethod
    def plant(self, record: Record) -> None:
        """Store one record as the store's normal writer would, under revision `PLANTED`."""

    def plant_all(self, records: Sequence[Record]) -> None:
        """Store many records; override it where one at a time is slow."""
        for record in records:
            self.plant(record)

    @abstractmethod
    def raw(self) -> Mapping[str, bytes]:
        """Read every record by a road of its own: handle to canonical bytes.

        What the store keeps beside records (fences, tombstones, indexes) is left out; anything that
        is not known as such is a record. A row of an index may stand under the handle of its record:
        one that an erase leaves behind is seen then.
        """

    @abstractmethod
    def readable(self, record: Record) -> bool:
        """Tell whether any read path of the store still gives the record out."""

    @abstractmethod
    def unreachable(self) -> AbstractContextManager[None]:
        """Make the store fail for a while, and bring it back with its data."""

    @abstractmethod
    def late_write(self, record: Record, revision: int) -> bool:
        """Write as one that began under `revision` would; False where the store refuses."""

    def lie(self) -> AbstractContextManager[None]:
        """Make erase answer success while the data stays.

        Override it so that what `find` goes by is gone as well (an index entry, an owner):
        that tells a verify of its own from one that goes the same way.
        """
        return answer_without_erasing(self.adapter)

    def reading(self) -> AbstractContextManager[None] | None:
        """Give what keeps a reader of the store open; None where no reader keeps the store from being scrubbed.

        Override it where the adapter is a `PhysicalStore`: the reader has begun to read and goes on.
        """
        return None

    @abstractmethod
    def log(self) -> list[str]:
        """Give the log lines captured so far, as text."""

    def now(self) -> datetime:
        """Give the time by the adapter's clock."""
        return datetime.now(UTC)


@contextmanager
def answer_without_erasing(adapter: StorageAdapter) -> Iterator[None]:
    """Let an adapter's erase answer that all is erased, without calling it."""

    def erase(orders: Sequence[EraseOrder]) -> Sequence[Erased]:
        return [Erased(erased=len(order.targets)) for order in orders]

    kept = vars(adapter).get("erase")
    vars(adapter)["erase"] = erase
    try:
        yield
    finally:
        del vars(adapter)["erase"]
        if kept is not None:
            vars(adapter)["erase"] = kept
