"""Where an action that waits for approval stands, and where a process may be made to die on its way to the tool."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import TypeAlias


class ApprovalState(StrEnum):
    """Where an approval stands; there is no way out of the last three, and what was sent stays sent."""

    PENDING = "pending"
    APPROVED = "approved"
    DISPATCHED = "dispatched"  # marked, and from then on perhaps delivered
    REFUSED = "refused"  # by whoever decided, or by the tool
    VOID = "void"  # cancelled, or what it was asked about is not as it was


WAITING = (ApprovalState.PENDING, ApprovalState.APPROVED)
"""States in which nothing has been handed to a tool."""


class Answer(StrEnum):
    """What somebody who decides may say."""

    APPROVE = "approve"
    REFUSE = "refuse"


class Place(StrEnum):
    """Places at which a test may let a process die."""

    WITHIN_REQUEST = "within_request"  # written, and not committed
    WITHIN_DECISION = "within_decision"
    AFTER_DECISION = "after_decision"
    WITHIN_MARK = "within_mark"
    AFTER_MARK = "after_mark"
    AFTER_CALL = "after_call"  # the tool has done it, and nobody has written that down
    WITHIN_RECEIPT = "within_receipt"
    AFTER_RECEIPT = "after_receipt"


Passing: TypeAlias = Callable[[Place], None]
"""Called at each of these places; does nothing outside of tests."""


def on(_place: Place) -> None:
    """Pass every place."""
