"""Names in Redis: keyed hashes only, and one cluster slot for all that belongs to a user."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from orchestrator import Gate, Scope, Target


@dataclass(frozen=True)
class Keys:
    """The key names of one prefix under one gate's keys."""

    gate: Gate
    prefix: str

    def base(self, tenant: str, user: str) -> str:
        """Give what every key of a user begins with: the braces keep them in one slot."""
        return f"{self.prefix}:{{{self.gate.handle(tenant, 'cache', user)}}}:"

    def entries(self, scope: Scope) -> str:
        """Name the set of a user's entries."""
        return self.base(scope.tenant, scope.user) + "keys"

    def scopes(self, scope: Scope) -> str:
        """Name the set of a user's scopes that have a fence or an entry."""
        return self.base(scope.tenant, scope.user) + "scopes"

    def scope(self, scope: Scope) -> str:
        """Give the handle of one exact scope."""
        return self.gate.handle(scope.tenant, "cache-scope", scope.canonical())

    def fence(self, scope: Scope, handle: str) -> str:
        """Name the revision fence of a scope given by its handle."""
        return self.base(scope.tenant, scope.user) + "rev:" + handle

    def answer(self, scope: Scope, question: str) -> str:
        """Name the entry of one question."""
        asked = self.gate.handle(scope.tenant, "cache-answer", scope.canonical(), question)
        return self.base(scope.tenant, scope.user) + "a:" + asked


def origin(target: Target) -> str:
    """Name a version of a record as lineage."""
    return f"{target.kind}:{target.id}@{target.version}"


def dump_origins(targets: Iterable[Target]) -> str:
    """Write down what an entry was made from."""
    return json.dumps(sorted({origin(target) for target in targets}))


def load_origins(text: bytes | None) -> frozenset[str]:
    """Read what an entry was made from; unreadable lineage is as none."""
    try:
        names = json.loads(text or b"[]")
    except ValueError:
        return frozenset()
    return frozenset(str(name) for name in names) if isinstance(names, list) else frozenset()
