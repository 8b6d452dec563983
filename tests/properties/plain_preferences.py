"""Preferences of a few people as a plain list of events: what held of each key, and when."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from orchestrator import Refusal, Selector, SelectorKind
from tests.properties.plain_gate import Place, PlainGate, tokens


@dataclass
class Said:
    """An event. A text of None is a delete; what is revoked has none either, and what is erased is only that it was."""

    place: Place
    key: str
    sequence: int
    text: str | None
    source: str
    revoked: bool = False
    erased: bool = False


@dataclass
class PlainPreferences:
    gate: PlainGate
    log: list[Said] = field(default_factory=list)
    holds: dict[tuple[Place, str], Said] = field(default_factory=dict)

    def record(self, place: Place, key: str, text: str | None, source: str, *, stated: bool) -> Refusal | Said:
        fresh = stated and text is not None and self.gate.says(place, source, key)
        refusal = self.gate.decide(place, key, text or "", source, fresh=fresh)
        if refusal is not None:
            return refusal
        if fresh:
            self.gate.use(place, source, key)
        self.gate.position += 1
        self.log.append(Said(place, key, self.gate.position, text, source))
        return self.log[-1]

    def apply(self, said: Said) -> bool:
        """Let an event hold where nothing newer does, an erased one among what is newer."""
        newer = self.holds.get((said.place, said.key))
        gone = max((s.sequence for s in self._of(said.place, said.key) if s.erased), default=0)
        if (newer is not None and newer.sequence >= said.sequence) or gone >= said.sequence:
            return False
        self.holds[said.place, said.key] = said
        return True

    def resolve(self, place: Place, key: str, as_of: int) -> tuple[str, str | None, int | None]:
        """Give state, text and sequence."""
        own = self._last(place, key, as_of)
        if place[1] is not None and (own is None or _state(own) == "deleted"):
            own = self._last((place[0], None), key, as_of)
        return ("unset", None, None) if own is None else (_state(own), own.text, own.sequence)

    def state(self, place: Place, key: str) -> tuple[int, str | None]:
        """Give sequence and text of what holds; where it was erased, or a newer one was, of that."""
        held = self.holds.get((place, key))
        gone = max((s.sequence for s in self._of(place, key) if s.erased), default=0)
        if held is None or held.erased or gone >= held.sequence:
            return gone, None
        return held.sequence, held.text

    def name(self, place: Place, selector: Selector) -> list[Said]:
        there = [s for s in self.log if not s.erased and s.place[0] == place[0]]
        reached = [s for s in there if place[1] in {None, s.place[1]}]
        match selector.kind:
            case SelectorKind.KEY:
                return [s for s in reached if s.key == selector.value]
            case SelectorKind.SOURCE:
                return [s for s in there if selector.value in self.gate.sources[s.source].family]
            case SelectorKind.SUBJECT:
                return reached
            case _:
                return []

    def mark(self, selector: Selector, going: Sequence[Said]) -> None:
        """Set the tombstones of a job; `going` are the events that it takes."""
        if selector.kind is SelectorKind.SUBJECT:
            return
        for said in going:
            if said.text is None:
                continue
            stands = any(s.key == said.key and s.text == said.text for s in self._staying(said.place, going))
            if selector.kind is SelectorKind.KEY or not stands:
                self.gate.forget_text(said.place, said.key, said.text)
            if selector.kind is SelectorKind.KEY:
                self.gate.forget_tokens(said.place, said.source, tokens(said.text) - self.texts(said.place, going))

    def revoke(self, going: Sequence[Said]) -> None:
        for said in going:
            said.revoked, said.text = True, None

    def erase(self, going: Sequence[Said]) -> None:
        for said in going:
            said.erased = True

    def texts(self, place: Place, leaving: Collection[Said] = ()) -> frozenset[str]:
        """Give the words of what stays in a place."""
        return frozenset().union(*(tokens(said.text or "") for said in self._staying(place, leaving)))

    def _staying(self, place: Place, leaving: Collection[Said]) -> list[Said]:
        return [s for s in self.log if s.place == place and not s.revoked and not any(s is each for each in leaving)]

    def _of(self, place: Place, key: str) -> list[Said]:
        return [said for said in self.log if (said.place, said.key) == (place, key)]

    def _last(self, place: Place, key: str, as_of: int) -> Said | None:
        return next((said for said in reversed(self._of(place, key)) if said.sequence <= as_of), None)


def _state(said: Said) -> str:
    if said.revoked:
        return "erased"
    return "deleted" if said.text is None else "value"
