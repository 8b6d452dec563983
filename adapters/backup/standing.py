"""Where each copy stands: what the manifest says of it, beside what is seen in the folder."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from adapters.backup.folder import Folder
from adapters.backup.manifest import Copy, Manifest


class State(StrEnum):
    """What is seen of a copy."""

    KEPT = "kept"  # its file is there
    MISSING = "missing"  # its file is not there, and should be
    OVERDUE = "overdue"  # its time is over, and its file is still there
    GONE = "gone"  # its time is over, and its file is not there


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """All copies of the manifest, each with its state, and how many files it does not name."""

    copies: tuple[tuple[Copy, State], ...]
    unlisted: int


def standing(folder: Folder, known: Manifest, now: datetime) -> Standing:
    """Look at the folder."""
    states = tuple((copy, _state(folder, copy, now)) for copy in known.copies)
    return Standing(copies=states, unlisted=len(folder.unlisted(known)))


def _state(folder: Folder, copy: Copy, now: datetime) -> State:
    over = copy.keep_until is not None and copy.keep_until <= now
    if folder.is_gone(copy.file):
        return State.GONE if over else State.MISSING
    return State.OVERDUE if over else State.KEPT
