"""Candidates as a library: each method is one transaction."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

import sqlalchemy as sa

from adapters.memory import facts
from adapters.memory.candidates.candidate import (
    CONFIRMATION,
    Candidate,
    CandidateState,
    Rule,
    check_id,
    check_name,
    of_row,
    of_scope,
    read,
)
from adapters.memory.candidates.decide import accept, check_decision, reject
from adapters.memory.candidates.propose import propose
from adapters.memory.engine import checkpoint, reading, writing
from adapters.memory.holding import HoldsOn, nobody_holds
from adapters.memory.refused import counted
from adapters.memory.tables import fact_candidates
from adapters.memory.versions import check_version
from orchestrator import Clock, Gate, InvalidRequest, Refusal, Scope

LIMIT: Final = 100
MAX_LIMIT: Final = 1_000
_NO_RULES: Final[Mapping[str, Rule]] = MappingProxyType({})


class Candidates:
    """What programs propose as facts of a scope; a candidate is known in exactly its own scope, to nobody else.

    The caller vouches for the scope: it comes from a session, never from a request's body. `rules` are those that a
    candidate may be accepted by, by name. `refused` counts what the gate refused in this process, by code.
    """

    def __init__(
        self,
        engine: sa.Engine,
        gate: Gate,
        clock: Clock,
        rules: Mapping[str, Rule] = _NO_RULES,
        *,
        holds: HoldsOn = nobody_holds,
    ) -> None:
        """Bind it to a source database."""
        for name in rules:
            check_name("rule", name)
        if CONFIRMATION in rules:
            message = f"a rule cannot be called {CONFIRMATION}"
            raise InvalidRequest(message, field="rule")
        self._engine, self._gate, self._clock, self._holds = engine, gate, clock, holds
        self._rules = dict(rules)
        self.refused: Counter[Refusal] = Counter()

    def under(self, rules: Mapping[str, Rule]) -> Candidates:
        """Give the same candidates with other rules."""
        return Candidates(self._engine, self._gate, self._clock, rules, holds=self._holds)

    def propose(
        self, scope: Scope, key: str, value: str, source: str, *, proposed_by: str, expires: float = math.inf
    ) -> Candidate:
        """Keep what a program has read out of a source, until somebody decides; no fact and no revision changes.

        `proposed_by` names the program. The same proposal from the same source is the same candidate, whatever has
        become of it. Raises `GateRefused` for what was forgotten, and `InvalidRequest`.
        """
        facts.check(key, value, source, expires)
        check_name("proposed_by", proposed_by)
        with counted(self.refused), writing(self._engine, [scope.tenant]) as connection:
            return propose(
                connection,
                self._gate,
                scope,
                key,
                value,
                source,
                proposed_by=proposed_by,
                expires=expires,
                now=self._now(),
            )

    def pending(self, scope: Scope, *, limit: int = LIMIT, after: str | None = None) -> Sequence[Candidate]:
        """Give the candidates of a scope that wait, by id; the last id of a page is what the next one comes `after`."""
        if type(limit) is not int or not 0 < limit <= MAX_LIMIT:
            raise InvalidRequest(f"limit must be a number from 1 to {MAX_LIMIT}", field="limit")
        if after is not None:
            check_id(after)
        c, now = fact_candidates.c, self._now()
        waiting = (*of_scope(scope), c.state == CandidateState.PENDING.value, c.expires > now, c.handle > (after or ""))
        query = sa.select(fact_candidates).where(*waiting).order_by(c.handle).limit(limit)
        with reading(self._engine, [scope.tenant]) as connection:
            return [of_row(row, now) for row in connection.execute(query)]

    def inspect(self, scope: Scope, candidate: str) -> Candidate:
        """Tell where one candidate stands, and by whom it was decided. Raises `CandidateUnknown`."""
        with reading(self._engine, [scope.tenant]) as connection:
            return read(connection, scope, candidate, self._now())

    def accept(
        self,
        scope: Scope,
        candidate: str,
        *,
        source: str | None = None,
        rule: str | None = None,
        expected_version: int,
    ) -> int:
        """Let a candidate replace the version of its key that was read, and give the new version.

        Either `source` is a message in which the user confirms it, and the source of the new version; or `rule` names
        what decides. The same again gives the same version. Where it raises, the candidate stays as it was:
        `CandidateUnknown`, `CandidateClosed`, `NotConfirmed`, `RuleDeclined`, `VersionConflict`, `GateRefused`,
        `RuleRefused` while a legal hold covers the candidate itself, and `InvalidRequest`.
        """
        check_decision(self._rules, source, rule)
        check_version(expected_version)
        with counted(self.refused), writing(self._engine, [scope.tenant]) as connection:
            return accept(
                connection,
                self._gate,
                self._holds,
                self._rules,
                scope,
                candidate,
                source=source,
                rule=rule,
                expected_version=expected_version,
                now=self._now(),
            )

    def reject(self, scope: Scope, candidate: str) -> None:
        """Blank a candidate, and remember that it was rejected; again changes nothing.

        Raises `CandidateUnknown`, `CandidateClosed` for one that was accepted or forgotten, and `RuleRefused` while a
        legal hold covers it.
        """
        with writing(self._engine, [scope.tenant]) as connection:
            reject(connection, self._holds, scope, candidate, now=self._now())
        checkpoint(self._engine)

    def _now(self) -> float:
        return self._clock.now().timestamp()
