"""A legal hold: while it stands, nothing that it covers is changed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from orchestrator.domain.codes import HoldReason
from orchestrator.domain.contract import Target


@dataclass(frozen=True, kw_only=True)
class NewHold:
    """A hold, ready to be written. `item` is a store's own id of one record, or None for all of the subject."""

    id: UUID
    tenant: str
    subject_ref: str
    item: str | None
    reason: HoldReason
    reference: str | None
    placed_by_ref: str
    placed_at: datetime


@dataclass(frozen=True, kw_only=True)
class HoldView:
    """What anybody may know of a hold.

    `in_force_at` is None while a call that was begun before may still act. `erased_before`
    counts what receipts say was erased of the subject before it was placed, `unknown` the calls
    whose answer was lost: what they did is not known.
    """

    id: str
    tenant: str
    item: str | None
    reason: str
    reference: str | None
    placed_at: datetime
    in_force_at: datetime | None
    released_at: datetime | None
    erased_before: int
    unknown: int

    @property
    def standing(self) -> str:
        """Say in one word where the hold stands."""
        if self.released_at is not None:
            return "released"
        return "placing" if self.in_force_at is None else "in_force"


@dataclass(frozen=True, kw_only=True, slots=True)
class Holds:
    """The holds that stand on a subject now: on all of its data, or on records by their store's own ids."""

    everything: bool = False
    items: frozenset[str] = frozenset()

    def cover(self, item: str) -> bool:
        """Tell whether a record may not be changed."""
        return self.everything or item in self.items


def covered(target: Target, items: Collection[str]) -> str | None:
    """Give the held item that a target is, or was made from; None where no hold covers it."""
    if target.id in items:
        return target.id
    if target.derived_of is None:
        return None
    origin = target.derived_of.split(":", 1)[-1]
    for item in (origin, origin.rpartition("@")[0]):
        if item in items:
            return item
    return None
