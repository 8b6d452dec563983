"""Facts of a few people as plain lists: what the store has to answer after any number of calls."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

from orchestrator import Refusal, Selector, SelectorKind
from tests.properties.plain_gate import Place, PlainGate, tokens


@dataclass
class Row:
    place: Place
    key: str
    version: int
    text: str
    source: str
    expires: float
    active: bool = True
    revoked: bool = False


@dataclass
class PlainFacts:
    gate: PlainGate
    rows: list[Row] = field(default_factory=list)
    highest: dict[tuple[Place, str], int] = field(default_factory=dict)
    again: list[Row] = field(default_factory=list)
    others: Callable[[Place, str], set[str | None]] = lambda _place, _key: set()
    """Texts of a key that stand in something else than facts."""

    def put(
        self, place: Place, key: str, text: str, source: str, expires: float = math.inf, *, stated: bool
    ) -> Refusal | int:
        fresh = stated and self.gate.says(place, source, key)
        refusal = self.gate.decide(place, key, text, source, fresh=fresh)
        if refusal is not None:
            return refusal
        if fresh:
            self.gate.use(place, source, key)
        return self._insert(place, key, text, source, expires)

    def replace(
        self, place: Place, key: str, text: str, source: str, expected: int, *, stated: bool
    ) -> Refusal | int | None:
        """Put if the version is the expected one, 0 where there is to be nothing of the key; None where it is not."""
        fresh = stated and self.gate.says(place, source, key)
        refusal = self.gate.decide(place, key, text, source, fresh=fresh)
        if refusal is not None:
            return refusal
        last = max(self._of(place, key), key=lambda row: row.version, default=None)
        is_active = last is not None and last.active and last.version == self.highest[place, key]
        is_in_the_way = last is not None and last.revoked
        version = last.version if last is not None and is_active else 0
        if (is_in_the_way and not is_active) or expected != version:
            return None
        return self.put(place, key, text, source, stated=stated)

    def forget(self, place: Place, key: str) -> int:
        return self._revoke([row for row in self._reached(place) if row.key == key])

    def current(self, place: Place, now: float) -> list[tuple[str, int, str]]:
        return sorted((r.key, r.version, r.text) for r in self._of(place) if r.active and r.expires > now)

    def lasting(self, place: Place) -> list[tuple[str, int, str]]:
        """Give the facts that no time takes away: whatever changes among them, somebody has changed."""
        return sorted((r.key, r.version, r.text) for r in self._of(place) if r.active and math.isinf(r.expires))

    def name(self, place: Place, selector: Selector, now: float) -> list[Row]:
        """Give the rows that a selector names, those that are revoked already among them."""
        match selector.kind:
            case SelectorKind.KEY:
                return [row for row in self._reached(place) if row.key == selector.value]
            case SelectorKind.SOURCE:
                of_user = self._reached((place[0], None))
                return [row for row in of_user if selector.value in self.gate.sources[row.source].family]
            case SelectorKind.SUBJECT:
                return self._reached(place)
            case _:
                newest = {(row.place, row.key): row for row in self._reached(place)}  # in the order of versions
                over = {at for at, row in newest.items() if row.expires <= now}
                return [row for row in self._reached(place) if (row.place, row.key) in over]

    def mark(self, place: Place, selector: Selector, going: Collection[Row], now: float) -> None:
        """Set the tombstones of a job, before those of the source; `going` are the rows that it takes."""
        live = [row for row in going if not row.revoked]
        match selector.kind:
            case SelectorKind.KEY:
                for each in self._places(place):
                    self.gate.forget_key(each, str(selector.value))
                self._mark_texts(live, going)
            case SelectorKind.SOURCE:
                stays = self._standing(str(selector.value), live, going, now)
                for row in live:
                    if (row.place, row.key, row.text) not in stays:
                        self.gate.forget_text(row.place, row.key, row.text)
                # What another source told as well holds again, as a new version.
                told = [stays.get((row.place, row.key, row.text)) for row in live if row.active]
                self.again = [row for row in told if row is not None]
            case SelectorKind.EXPIRED:
                for row in live:
                    said = max(
                        self.gate.sources[r.source].position for r in live if (r.place, r.key) == (row.place, row.key)
                    )
                    self.gate.forget_key(row.place, row.key, said)
                self._mark_texts(live, going, with_text=False)
            case _:
                pass

    def revoke(self, going: Iterable[Row]) -> int:
        changed = self._revoke(going)
        again, self.again = self.again, []
        for row in again:
            self._insert(row.place, row.key, row.text, row.source, row.expires)
        return changed

    def erase(self, going: Collection[Row]) -> None:
        self.rows = [row for row in self.rows if not any(row is each for each in going)]

    def texts(self, place: Place, leaving: Collection[Row] = ()) -> frozenset[str]:
        """Give the words of what stays active in a place."""
        staying = (r for r in self._of(place) if r.active and not any(r is each for each in leaving))
        return frozenset().union(*(tokens(row.text) for row in staying))

    def _standing(
        self, source: str, live: Collection[Row], going: Collection[Row], now: float
    ) -> dict[tuple[Place, str, str], Row | None]:
        """Give the texts that stay by another source: the newest version that says so, or that something else does."""
        found: dict[tuple[Place, str, str], Row | None] = {}
        for row in live:
            text = (row.place, row.key, row.text)
            for other in self._of(row.place, row.key):
                if other.text == row.text and not any(other is each for each in going) and not other.revoked:
                    used = (other.place, other.source, other.key) in self.gate.used
                    told = self.gate.decide(other.place, other.key, other.text, other.source, fresh=used)
                    if other.expires > now and told is None and source not in self.gate.sources[other.source].family:
                        found[text] = other  # in the order of versions
            if text not in found and row.text in self.others(row.place, row.key):
                found[text] = None
        return found

    def _mark_texts(self, live: Collection[Row], going: Collection[Row], *, with_text: bool = True) -> None:
        for row in live:
            if with_text:
                self.gate.forget_text(row.place, row.key, row.text)
            self.gate.forget_tokens(row.place, row.source, tokens(row.text) - self.texts(row.place, going))

    def _insert(self, place: Place, key: str, text: str, source: str, expires: float) -> int:
        version = self.highest.get((place, key), 0) + 1
        self.highest[place, key] = version
        for row in self._of(place, key):
            row.active = False
        self.rows.append(Row(place, key, version, text, source, expires))
        return version

    def _revoke(self, going: Iterable[Row]) -> int:
        changed = [row for row in going if not row.revoked]
        for row in changed:
            row.revoked, row.active, row.text = True, False, ""
        return len(changed)

    def _of(self, place: Place, key: str | None = None) -> list[Row]:
        return [row for row in self.rows if row.place == place and key in {None, row.key}]

    def _reached(self, place: Place) -> list[Row]:
        """Give the rows of a place, or of all projects of a user where none is named."""
        return [row for row in self.rows if row.place[0] == place[0] and place[1] in {None, row.place[1]}]

    def _places(self, place: Place) -> Collection[Place]:
        if place[1] is not None:
            return [place]
        projects = {row.place[1] for row in self._reached(place)}
        projects |= {source.place[1] for source in self.gate.sources.values() if source.place[0] == place[0]}
        return [(place[0], project) for project in {None, *projects}]
