"""Whose data: the exact scope that every read, write and erasure names."""

from __future__ import annotations

import json
from dataclasses import dataclass

from orchestrator.domain.errors import InvalidRequest

MAX_PART = 512


@dataclass(frozen=True, kw_only=True)
class Scope:
    """Tenant, user and project; `project=None` means every project of the user.

    Scopes match exactly, never by prefix. Each part is a non-empty string of at most 512
    characters; anything else raises `InvalidRequest`.
    """

    tenant: str
    user: str
    project: str | None = None

    def __post_init__(self) -> None:
        """Refuse what could match more than one scope."""
        check_part("tenant", self.tenant)
        check_part("user", self.user)
        if self.project is not None:
            check_part("project", self.project)

    def canonical(self) -> str:
        """Give the scope as a compact JSON array: no delimiter can make two scopes one.

        Non-ASCII stays as it is. A scope over every project ends in `null`.
        """
        return json.dumps([self.tenant, self.user, self.project], ensure_ascii=False, separators=(",", ":"))


def check_part(name: str, value: object) -> None:
    """Raise `InvalidRequest` unless the value is usable as an exact identifier."""
    if not isinstance(value, str) or not value.strip():
        message = f"{name} must be a non-empty string"
        raise InvalidRequest(message, field=name)
    if len(value) > MAX_PART:
        message = f"{name} must have at most {MAX_PART} characters"
        raise InvalidRequest(message, field=name)
    if "\0" in value:
        message = f"{name} must not hold a NUL character, which PostgreSQL cannot store"
        raise InvalidRequest(message, field=name)
    try:
        value.encode()
    except UnicodeEncodeError:
        message = f"{name} must be valid Unicode"
        raise InvalidRequest(message, field=name) from None
