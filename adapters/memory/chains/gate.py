"""The gate before a memory of the source database: asked in the transaction that writes.

A memory of a task and one of the user are seen from that task alike, so what was forgotten
at one level is refused at the other as well.
"""

from __future__ import annotations

import sqlalchemy as sa

from adapters.memory.chains.scope import TaskScope
from adapters.memory.confirmation import confirmation, is_used, said_in, use
from adapters.memory.sources import origin_of
from adapters.memory.tombstones import LocalTombstones
from orchestrator import Gate, GateRefused, Scope, Write, fold


def scopes_of(scope: TaskScope) -> tuple[Scope, Scope]:
    """Give the scope of the user, and that of the task."""
    return Scope(tenant=scope.tenant, user=scope.user), Scope(tenant=scope.tenant, user=scope.user, project=scope.task)


def pass_gate(
    connection: sa.Connection, gate: Gate, scope: TaskScope, text: str, source: str, *, to: Scope, user_statement: bool
) -> None:
    """Let a text through that is written to one of the two scopes, or raise `GateRefused`.

    A statement of the user confirms a text once. It is a message in this task; what is kept
    for the user may be said in a message of no task as well.
    """
    origin = origin_of(connection, to, source)
    said = confirmation(gate, to, source, None, fold(text))
    here = any(said_in(connection, place, source) for place in {to, scopes_of(scope)[1]})
    fresh = user_statement and here and not is_used(connection, said)
    for place in scopes_of(scope):
        write = Write(scope=place, key=None, text=text, origin=origin, confirmed=fresh)
        refusal = gate.decide(write, LocalTombstones(connection))
        if refusal is not None:
            raise GateRefused(refusal)
    if fresh:
        use(connection, said)
