"""Who speaks in the machine, where, and from what."""

from __future__ import annotations

from adapters.memory import SourceKind
from tests.properties.plain_gate import Place

PLACES: tuple[Place, ...] = (("anna", "trips"), ("anna", "home"), ("anna", None), ("berta", "trips"))
REACHES: tuple[Place, ...] = (*PLACES, ("berta", None))
KEYS = ("seat", "meal")
TEXTS = ("aisle", "at row 7", "aisle at row 7", "no nuts")
HEARD: tuple[tuple[str, Place, tuple[str, ...], SourceKind], ...] = (
    ("turn-1", ("anna", "trips"), (), SourceKind.USER_MESSAGE),
    ("summary-1", ("anna", "trips"), ("turn-1",), SourceKind.MODEL),
    ("turn-2", ("anna", "home"), (), SourceKind.USER_MESSAGE),
    ("turn-3", ("berta", "trips"), (), SourceKind.USER_MESSAGE),
)
"""What is accepted before anything else."""
LATER = ("turn-4", "summary-2", "turn-5")
TOLD = ("brief", "detailed", "in detail", None)
"""What is preferred: words that no fact has. None takes it back."""
STYLES = ("tone", "length")
NAMES = (*(name for name, *_ in HEARD), *LATER)
OWN = tuple((place, name) for name, (user, _), *_ in HEARD for place in PLACES if place[0] == user)
SAID = (*OWN, *OWN, *((place, name) for place in PLACES for name in LATER), (("berta", "trips"), "turn-1"))
"""Who writes from what: mostly from sources of their own."""
