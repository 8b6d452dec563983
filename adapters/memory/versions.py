"""Where a key stands, and what a caller expects of it before a replacement."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from orchestrator import InvalidRequest, Refused


class KeyState(StrEnum):
    """What there is of a key."""

    NONE = "none"  # there was never anything
    ACTIVE = "active"  # its highest version counts, though `current` may not show it: unconfirmed, or expired
    REVOKED = "revoked"  # it was revoked, and is not erased yet
    ERASED = "erased"  # its highest version was erased


class VersionConflict(Refused):
    """The key is at another version than expected: read it again, and ask, before anything is replaced."""

    def __init__(self, version: int, state: KeyState) -> None:
        """Say where the key stands, by number and word; no value is repeated."""
        super().__init__(version=version, state=state)
        self.version, self.state = version, state


@dataclass(frozen=True, kw_only=True, slots=True)
class Newest:
    """The highest version that a key ever had, erased ones included, and the id of the fact."""

    version: int
    state: KeyState
    fact_id: str

    def expect(self, version: int) -> None:
        """Raise `VersionConflict` unless this is the version, and the active one; 0 expects that nothing is there.

        What was erased is not there, and the gate knows of it. What was revoked and is not erased yet is in the way:
        who expects nothing has not heard of the revocation, and would undo it.
        """
        nothing = self.state in {KeyState.NONE, KeyState.ERASED}
        if not (version == 0 if nothing else self.state is KeyState.ACTIVE and version == self.version):
            raise VersionConflict(self.version, self.state)


def check_version(expected: object) -> None:
    """Raise `InvalidRequest` for what is no number of a version."""
    if type(expected) is not int or expected < 0:
        message = "expected_version must be the version that was read, or 0 where there was none"
        raise InvalidRequest(message, field="expected_version")
