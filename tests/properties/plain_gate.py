"""What the gate has to refuse, told plainly: marks hold the very texts, and are compared one by one."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from orchestrator import Refusal, Scope

Place: TypeAlias = tuple[str, str | None]
"""User and project; there is one tenant."""


def place_of(scope: Scope) -> Place:
    return scope.user, scope.project


def tokens(text: str) -> frozenset[str]:
    """Give the words that could give a text away: with a digit, or of five letters and more."""
    return frozenset(word for word in re.findall(r"\w+", text.lower()) if len(word) > 4 or re.search(r"\d", word))


@dataclass(frozen=True)
class Source:
    name: str
    place: Place
    position: int
    ancestors: frozenset[str]
    is_message: bool

    @property
    def family(self) -> frozenset[str]:
        return self.ancestors | {self.name}


@dataclass(frozen=True)
class Mark:
    """A tombstone: what it is about, and up to which position."""

    kind: Refusal
    about: tuple[object, ...]
    cut_off: int


@dataclass
class PlainGate:
    sources: dict[str, Source] = field(default_factory=dict)
    marks: set[Mark] = field(default_factory=set)
    used: set[tuple[object, ...]] = field(default_factory=set)
    position: int = 0

    def accept(self, name: str, place: Place, derived_from: Collection[str], *, is_message: bool) -> Refusal | int:
        """Accept a source, or say why not."""
        ancestors = frozenset(derived_from).union(*(self.sources[parent].ancestors for parent in derived_from))
        if any(Mark(Refusal.SOURCE_TOMBSTONED, (each,), 0) in self._uncut() for each in {name, *ancestors}):
            return Refusal.SOURCE_TOMBSTONED
        if name not in self.sources:
            self.position += 1
            self.sources[name] = Source(name, place, self.position, ancestors, is_message)
        return self.sources[name].position

    def decide(self, place: Place, key: str | None, text: str, source: str, *, fresh: bool) -> Refusal | None:
        """Say why a text may not be written, or None."""
        told = self.sources.get(source)
        if told is None or told.place[0] != place[0]:
            return Refusal.UNKNOWN_SOURCE
        fresh = fresh and not told.ancestors
        reasons = {mark.kind for mark in self.marks if self._meets(mark, place, key, text, told, fresh=fresh)}
        order = (
            Refusal.SOURCE_TOMBSTONED,
            Refusal.SUBJECT_TOMBSTONED,
            Refusal.KEY_TOMBSTONED,
            Refusal.TOKEN_TOMBSTONED,
            Refusal.TEXT_TOMBSTONED,
        )
        return next((reason for reason in order if reason in reasons), None)

    def says(self, place: Place, source: str, *about: object) -> bool:
        """Tell whether a source is a message of this place that has not confirmed this before."""
        told = self.sources.get(source)
        return told is not None and told.is_message and told.place == place and (place, source, *about) not in self.used

    def use(self, place: Place, source: str, *about: object) -> None:
        self.used.add((place, source, *about))

    def forget_source(self, name: str) -> None:
        self._mark(Refusal.SOURCE_TOMBSTONED, (name,), self.position)

    def forget_subject(self, place: Place) -> None:
        self._mark(Refusal.SUBJECT_TOMBSTONED, place, self.position)
        for source in self.sources.values():
            if source.place[0] == place[0] and place[1] in {None, source.place[1]}:
                self.forget_source(source.name)

    def forget_key(self, place: Place, key: str, cut_off: int | None = None) -> None:
        self._mark(Refusal.KEY_TOMBSTONED, (place, key), self.position if cut_off is None else cut_off)

    def forget_text(self, place: Place, key: str | None, text: str) -> None:
        self._mark(Refusal.TEXT_TOMBSTONED, (place, key, text), self.position)

    def forget_tokens(self, place: Place, source: str, words: Iterable[str]) -> None:
        for name in self.sources[source].family:
            for word in words:
                self._mark(Refusal.TOKEN_TOMBSTONED, (place, name, word), self.position)

    def _mark(self, kind: Refusal, about: tuple[object, ...], cut_off: int) -> None:
        self.marks.add(Mark(kind, about, cut_off))

    def _uncut(self) -> set[Mark]:
        return {replace(mark, cut_off=0) for mark in self.marks}

    def _meets(self, mark: Mark, place: Place, key: str | None, text: str, told: Source, *, fresh: bool) -> bool:
        match mark.kind:
            case Refusal.SOURCE_TOMBSTONED:
                return mark.about[0] in told.family
            case Refusal.SUBJECT_TOMBSTONED:
                user, project = mark.about
                return user == place[0] and project in {None, place[1]} and told.position <= mark.cut_off
            case Refusal.KEY_TOMBSTONED:
                return mark.about == (place, key) and told.position <= mark.cut_off
            case Refusal.TOKEN_TOMBSTONED:
                where, name, word = mark.about
                return where == place and name in told.family and word in tokens(text)
            case _:
                where, of_key, forgotten = mark.about
                same = where == place and of_key in {None, key} and forgotten == text
                return same and not (fresh and told.position > mark.cut_off)
