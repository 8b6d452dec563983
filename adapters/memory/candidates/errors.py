"""Why a candidate is not accepted; none of these repeats what it says."""

from __future__ import annotations

from orchestrator import Refused


class CandidateUnknown(Refused):
    """There is no such candidate."""


class CandidateClosed(Refused):
    """The candidate is not pending any more: it was decided in another way, was forgotten, or has expired."""


class NotConfirmed(Refused):
    """A confirmation is a message of the user in the scope of the candidate, and this is none."""


class RuleDeclined(Refused):
    """The rule does not let the candidate replace the fact."""
