"""What the files of a store still hold, byte for byte, whatever the store says of itself.

Principle: a look counts only where it sees the control, which is of somebody who stays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from adapters.demo import sight
from adapters.demo.people import CONTROL, EXPIRING, SIGNS, goes, packed, tellings
from adapters.demo.world import World

PIECE: Final = 64
"""Bytes of a vector that are looked for: nobody else's begins with the same."""
FILES: Final = ("memory", "vector", "backup")
"""Stores with files; drafts lie in those of the memory store."""


class Traces(NamedTuple):
    """How often something that has to go, and something that has to be there, stand in the files of a store."""

    gone: int
    control: int


def traces(world: World, store: str) -> Traces:
    """Count in all files of a store, sidecars included."""
    places = {
        "memory": [(world.source.parent, f"{world.source.name}*")],
        "vector": [(world.vectors.parent, f"{world.vectors.name}*")],
        "backup": [(world.copies, "*")],
    }
    gone, control = _vectors() if store == "vector" else _signs()
    counted = sight.count(places[store], [*gone, *control])
    return Traces(sum(counted[: len(gone)]), sum(counted[len(gone) :]))


def _signs() -> tuple[list[bytes], list[bytes]]:
    return [sign.encode() for sign in SIGNS], [CONTROL.encode()]


def _vectors() -> tuple[list[bytes], list[bytes]]:
    def of(chosen: Callable[[str], bool]) -> list[bytes]:
        texts = [telling.text for telling in tellings()]
        return [packed(text)[:PIECE] for text in (*texts, EXPIRING) if chosen(text)]

    return of(goes), of(lambda text: CONTROL in text)
