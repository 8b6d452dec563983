"""Who asks: a user in a task. What is of the user is seen from all of their tasks, what is of a task from it alone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from adapters.memory.chains.errors import MemoryInputError
from orchestrator import InvalidRequest, Scope

DEFAULT_TENANT: Final = "default"
"""Whose everything is in a file that knows no tenants."""
_IDENTIFIER: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,63}", re.ASCII)


class Level(StrEnum):
    """From where a memory can be seen."""

    USER = "user"  # from every task of the user
    TASK = "task"  # from the task in which it was told


@dataclass(frozen=True, slots=True)
class TaskScope:
    """A user in a task, both by identifier (`[a-z0-9][a-z0-9-]{0,63}`), and the tenant that the user belongs to.

    The caller vouches for it: it comes from a session, never from a request's body. Raises
    `MemoryInputError`.
    """

    user: str
    task: str
    tenant: str = DEFAULT_TENANT

    def __post_init__(self) -> None:
        """Refuse what is no identifier, and a tenant that no job could name."""
        for name in ("user", "task"):
            value = getattr(self, name)
            if not isinstance(value, str) or _IDENTIFIER.fullmatch(value) is None:
                raise MemoryInputError(f"{name} must be an identifier: {_IDENTIFIER.pattern}", field=name)
        try:
            Scope(tenant=self.tenant, user=self.user, project=self.task)
        except InvalidRequest as error:
            raise MemoryInputError(str(error), **error.facts) from None
