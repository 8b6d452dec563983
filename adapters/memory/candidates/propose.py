"""Proposing: it touches no fact and no revision, and passes the gate like a fact."""

from __future__ import annotations

import sqlalchemy as sa

from adapters.memory import facts
from adapters.memory.candidates.candidate import Candidate, CandidateState, check_name, handle_of, of_scope, read
from adapters.memory.gate import pass_gate
from adapters.memory.tables import fact_candidates
from orchestrator import Gate, Scope


def propose(
    connection: sa.Connection,
    gate: Gate,
    scope: Scope,
    key: str,
    value: str,
    source: str,
    *,
    proposed_by: str,
    expires: float,
    now: float,
) -> Candidate:
    """Keep a proposal, or give the one that was kept before, wherever it stands by now."""
    facts.check(key, value, source, expires)
    check_name("proposed_by", proposed_by)
    pass_gate(connection, gate, scope, key, value, source, user_statement=False)
    handle = handle_of(gate, scope, key, value, source, expires)
    known = sa.select(sa.literal(1)).where(*of_scope(scope), fact_candidates.c.handle == handle)
    if connection.scalar(known) is None:
        connection.execute(
            fact_candidates.insert().values(
                **facts.place_of(scope),
                handle=handle,
                key=key,
                value=value,
                source=source,
                expires=expires,
                proposed_by=proposed_by,
                state=CandidateState.PENDING.value,
                proposed_at_us=round(now * 1_000_000),
            )
        )
    return read(connection, scope, handle, now)
