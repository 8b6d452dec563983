"""A record that may go into an input: a fact, the newest version of a memory, or the event behind a preference."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from orchestrator import Scope, Target


class Scoped(Protocol):
    """Who asks. An application derives it from its own login, never from a request's body."""

    def scope(self, project: str | None = None) -> Scope:
        """Give the person's scope in a project; raises `Refused` for one of which they are no member now."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """What is handed out now. A memory has no key.

    `source` is the one that told it; `scope` where it lies, which may be the user in general.
    """

    target: Target
    scope: Scope
    key: str | None
    text: str = field(repr=False)
    source: str
