"""What an adapter author tests with: the shipped contract, the store under it, and a driver of one erasure."""

from orchestrator.testing.contract import AdapterContract
from orchestrator.testing.erasure import Erasure, Outcome
from orchestrator.testing.store import PLANTED, REVOKED, Record, StoreUnderTest, answer_without_erasing

__all__ = [
    "PLANTED",
    "REVOKED",
    "AdapterContract",
    "Erasure",
    "Outcome",
    "Record",
    "StoreUnderTest",
    "answer_without_erasing",
]
