"""Candidates of a few people as a plain list: what waits to be decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from orchestrator import Refusal, Selector, SelectorKind
from tests.properties.plain_facts import PlainFacts
from tests.properties.plain_gate import Place, PlainGate, tokens


@dataclass
class Proposed:
    id: str
    place: Place
    key: str
    text: str | None
    source: str
    waits: bool = True
    confirmed_in: str | None = None


@dataclass
class PlainCandidates:
    gate: PlainGate
    facts: PlainFacts
    rows: list[Proposed] = field(default_factory=list)
    going: Sequence[Proposed] = ()
    """What the job takes that revokes now."""

    def propose(self, place: Place, key: str, text: str, source: str) -> Refusal | None:
        """Say why it is refused, or None."""
        return self.gate.decide(place, key, text, source, fresh=False)

    def accept(self, row: Proposed, source: str, expected: int) -> Refusal | int | None:
        """Give the new version, the gate's reason, or None for a version that is not the expected one."""
        refusal = self.gate.decide(row.place, row.key, row.text or "", row.source, fresh=False)
        if refusal is not None:
            return refusal
        done = self.facts.replace(row.place, row.key, row.text or "", source, expected, stated=False)
        if type(done) is int:
            row.text, row.waits, row.confirmed_in = None, False, source
        return done

    def texts_that_stand(self, place: Place, key: str) -> set[str | None]:
        """Give the texts of a key that wait and that the gate would let in now."""
        waiting = [r for r in self.rows if r.waits and (r.place, r.key) == (place, key) and r not in self.going]
        return {
            r.text for r in waiting if r.text and self.gate.decide(place, key, r.text, r.source, fresh=False) is None
        }

    def name(self, place: Place, selector: Selector) -> list[Proposed]:
        of_user = [row for row in self.rows if row.place[0] == place[0]]
        reached = [row for row in of_user if place[1] in {None, row.place[1]}]
        match selector.kind:
            case SelectorKind.KEY:
                return [row for row in reached if row.key == selector.value]
            case SelectorKind.SOURCE:
                return [row for row in of_user if any(selector.value in family for family in self._told_in(row))]
            case SelectorKind.SUBJECT:
                return reached
            case _:
                return []

    def mark(self, selector: Selector, going: Sequence[Proposed]) -> None:
        """Set the tombstones of a job, when its facts are gone; `going` are the candidates that it takes."""
        if selector.kind is SelectorKind.SUBJECT:
            return
        for row in going:
            if row.text is None:
                continue
            told = [f for f in self.facts.rows if (f.place, f.key) == (row.place, row.key) and not f.revoked]
            waiting = [r for r in self.rows if (r.place, r.key) == (row.place, row.key) and r not in going]
            stands = row.text in {*(f.text for f in told), *(r.text for r in waiting)}
            if selector.kind is SelectorKind.KEY or not stands:
                self.gate.forget_text(row.place, row.key, row.text)
            if selector.kind is SelectorKind.KEY:
                self.gate.forget_tokens(row.place, row.source, tokens(row.text) - self.facts.texts(row.place))

    def revoke(self, going: Sequence[Proposed]) -> None:
        for row in going:
            row.text, row.waits = None, False

    def _told_in(self, row: Proposed) -> list[frozenset[str]]:
        sources = [row.source, *([row.confirmed_in] if row.confirmed_in else [])]
        return [self.gate.sources[source].family for source in sources]
