"""What drafting refuses. No message says more than what to do."""

from __future__ import annotations

from typing import Final

from orchestrator import Refused

MEMORY_CHANGED: Final = "memory_changed_or_expired: submit a new job id"


class MemoryChanged(Refused):
    """What the job was made from has changed or expired: it has failed for good, and is never tried again."""

    def __init__(self) -> None:
        """Say what to do, in words that do not change."""
        super().__init__(MEMORY_CHANGED)


class JobLeased(Refused):
    """Another runner has this job: it can be claimed when the lease has ended."""


class LeaseLost(Refused):
    """The lease has ended, and another runner has claimed the job."""


class JobUnknown(Refused):
    """There is no such draft job in this scope."""


class JobTaken(Refused):
    """This job id was submitted over another state of the memory: submit a new job id."""


class JobCancelled(Refused):
    """This job was cancelled: submit a new job id."""


class ReportUnusable(Refused):
    """A report that this job builds on is not there, or is not current any more."""


class ApprovalUnknown(Refused):
    """There is no such approval in this scope."""


class ApprovalTaken(Refused):
    """This approval id was asked for with another description: ask under a new id."""


class ApprovalPending(Refused):
    """Nobody has approved this action yet."""


class ApprovalDecided(Refused):
    """This action was decided otherwise: ask under a new id."""


class ApprovalVoid(Refused):
    """What this approval was asked about has changed, has expired or is not allowed any more: ask under a new id."""


class NoMember(Refused):
    """Whoever this is about is no member of the project."""


class StaleDispatch(Refused):
    """This was prepared under another revision of the memory: read that again, and prepare it anew."""


class DispatchRunning(Refused):
    """Another process is sending this: ask again when its lease has ended."""


class ToolRefused(Refused):
    """The tool has refused this action by its own rules: nothing was sent."""
