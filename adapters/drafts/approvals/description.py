"""What a decision is about, as one keyed hash: the action, its payload, and the memory that it rests on.

Principle: whoever changes any part of it has another description, which nobody has approved. A
hash without a key would let a payload be guessed.
"""

from __future__ import annotations

from orchestrator import Gate, Scope


def digest(
    gate: Gate, scope: Scope, name: str, action: str, payload: str, *, memory_rev: int, memory_expires: float | None
) -> str:
    """Give 32 hex digits that stand for a description; `memory_expires` is in seconds since 1970, None for never."""
    expires = None if memory_expires is None else float(memory_expires).hex()
    return gate.handle(scope.tenant, "approval", scope.canonical(), name, action, payload, str(memory_rev), expires)


def operation_key(gate: Gate, scope: Scope, name: str) -> str:
    """Give the key by which a tool knows an operation: the same for one approval, whatever has happened between."""
    return gate.handle(scope.tenant, "operation", scope.canonical(), name)
