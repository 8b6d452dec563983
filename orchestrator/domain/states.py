"""Where a deletion job is: one table of states and moves. Nothing else may say it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class JobState(StrEnum):
    """A state is what was seen to be true; holds, failures and waiting are no states."""

    REQUESTED = "requested"  # accepted; nothing has been touched yet
    SOURCE_REVOKED = "source_revoked"  # the source hands out no more copies
    DERIVED_CLEANUP = "derived_cleanup"  # copies and derivatives are being erased
    VERIFIED = "verified"  # every required store is absent, scheduled or waived
    COMPLETED = "completed"  # every window was seen closed, or waived by name
    CANCELLED = "cancelled"  # taken back before any source was asked to revoke


TRANSITIONS: Final[Mapping[JobState, frozenset[JobState]]] = {
    JobState.REQUESTED: frozenset({JobState.SOURCE_REVOKED, JobState.CANCELLED}),
    JobState.SOURCE_REVOKED: frozenset({JobState.DERIVED_CLEANUP}),
    JobState.DERIVED_CLEANUP: frozenset({JobState.VERIFIED}),
    JobState.VERIFIED: frozenset({JobState.COMPLETED}),
    JobState.COMPLETED: frozenset(),
    JobState.CANCELLED: frozenset(),
}

OVER: Final = frozenset({JobState.VERIFIED, JobState.COMPLETED, JobState.CANCELLED})
"""From these states on the raw ids are gone, and all that may follow is that a window closes."""

NEEDS: Final[Mapping[tuple[JobState, JobState], str]] = {
    (JobState.REQUESTED, JobState.SOURCE_REVOKED): "every source has answered revoke",
    (JobState.REQUESTED, JobState.CANCELLED): "no revoke was ever claimed",
    (JobState.SOURCE_REVOKED, JobState.DERIVED_CLEANUP): "find has run over all stores",
    (JobState.DERIVED_CLEANUP, JobState.VERIFIED): "every required store is absent, scheduled or waived",
    (JobState.VERIFIED, JobState.COMPLETED): "every window was seen closed or waived",
}


def allowed(old: JobState, new: JobState) -> bool:
    """Tell whether a job may move from one state to another."""
    return new in TRANSITIONS[old]


def diagram() -> str:
    """Draw the table as a Mermaid state diagram (docs/state-machine.md is this text)."""
    lines = ["stateDiagram-v2", "    [*] --> requested"]
    for old, targets in TRANSITIONS.items():
        lines += [f"    {old} --> {new}: {NEEDS[old, new]}" for new in JobState if new in targets]
        if not targets:
            lines.append(f"    {old} --> [*]")
    return "\n".join(lines)
