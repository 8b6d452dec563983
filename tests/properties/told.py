"""What people have told and asked to forget, as a test knows it: from its own steps, and from no answer of a store."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from orchestrator import Scope, Selector, SelectorKind, Target
from tests.properties.looking import Piece


@dataclass(kw_only=True, eq=False)
class Telling:
    """One version of a fact. Its text is a token that stands for it wherever a copy of it lies.

    `at` is the step in which it was told. `there`, `active`, `reported`, `indexed` and `cached` say
    where it can be read while nobody has asked for it to go: `reported` names the draft job. `strayed` is what somebody
    has written a draft of when the source had it no more.
    """

    scope: Scope
    key: str
    token: str
    source: Source
    record: Target
    at: int
    expires: datetime | None
    there: bool = True
    active: bool = True
    indexed: bool = False
    cached: bool = False
    reported: str | None = None
    strayed: bool = False

    @property
    def vector(self) -> list[float]:
        """Give a vector that no other token has."""
        number = float(self.token.removeprefix("P"))
        return [1.0, number, 0.25, 0.5]

    @property
    def question(self) -> str:
        return f"{self.key}, {self.token}?"


@dataclass(kw_only=True, eq=False)
class Source:
    name: str
    scope: Scope
    at: int
    behind: frozenset[str] = frozenset()
    there: bool = True


@dataclass(kw_only=True, eq=False)
class Job:
    """`revoked_at` is the step in which the source has revoked, `taken` what lay there then and is named by it.

    `left` are the facts, by id, that it has left because of a hold and not taken since, `waited` tells of any at all.
    """

    id: str
    scope: Scope
    selector: Selector
    revoked_at: int | None = None
    taken: frozenset[Telling] = frozenset()
    left: frozenset[str] = frozenset()
    waited: bool = False

    def names(self, scope: Scope, key: str, source: Source) -> bool:
        """Tell whether a telling of that kind is what was asked for, whenever it was told."""
        mine, value = self.scope, self.selector.value
        if (scope.tenant, scope.user) != (mine.tenant, mine.user):
            return False
        here = mine.project in {None, scope.project}
        match self.selector.kind:
            case SelectorKind.SUBJECT:
                return here
            case SelectorKind.KEY:
                return here and key == value
            case SelectorKind.SOURCE:
                return value in {source.name, *source.behind}
            case _:
                return False

    def covers(self, telling: Telling) -> bool:
        """Tell whether a telling is forgotten by this job, by what the source has revoked or would have."""
        if self.revoked_at is None:
            return False
        before = telling.at < self.revoked_at and telling.record.id not in self.left
        return telling in self.taken or (before and self.names(telling.scope, telling.key, telling.source))

    def has_left(self, telling: Telling) -> bool:
        """Tell whether it has left a telling because of a hold, and what its source says is not learned again."""
        named = self.revoked_at is not None and self.names(telling.scope, telling.key, telling.source)
        return named and telling.record.id in self.left


@dataclass(kw_only=True, eq=False)
class Hold:
    """A legal hold that was placed and not released: on all of a user's data, or on one fact by its id.

    `kept` is all that it covers and that was seen anywhere since it is in force.
    """

    id: str
    scope: Scope
    item: str | None
    in_force: bool = False
    kept: set[Piece] = field(default_factory=set)

    def covers(self, telling: Telling) -> bool:
        mine = (telling.scope.tenant, telling.scope.user) == (self.scope.tenant, self.scope.user)
        return mine and self.item in {None, telling.record.id}


@dataclass(kw_only=True)
class Snapshot:
    """What a copy of the source held when it was taken."""

    tellings: dict[Telling, tuple[bool, str | None]]
    sources: frozenset[Source]
    revoked: dict[str, tuple[int | None, frozenset[Telling], frozenset[str]]]


@dataclass
class Told:
    """All that was told, of which sources, and what was asked for."""

    step: int = 0
    tellings: list[Telling] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    jobs: dict[str, Job] = field(default_factory=dict)
    holds: list[Hold] = field(default_factory=list)

    def add(self, telling: Telling) -> None:
        """Note a telling, which takes the place of the one before it under its key."""
        for old in self.tellings:
            if (old.scope, old.key) == (telling.scope, telling.key):
                old.active = False
        self.tellings.append(telling)

    def forgotten_by(self, telling: Telling) -> list[Job]:
        """Name the jobs by which a telling is forgotten since the source has revoked."""
        return [job for job in self.jobs.values() if job.covers(telling)]

    def left_by(self, telling: Telling) -> list[Job]:
        """Name the jobs that have left a telling because of a hold, and take it when it is free."""
        return [job for job in self.jobs.values() if job.has_left(telling)]

    def refused_by(self, telling: Telling) -> list[Job]:
        """Name the jobs because of which nothing is learned again of a telling: a hold shortens no tombstone.

        What is marked by its key or its words alone is marked when it is taken.
        """
        at_once = {SelectorKind.SOURCE, SelectorKind.SUBJECT}
        left = [job for job in self.left_by(telling) if job.selector.kind in at_once]
        return self.forgotten_by(telling) + left

    def holds_on(self, telling: Telling) -> list[Hold]:
        """Give the holds that cover a telling, those that are not in force yet among them."""
        return [hold for hold in self.holds if hold.covers(telling)]

    def refuses(self, scope: Scope, key: str, source: Source) -> bool:
        """Tell whether something new of a source may not be learned any more."""
        jobs = [job for job in self.jobs.values() if job.revoked_at is not None and source.at < job.revoked_at]
        return self.has_gone(source) or any(job.names(scope, key, source) for job in jobs)

    def has_gone(self, source: Source) -> bool:
        """Tell whether a source, or one behind it, was forgotten with all of its scope: for other projects as well."""
        behind = [s for s in self.sources if s is source or s.name in source.behind]
        jobs = [job for job in self.jobs.values() if job.selector.kind is SelectorKind.SUBJECT]
        revoked = [(job, s) for job in jobs for s in behind if job.revoked_at is not None and s.at < job.revoked_at]
        return any(job.names(s.scope, "", s) for job, s in revoked)

    def has_expired(self, job: Job, here: Collection[Telling], now: datetime) -> Iterator[Telling]:
        """Give what a job of the clock takes now: each fact of its scope whose newest version is over."""
        facts = {t.record.id for t in here if job.scope in {t.scope, Scope(tenant=t.scope.tenant, user=t.scope.user)}}
        for fact in facts:
            versions = [t for t in here if t.record.id == fact]
            newest = max(versions, key=lambda t: t.record.version)
            if newest.expires is not None and newest.expires <= now:
                yield from versions

    def revoke(self, job: Job, lay: Collection[Target], left: frozenset[str], now: datetime) -> None:
        """Note that the source has revoked for a job in this step, but for what it has left.

        Before the step these records lay in it.
        """
        job.taken = frozenset(t for t in self._named(job, lay, now) if t.record.id not in left)
        job.revoked_at, job.left, job.waited = self.step, left, job.waited or bool(left)

    def free(self, job: Job, left: frozenset[str], lay: Collection[Target], now: datetime) -> None:
        """Note that in this step the source has revoked what a job had left, but for what it leaves still."""
        freed = job.left - left
        mine = [t for t in self._named(job, lay, now) if t.record.id in freed]
        job.taken |= {t for t in mine if job.revoked_at is not None and t.at < job.revoked_at}
        job.left -= freed

    def _named(self, job: Job, lay: Collection[Target], now: datetime) -> list[Telling]:
        here = [telling for telling in self.tellings if telling.record in lay]
        if job.selector.kind is SelectorKind.EXPIRED:
            return list(self.has_expired(job, here, now))
        return [t for t in here if job.names(t.scope, t.key, t.source)]

    def snapshot(self) -> Snapshot:
        """Note what a copy of the source holds."""
        return Snapshot(
            tellings={t: (t.active, t.reported) for t in self.tellings if t.there},
            sources=frozenset(s for s in self.sources if s.there),
            revoked={job.id: (job.revoked_at, job.taken, job.left) for job in self.jobs.values()},
        )

    def restore(self, copy: Snapshot, begun: set[str], waiting: Collection[tuple[str, str]]) -> None:
        """Put the source back; what `begun` jobs have revoked stays revoked, the others begin again as in the copy.

        `waiting` are the facts that such a job has left because of a hold: one that it had taken in the copy is gone.
        """
        for job in self.jobs.values():
            revoked_at, taken, left = copy.revoked.get(job.id, (None, frozenset(), frozenset()))
            if job.id not in begun:
                job.revoked_at, job.taken, job.left = revoked_at, taken, left
                continue
            again = frozenset(item for of, item in waiting if of == job.id)
            job.left = again if revoked_at is None else again & left
            job.taken = frozenset(t for t in job.taken if t.record.id not in job.left)
        for telling in self.tellings:
            telling.there = telling in copy.tellings
            telling.active, telling.reported = copy.tellings.get(telling, (False, None))
        for source in self.sources:
            source.there = source in copy.sources
