"""The steps of a draft job, in order, and where a process may be made to die between two lines that change state."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Final, TypeAlias


class Step(StrEnum):
    """A part of the work that leaves a text behind."""

    COLLECT = "collect"  # what the facts say
    DRAFT = "draft"  # what the writer makes of it
    PUBLISH = "publish"  # the report


CHECKPOINTS: Final = (Step.COLLECT, Step.DRAFT)
"""The steps before the report."""


class State(StrEnum):
    """Where a draft job stands; there is no way out of the last three."""

    OPEN = "open"
    PUBLISHED = "published"
    FAILED = "failed"  # what it was made from has changed or expired
    CANCELLED = "cancelled"  # before it was published


class Fault(StrEnum):
    """Places at which a test may let a runner die."""

    AFTER_CLAIM = "after_claim"
    WITHIN_COLLECT = "within_collect"  # written, and not committed
    AFTER_COLLECT = "after_collect"
    WITHIN_DRAFT = "within_draft"
    AFTER_DRAFT = "after_draft"
    WITHIN_PUBLISH = "within_publish"
    AFTER_PUBLISH = "after_publish"


Pass: TypeAlias = Callable[[Fault], None]
"""Called at each of these places; does nothing outside of tests."""
CHECKPOINT: Final = "checkpoint"
REPORT: Final = "report"
INPUT: Final = "input"
APPROVAL: Final = "approval"
KINDS: Final = frozenset({CHECKPOINT, REPORT, INPUT, APPROVAL})
"""What the targets of this store are: texts of draft jobs, assembled inputs, and actions that wait for approval."""
# An input and an approval are texts of no job: each stands in the table of drafts under the name of its kind.
_KIND_OF: Final = {Step.PUBLISH.value: REPORT, INPUT: INPUT, APPROVAL: APPROVAL}


def kind_of(step: str) -> str:
    """Give the kind of what a step leaves behind."""
    return _KIND_OF.get(step, CHECKPOINT)


def within(step: Step) -> Fault:
    """Name the place in the open transaction of a step."""
    return Fault(f"within_{step.value}")


def after(step: Step) -> Fault:
    """Name the place behind a step."""
    return Fault(f"after_{step.value}")


def never(_fault: Fault) -> None:
    """Pass every place."""
