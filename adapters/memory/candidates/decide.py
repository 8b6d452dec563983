"""Deciding: a candidate and the fact that it becomes change in one transaction, or neither does.

Principle: the gate is asked by the source of the candidate, whatever confirms it. So what was forgotten is not taken
by a late yes, and a text that its user wants back is told anew.
"""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa

from adapters.memory import facts
from adapters.memory.candidates.candidate import CONFIRMATION, Candidate, CandidateState, Rule, of_scope, read
from adapters.memory.candidates.errors import CandidateClosed, NotConfirmed, RuleDeclined
from adapters.memory.confirmation import said_in
from adapters.memory.gate import pass_gate
from adapters.memory.holding import HoldsOn, check_free
from adapters.memory.tables import fact_candidates
from orchestrator import Gate, InvalidRequest, Refusal, RuleRefused, Scope


def accept(
    connection: sa.Connection,
    gate: Gate,
    holds: HoldsOn,
    rules: Mapping[str, Rule],
    scope: Scope,
    candidate: str,
    *,
    source: str | None,
    rule: str | None,
    expected_version: int,
    now: float,
) -> int:
    """Make a fact of a candidate, and give its version; the same decision again gives the same version."""
    found = read(connection, scope, candidate, now)
    if found.version is not None and (found.decided_by, found.decided_in) == (rule or CONFIRMATION, source):
        return found.version
    if found.state is not CandidateState.PENDING or found.value is None:
        raise CandidateClosed(state=found.state)
    if found.id in holds(scope).items:  # the fact would be another record, which the hold does not cover
        raise RuleRefused(Refusal.HELD)
    if source is not None and not said_in(connection, scope, source):
        raise NotConfirmed
    pass_gate(connection, gate, scope, found.key, found.value, found.source, user_statement=False)
    if rule is not None and rules[rule](_current(connection, scope, found.key, now), found) is not True:
        raise RuleDeclined(rule=rule)
    version = facts.put(
        connection,
        gate,
        scope,
        found.key,
        found.value,
        source or found.source,
        expires=found.expires,
        confirmed=True,
        user_statement=False,
        expected_version=expected_version,
    )
    decided = {"decided_by": rule or CONFIRMATION, "decided_in": source, "version": version}
    _close(connection, scope, found, CandidateState.ACCEPTED, now, **decided)
    return version


def reject(connection: sa.Connection, holds: HoldsOn, scope: Scope, candidate: str, *, now: float) -> None:
    """Blank a candidate for good; one that was rejected before stays so."""
    found = read(connection, scope, candidate, now)
    if found.state is CandidateState.REJECTED:
        return
    if found.state not in {CandidateState.PENDING, CandidateState.EXPIRED}:
        raise CandidateClosed(state=found.state)
    check_free(holds(scope), [found.id])
    _close(connection, scope, found, CandidateState.REJECTED, now)


def check_decision(rules: Mapping[str, Rule], source: str | None, rule: str | None) -> None:
    """Raise `InvalidRequest` unless exactly one of a confirmation and a known rule is named."""
    if (source is None) == (rule is None):
        message = "name either the message that confirms it, or the rule that lets it replace the fact"
        raise InvalidRequest(message, field="source")
    if rule is not None and rule not in rules:
        message = "rule must be the name of a rule that was handed to the candidates"
        raise InvalidRequest(message, field="rule")


def _current(connection: sa.Connection, scope: Scope, key: str, now: float) -> facts.Fact | None:
    return next((fact for fact in facts.current(connection, scope, now) if fact.key == key), None)


def _close(
    connection: sa.Connection,
    scope: Scope,
    found: Candidate,
    state: CandidateState,
    now: float,
    **decided: str | int | None,
) -> None:
    """Write down a decision; what was decided keeps no value."""
    c = fact_candidates.c
    here = (*of_scope(scope), c.handle == found.id, c.state == CandidateState.PENDING.value)
    values = {"state": state.value, "value": None, "decided_at_us": round(now * 1_000_000), **decided}
    connection.execute(fact_candidates.update().where(*here).values(values))
