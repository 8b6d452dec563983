"""Candidates: what a program proposes as a fact, and what becomes one only when it is accepted."""

from adapters.memory.candidates.candidate import Candidate, CandidateState, Rule
from adapters.memory.candidates.errors import CandidateClosed, CandidateUnknown, NotConfirmed, RuleDeclined
from adapters.memory.candidates.store import Candidates

__all__ = [
    "Candidate",
    "CandidateClosed",
    "CandidateState",
    "CandidateUnknown",
    "Candidates",
    "NotConfirmed",
    "Rule",
    "RuleDeclined",
]
