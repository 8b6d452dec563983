"""What assembling refuses. No message says more than what to do."""

from __future__ import annotations

from orchestrator import Refused


class InputTaken(Refused):
    """This name was used over another state of the memory, or for something else: take a new name."""


class InputUnknown(Refused):
    """There is no input of this name in this scope."""


class MemoryUnsettled(Refused):
    """The memory changed each time while an input was assembled: try again later."""
