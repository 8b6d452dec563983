"""The five stores of the demo, open as an application has them, and what the demo's people fill them with."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from adapters.backup import BackupAdapter
from adapters.cache import CacheAdapter
from adapters.demo import sight
from adapters.demo.people import (
    EXPIRING,
    EXPIRING_KEY,
    GUEST,
    OTHER_KEY,
    READER,
    SCOPES,
    SECRET_KEY,
    TRANSCRIPT,
    embed,
    questions,
    tellings,
)
from adapters.demo.sight import Row
from adapters.drafts import DraftsAdapter
from adapters.memory import MemoryAdapter
from adapters.vector import Point, VectorAdapter, VectorIndex
from orchestrator import Scope, Target, open_adapter

STORES: Final = ("memory", "vector", "cache", "drafts", "backup")
REPORTS: Final = {"passport": [SECRET_KEY], "allergy": [OTHER_KEY], "others": ["key-02", "key-03"]}
"""Draft jobs by name, each over these keys, as far as they are there."""


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """Everything that the stores hold, row by row and entry by entry."""

    facts: dict[str, Row]
    points: dict[str, Row]
    answers: dict[bytes, dict[bytes, bytes]]
    drafts: dict[str, Row]


@dataclass(frozen=True, kw_only=True)
class World:
    """The stores of one state directory."""

    folder: Path
    memory: MemoryAdapter
    vector: VectorAdapter
    cache: CacheAdapter
    drafts: DraftsAdapter
    backup: BackupAdapter
    index: VectorIndex

    @classmethod
    def open(cls, folder: Path) -> World:
        """Open the stores that the configuration in this folder names."""
        memory, vector, cache, drafts, backup = (open_adapter(folder / "state", name) for name in STORES)
        source = cast("MemoryAdapter", memory)
        index = cast("VectorAdapter", vector)
        return cls(
            folder=folder,
            memory=source,
            vector=index,
            cache=cast("CacheAdapter", cache),
            drafts=cast("DraftsAdapter", drafts),
            backup=cast("BackupAdapter", backup),
            index=index.index(source.masters),
        )

    def close(self) -> None:
        """Give back connections."""
        for adapter in (self.memory, self.vector, self.cache, self.drafts, self.backup):
            adapter.close()

    @property
    def source(self) -> Path:
        """The file of facts and drafts."""
        return self.folder / "state" / "memory.db"

    @property
    def vectors(self) -> Path:
        """The file of the vector index."""
        return self.folder / "state" / "vectors.db"

    @property
    def copies(self) -> Path:
        """The folder of backup copies."""
        return self.folder / "state" / "backups"

    @property
    def ledger(self) -> Path:
        """The control database."""
        return self.folder / "state" / "orchestrator.db"

    @property
    def set_aside(self) -> Path:
        """A copy of the source database that somebody has put aside, outside of every store."""
        return self.folder / "set-aside.db"

    @property
    def transcript(self) -> Path:
        """The old conversation, a file outside of every store."""
        return self.folder / "transcript.txt"

    def tell(self) -> int:
        """Let everybody tell what they have to tell; give the number of versions of facts."""
        told = 0
        for scope, key, text, source in tellings():
            self.memory.store.register_source(scope, source)
            self.memory.store.put(scope, key, text, source, user_statement=True)
            told += 1
        self.transcript.write_text(TRANSCRIPT)
        return told

    def derive(self) -> None:
        """Make vectors and reports of what is known of everybody."""
        for scope in SCOPES:
            facts = self.memory.store.current(scope)
            self.index.put(scope, [_point(fact.id, fact.version, fact.source, fact.value) for fact in facts])
            here = {fact.key for fact in facts}
            for name, keys in REPORTS.items():
                if here.issuperset(keys):
                    self.drafts.runtime.submit(scope, name, keys=keys)
                    self.drafts.runtime.run(scope, name)

    def answer(self) -> None:
        """Let everybody ask, so that the answers are cached."""
        for scope in SCOPES:
            self._ask(scope, {fact.key for fact in self.memory.store.current(scope)})

    def expire(self, seconds: float) -> float:
        """Let a guest tell what holds for that long, with a vector and answers; give when that is over, since 1970."""
        source = f"{GUEST.user}/turn-99"
        self.memory.store.register_source(GUEST, source)
        until = time.time() + seconds
        self.memory.store.put(GUEST, EXPIRING_KEY, EXPIRING, source, until, user_statement=True)
        (fact,) = (fact for fact in self.memory.store.current(GUEST) if fact.key == EXPIRING_KEY)
        self.index.put(GUEST, [_point(fact.id, fact.version, fact.source, fact.value)])
        self._ask(GUEST, {EXPIRING_KEY})
        return until

    def snapshot(self) -> Snapshot:
        """Read everything that the stores hold now."""
        return Snapshot(
            facts=sight.facts(self.source),
            points=sight.points(self.vectors),
            answers=sight.answers(self.cache.client()),
            drafts=sight.drafts(self.source),
        )

    def cached(self) -> list[str]:
        """Ask the cache, as an application does, all that was asked about the two secrets."""
        asked = [question for key in (SECRET_KEY, OTHER_KEY) for question in questions(key)]
        return [answer for q in asked if (answer := self.cache.answers.get(READER, q)) is not None]

    def _ask(self, scope: Scope, keys: Collection[str]) -> None:
        revision = self.memory.store.revision_for_answers(scope)
        for fact in self.memory.store.current(scope):
            if fact.key in keys:
                origin = [Target(kind="fact", id=fact.id, version=fact.version)]
                for question in questions(fact.key):
                    self.cache.answers.put(scope, question, f"You said: {fact.value}", origin, revision=revision)


def _point(fact: str, version: int, source: str, text: str) -> Point:
    return Point(made_from=Target(kind="fact", id=fact, version=version), source=source, vector=embed(text))
