"""What tests of cases share."""

from __future__ import annotations

from pathlib import Path

from tests.fakes import Bench

ROOT = Path(__file__).parents[2]
NAMES = ["source", "copies"]


def let_pass(_phase: str, _orders: object) -> None:
    """Let a call pass."""


def erase_receipts(stage: Bench, job: str, adapter: str = "copies") -> list[tuple[str, int, int, int]]:
    found = [r for r in stage.ledger.receipts(job) if (r.adapter, r.phase) == (adapter, "erase")]
    return [(r.outcome, r.expected, r.erased, r.already_absent) for r in found]
