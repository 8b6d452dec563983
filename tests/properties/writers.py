"""Writers that hold what they have read, and store it later: one for each way into a store."""

from __future__ import annotations

import sqlite3
import threading
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, TypeAlias

import pytest

from adapters.drafts import Fault, State
from adapters.drafts.work import compose
from adapters.vector import Point
from orchestrator import GateRefused, Refused, Scope, SelectorKind, Target
from tests.integration.five_stores import Died, Five
from tests.properties.told import Job, Telling

PATIENCE: Final = 60.0
_DRAFT: Final = """INSERT INTO drafts (tenant, user_id, project, position, handle, job, step, text)
    VALUES (?, ?, ?, ?, ?, ?, 'collect', ?)"""
_USED: Final = "INSERT INTO draft_used (tenant, handle, kind, id, version) VALUES (?, ?, ?, ?, ?)"
_RECORD: Final = "SELECT 1 FROM facts WHERE fact_id = ? AND version = ?"
QUIET: Final = timedelta(seconds=60)
"""The longest time that a writer may be on its way which passes no gate: the deployment's quiet time."""


@dataclass(kw_only=True, eq=False)
class Writer(ABC):
    """Has read a telling at a time, and writes what it has made of it whenever it is told to."""

    five: Five
    telling: Telling
    read_at: datetime
    revision: int  # of the scope, read before the telling
    name: str  # for what it makes

    def begin(self) -> None:  # noqa: B027 - most have nothing to begin
        """Do what comes before the writing."""

    def is_promised(self, jobs: Sequence[Job]) -> bool:
        """Tell whether anything is promised of what it writes now, with these jobs behind it."""
        del jobs
        return True

    @property
    def _is_slow(self) -> bool:
        return self.five.clock.now() - self.read_at >= QUIET

    @abstractmethod
    def write(self) -> str:
        """Store it, and tell in a word what became of it."""

    def end(self) -> None:  # noqa: B027 - most leave nothing behind
        """Die without having written."""


class Indexer(Writer):
    def write(self) -> str:
        told = self.telling
        stored = self.five.index.put(told.scope, [point(told)])
        told.indexed |= not stored.refused
        return "refused" if stored.refused else "kept"


class Stray(Writer):
    """A program that writes into a store by itself, and names what it has made that from: the last look sees it."""

    def is_promised(self, jobs: Sequence[Job]) -> bool:
        """Tell whether it is not slower than quiet time."""
        del jobs
        return not self._is_slow


class StrayPoint(Stray):
    def write(self) -> str:
        revision = self.five.memory.store.revision_for_answers(self.telling.scope)
        self.five.vector.index(Anybody(revision)).put(self.telling.scope, [point(self.telling)])
        self.telling.indexed = True
        return "kept"


class StrayAnswer(Stray):
    """It asks for the revision when it has read long ago."""

    def write(self) -> str:
        told = self.telling
        revision = self.five.memory.store.revision_for_answers(told.scope)
        assert self.five.cache.answers.put(told.scope, told.question, told.token, [told.record], revision)
        told.cached = True
        return "kept"


class StrayDraft(Stray):
    def write(self) -> str:
        told, handle = self.telling, self.name
        place = (told.scope.tenant, told.scope.user, told.scope.project)
        with closing(sqlite3.connect(self.five.control.settings.state_dir / "memory.db")) as database, database:
            database.execute(_DRAFT, (*place, 0, handle, handle, told.token))
            database.execute(_USED, (told.scope.tenant, handle, told.record.kind, told.record.id, told.record.version))
            there = database.execute(_RECORD, (told.record.id, told.record.version)).fetchone()
        told.strayed |= there is None
        return "kept"


@dataclass
class Anybody:
    """A source that hands everything out."""

    revision: int

    def active(self, scope: Scope, records: Collection[Target]) -> dict[Target, int]:
        del scope
        return dict.fromkeys(records, self.revision)


class Filler(Writer):
    """An application that has an answer ready under the revision that it has read first."""

    def is_promised(self, jobs: Sequence[Job]) -> bool:
        """Tell whether a fence or the last look keeps it out: an expiry raises no revision.

        An older version goes with the newest, whose time is over, and has none of its own.
        """
        by_the_clock = all(job.selector.kind is SelectorKind.EXPIRED for job in jobs)
        expires = self.telling.expires is not None or bool(jobs)
        return not (self._is_slow and by_the_clock and expires)

    def write(self) -> str:
        told = self.telling
        kept = self.five.cache.answers.put(told.scope, told.question, told.token, [told.record], self.revision)
        told.cached |= kept
        return "kept" if kept else "refused"


class Learner(Writer):
    """Learns something once more. What nobody has asked to forget it may learn, so it is not asked to."""

    def is_promised(self, jobs: Sequence[Job]) -> bool:
        """Tell whether it is to be refused."""
        return bool(jobs)

    def write(self) -> str:
        try:
            self._learn()
        except GateRefused:
            return "refused"
        message = "P2: what was forgotten is learned again"
        raise AssertionError(message)

    @abstractmethod
    def _learn(self) -> None:
        """Store it."""


class Extractor(Learner):
    """A pass over an old source, that finds in it what it has found before."""

    def _learn(self) -> None:
        told = self.telling
        self.five.memory.store.put(told.scope, told.key, told.token, told.source.name)


class Summary(Learner):
    """Something new that is derived from an old source and repeats a fact of it."""

    def _learn(self) -> None:
        told, store = self.telling, self.five.memory.store
        store.register_source(told.scope, self.name, kind="model", derived_from=[told.source.name])
        store.put(told.scope, "summary", told.token, self.name)


class Resumer(Writer):
    """A runner of a draft job that has died behind its second step; another process goes on later."""

    def begin(self) -> None:
        self.five.drafts.runtime.submit(self.telling.scope, self.name, keys=[self.telling.key])
        with pytest.raises(Died):
            self.five.drafts.runtime.run(self.telling.scope, self.name, fault=_dying)

    def write(self) -> str:
        return published(self)


@dataclass(kw_only=True, eq=False)
class Runner(Writer):
    """A runner of a draft job in whose writer time passes: the checkpoint is ready, and not yet kept."""

    reached: threading.Event = field(default_factory=threading.Event)
    goes_on: threading.Event = field(default_factory=threading.Event)
    dies: bool = False
    told: list[str | BaseException] = field(default_factory=list)

    def begin(self) -> None:
        self.five.drafts.runtime.submit(self.telling.scope, self.name, keys=[self.telling.key])
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self.reached.wait(PATIENCE)

    def _run(self) -> None:
        try:
            self.told.append(published(self))
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            self.told.append(error)

    def pause(self, collected: str) -> str:
        self.reached.set()
        assert self.goes_on.wait(PATIENCE)
        if self.dies:
            raise Died
        return compose(collected)

    def write(self) -> str:
        self.goes_on.set()
        self._thread.join(PATIENCE)
        (told,) = self.told
        if isinstance(told, BaseException):
            raise told
        return told

    def end(self) -> None:
        self.dies = True
        self.goes_on.set()
        self._thread.join(PATIENCE)


Drafting: TypeAlias = Resumer | Runner


def published(writer: Drafting) -> str:
    """Do what is left of a draft job; give what became of it."""
    told = writer.telling
    try:
        view = writer.five.drafts.runtime.run(
            told.scope, writer.name, writer.pause if isinstance(writer, Runner) else compose
        )
    except (Refused, GateRefused):
        return "refused"
    assert view.state is State.PUBLISHED
    told.reported = writer.name
    return "kept"


def _dying(passed: Fault) -> None:
    if passed is Fault.AFTER_DRAFT:
        raise Died


def point(told: Telling) -> Point:
    return Point(made_from=told.record, source=told.source.name, vector=told.vector)


KINDS: Final[tuple[type[Writer], ...]] = (
    *(Indexer, Filler, Extractor, Summary, Resumer, Runner),
    *(StrayPoint, StrayAnswer, StrayDraft),
)
