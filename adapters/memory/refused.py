"""What the gate refused in a process: counted by code, and logged by code alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from orchestrator import GateRefused, Refusal


@contextmanager
def counted(refused: Counter[Refusal]) -> Iterator[None]:
    """Count a refusal that passes by."""
    try:
        yield
    except GateRefused as error:
        refused[error.refusal] += 1
        structlog.get_logger().info("gate.refused", code=error.refusal.value)
        raise
