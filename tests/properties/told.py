"""What people have told and asked to forget, as a test knows it: from its own steps, and from no answer of a store."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from orchestrator import Scope, Selector, SelectorKind, Target


@dataclass(kw_only=True, eq=False)
class Telling:
    """One version of a fact. Its text is a token that stands for it wherever a copy of it lies.

    `at` is the step in which it was told. `there`, `active`, `reported`, `indexed` and `cached` say
    where it can be read while nobody has asked for it to go: `reported` names the draft job.
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
    """`revoked_at` is the step in which the source has revoked, `taken` what lay there then and is named by it."""

    id: str
    scope: Scope
    selector: Selector
    revoked_at: int | None = None
    taken: frozenset[Telling] = frozenset()

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
        before = telling.at < self.revoked_at
        return telling in self.taken or (before and self.names(telling.scope, telling.key, telling.source))


@dataclass(kw_only=True)
class Snapshot:
    """What a copy of the source held when it was taken."""

    tellings: dict[Telling, tuple[bool, str | None]]
    sources: frozenset[Source]
    revoked: dict[str, tuple[int | None, frozenset[Telling]]]


@dataclass
class Told:
    """All that was told, of which sources, and what was asked for."""

    step: int = 0
    tellings: list[Telling] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    jobs: dict[str, Job] = field(default_factory=dict)

    def add(self, telling: Telling) -> None:
        """Note a telling, which takes the place of the one before it under its key."""
        for old in self.tellings:
            if (old.scope, old.key) == (telling.scope, telling.key):
                old.active = False
        self.tellings.append(telling)

    def forgotten_by(self, telling: Telling) -> list[Job]:
        """Name the jobs by which a telling is forgotten since the source has revoked."""
        return [job for job in self.jobs.values() if job.covers(telling)]

    def refuses(self, scope: Scope, key: str, source: Source) -> bool:
        """Tell whether something new of a source may not be learned any more."""
        jobs = [job for job in self.jobs.values() if job.revoked_at is not None and source.at < job.revoked_at]
        return any(job.names(scope, key, source) for job in jobs)

    def has_expired(self, job: Job, here: Collection[Telling], now: datetime) -> Iterator[Telling]:
        """Give what a job of the clock takes now: each fact of its scope whose newest version is over."""
        facts = {t.record.id for t in here if job.scope in {t.scope, Scope(tenant=t.scope.tenant, user=t.scope.user)}}
        for fact in facts:
            versions = [t for t in here if t.record.id == fact]
            newest = max(versions, key=lambda t: t.record.version)
            if newest.expires is not None and newest.expires <= now:
                yield from versions

    def revoke(self, job: Job, lay: Collection[Target], now: datetime) -> None:
        """Note that the source has revoked for a job in this step, before which these records lay in it."""
        here = [telling for telling in self.tellings if telling.record in lay]
        if job.selector.kind is SelectorKind.EXPIRED:
            job.taken = frozenset(self.has_expired(job, here, now))
        else:
            job.taken = frozenset(t for t in here if job.names(t.scope, t.key, t.source))
        job.revoked_at = self.step

    def snapshot(self) -> Snapshot:
        """Note what a copy of the source holds."""
        return Snapshot(
            tellings={t: (t.active, t.reported) for t in self.tellings if t.there},
            sources=frozenset(s for s in self.sources if s.there),
            revoked={job.id: (job.revoked_at, job.taken) for job in self.jobs.values()},
        )

    def restore(self, copy: Snapshot, begun: set[str]) -> None:
        """Put the source back; what `begun` jobs have revoked stays revoked, the others begin again as in the copy."""
        for job in self.jobs.values():
            if job.id not in begun:
                job.revoked_at, job.taken = copy.revoked.get(job.id, (None, frozenset()))
        for telling in self.tellings:
            telling.there = telling in copy.tellings
            telling.active, telling.reported = copy.tellings.get(telling, (False, None))
        for source in self.sources:
            source.there = source in copy.sources
