"""What is to go: four ways in which a request points at data, and one in which time does."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from orchestrator.domain.errors import InvalidRequest
from orchestrator.domain.scope import check_part


class SelectorKind(StrEnum):
    """How a request points at data."""

    KEY = "key"  # one key of the scope, all its versions
    MEMORY = "memory"  # one record by the source's own handle
    SOURCE = "source"  # everything that was learned from one message, document or event
    SUBJECT = "subject"  # everything of the user
    EXPIRED = "expired"  # what has expired by the time of the revoke; of jobs that the clock opens, never of a request


@dataclass(frozen=True, kw_only=True)
class Selector:
    """A kind and, except for `subject` and `expired`, a value.

    An empty selection is refused here, before any call. What `expired` names is known to the
    source alone, in the transaction that revokes it; all others follow the targets named there.
    """

    kind: SelectorKind
    value: str | None = None

    def __post_init__(self) -> None:
        """Raise `InvalidRequest` for a selection that is empty or says two things."""
        if self.kind in {SelectorKind.SUBJECT, SelectorKind.EXPIRED}:
            if self.value is not None:
                message = f"a selector of kind {self.kind.value} takes no value"
                raise InvalidRequest(message, field="selector")
            return
        check_part(self.kind.value, self.value)
