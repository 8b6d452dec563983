"""What is to go: the four ways a request can point at data."""

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


@dataclass(frozen=True, kw_only=True)
class Selector:
    """A kind and, except for `subject`, a value. An empty selection is refused here, before any call."""

    kind: SelectorKind
    value: str | None = None

    def __post_init__(self) -> None:
        """Raise `InvalidRequest` for a selection that is empty or says two things."""
        if self.kind is SelectorKind.SUBJECT:
            if self.value is not None:
                message = "a subject selector takes no value"
                raise InvalidRequest(message, field="selector")
            return
        check_part(self.kind.value, self.value)
