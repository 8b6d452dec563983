"""The gate before whatever stands under a key: asked in the transaction that writes."""

from __future__ import annotations

import sqlalchemy as sa

from adapters.memory.confirmation import confirmation, is_used, said_in, use
from adapters.memory.sources import origin_of
from adapters.memory.tombstones import LocalTombstones
from orchestrator import Gate, GateRefused, Scope, Write


def pass_gate(
    connection: sa.Connection,
    gate: Gate,
    scope: Scope,
    key: str,
    text: str,
    source: str,
    *,
    user_statement: bool,
    said_at: Scope | None = None,
) -> None:
    """Let a text through, or raise `GateRefused`; a statement of the user confirms a key once for each source.

    It is a message of `said_at`, where what is said in a project holds for the user in general.
    """
    origin = origin_of(connection, scope, source)
    said = confirmation(gate, scope, source, key)
    fresh = user_statement and said_in(connection, said_at or scope, source) and not is_used(connection, said)
    write = Write(scope=scope, key=key, text=text, origin=origin, confirmed=fresh)
    refusal = gate.decide(write, LocalTombstones(connection))
    if refusal is not None:
        raise GateRefused(refusal)
    if fresh:
        use(connection, said)
