"""What has changed since an input was made: seen from numbers, without guessing what a model made of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import sqlalchemy as sa

from adapters.context.assembled import Assembled
from adapters.context.eligible import Eligible
from adapters.memory.facts import place_of
from adapters.memory.keyed.named import EVENT
from adapters.memory.preferences.marks import key_mac
from adapters.memory.tables import USER_WIDE, preferences
from orchestrator import Gate, Scope


@dataclass(frozen=True, kw_only=True, slots=True)
class Stale:
    """A part of an input that is not what holds now, by version, or for an event by sequence.

    `in_input` is 0 for a preference that was asked for and not set then; `now` is None for what
    is handed out no more. `id` is the record's in the input; a preference that was not in it has none.
    """

    kind: str
    id: str | None
    key: str | None
    in_input: int
    now: int | None


def keys(connection: sa.Connection, scope: Scope, made: Assembled) -> set[str]:
    """Give the keys of preferences that an input may be held against: its own, and all that are set now."""
    p, place = preferences.c, place_of(scope)
    of_user = (p.tenant == scope.tenant) & (p.user_id == scope.user) & p.project.in_([place["project"], USER_WIDE])
    return {*connection.scalars(sa.select(p.key).where(of_user)), *(key for key, _ in _events(made))}


def stale(gate: Gate, scope: Scope, made: Assembled, now: Eligible) -> Iterator[Stale]:
    """Give what differs between an input and what holds now, which has an answer for each of `keys`."""
    events = dict(_events(made))
    for key, told in now.preferred.items():
        consulted = made.consulted.get(key_mac(gate, scope, key))
        if consulted is not None and consulted != told.sequence:
            yield Stale(kind=EVENT, id=events.get(key), key=key, in_input=consulted, now=told.sequence or None)
    versions = {(record.target.kind, record.target.id): record.target.version for record in now.records}
    for item in made.items:
        of = item.target
        if of.kind != EVENT and versions.get((of.kind, of.id)) != of.version:
            yield Stale(kind=of.kind, id=of.id, key=item.key, in_input=of.version, now=versions.get((of.kind, of.id)))


def _events(made: Assembled) -> Iterator[tuple[str, str]]:
    return ((item.key, item.target.id) for item in made.items if item.target.kind == EVENT and item.key is not None)
