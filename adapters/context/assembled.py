"""An assembled input: a snapshot of what goes to a model, with what each part of it was made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrator import Scope, Target


@dataclass(frozen=True, kw_only=True, slots=True)
class Item:
    """A record as it went in. `position` is that of its source, and the sequence of an event."""

    target: Target
    key: str | None
    text: str = field(repr=False)
    position: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Assembled:
    """What went in, and what did not. A later write changes nothing of it.

    `constraints` (value by key) are what the current task asks for; they outrank the records of
    their keys, and are kept nowhere. `as_of` is the accepted position of the tenant up to which
    things were known. `consulted` has the sequence that decided each preference that was asked
    for, 0 where there was none, by a keyed hash of its key.
    """

    scope: Scope
    name: str
    items: tuple[Item, ...]
    constraints: Mapping[str, str] = field(repr=False)
    revision: int  # of the scope
    general_revision: int  # of the user in general
    as_of: int
    omitted: tuple[Target, ...]  # ranked, and over the budget
    outranked: tuple[Target, ...]  # of the key of a constraint
    dropped: int  # named by the ranking, and not eligible
    withheld: int  # refused by the gate: forgotten, and kept by a hold alone
    failed: bool  # what ranks did not answer
    consulted: Mapping[str, int] = field(repr=False)
