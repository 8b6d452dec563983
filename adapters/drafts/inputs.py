"""What may be stored, checked before anything is written. No message repeats a value."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from adapters.drafts.step import CHECKPOINTS, Step
from orchestrator import InvalidRequest

MAX_NAME: Final = 512
MAX_TEXT: Final = 1_000_000
"""Characters of a checkpoint or report."""
MAX_LEASE: Final = 86_400.0


def check_steps(keys: Collection[str] | None, steps: Mapping[Step, Collection[str]] | None) -> None:
    """Raise `InvalidRequest` unless keys are named for the whole job, or for steps that leave a checkpoint."""
    if steps is None:
        return
    if keys is not None:
        message = "keys and steps exclude each other: name the keys of each step"
        raise InvalidRequest(message, field="steps")
    if not set(steps) <= set(CHECKPOINTS) or not all(steps.values()):
        names = " and ".join(step.value for step in CHECKPOINTS)
        raise InvalidRequest(f"steps may name {names}, each with at least one key, or be left out", field="steps")


def check_lease(seconds: float) -> None:
    """Raise `InvalidRequest` unless a lease is longer than nothing and at most a day."""
    if not 0 < seconds <= MAX_LEASE:  # what is no number is neither
        raise InvalidRequest(f"lease_seconds must be more than 0 and at most {MAX_LEASE:.0f}", field="lease_seconds")
