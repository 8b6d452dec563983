"""An assistant with five stores and the people who talk to it: each method is one step, and notes what it was."""

from __future__ import annotations

import math
import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

import redis
import sqlalchemy as sa

from adapters.backup import Policy
from adapters.memory.engine import BUSY_MS
from orchestrator import GateRefused, Reason, RuleRefused, Scope, Selector, SelectorKind, Target
from orchestrator.domain.codes import CrashPoint, HoldReason
from orchestrator.domain.states import JobState
from orchestrator.domain.unit import Answered, Claimed, Phase
from orchestrator.service import run_batch as running
from orchestrator.service.accept import Request, accept
from orchestrator.service.expire import look
from orchestrator.service.hold import HoldRequest, place
from tests.integration.five_stores import ANNA, BERTA, STORES, Died, Five
from tests.properties.looking import SOURCE, Look, packed, rows
from tests.properties.told import Hold, Job, Snapshot, Source, Telling, Told
from tests.properties.writers import Filler, Indexer, Runner, Writer

AT_WORK: Final = replace(ANNA, project="work")
ELSEWHERE: Final = replace(ANNA, tenant="other")
PEOPLE: Final = (ANNA, AT_WORK, BERTA, ELSEWHERE)
DAY: Final = timedelta(days=1)
_SCOPES: Final = "SELECT id, tenant, user_id, project FROM deletion_jobs"
_IN_FORCE: Final = "SELECT id FROM legal_holds WHERE in_force_at_us IS NOT NULL AND released_at_us IS NULL"
_WAITING: Final = """SELECT job_id, item_ref FROM deletion_units
    WHERE phase = 'revoke' AND item_ref IS NOT NULL AND status <> 'done'"""
ENDED: Final = {"verified", "completed"}


@dataclass
class Worker:
    """A process that dies by forgetting everything it holds."""

    owner: str = ""
    adapter: str = ""
    phase: Phase = Phase.REVOKE
    units: Sequence[Claimed] = ()
    answers: Sequence[Answered] = ()


@dataclass
class World:
    five: Five
    server: redis.Redis
    told: Told = field(default_factory=Told)
    vectors: dict[bytes, str] = field(default_factory=dict)
    writers: list[Writer] = field(default_factory=list)
    snapshots: dict[str, Snapshot] = field(default_factory=dict)
    counted: Counter[str] = field(default_factory=Counter)
    lay: set[Target] = field(default_factory=set)  # in the source, before the step that is being taken
    held_once: set[str] = field(default_factory=set)  # facts that a hold of their own has covered at any time
    die_at: CrashPoint | None = None
    number: int = 0

    def __post_init__(self) -> None:
        five = self.five
        self.look = Look(five, self.server, self.vectors)
        self.ledger = replace(five.control.ledger, crash=self._pass)
        five.engine = replace(five.engine, ledger=self.ledger, crash=self._pass)
        self.folder = five.control.settings.state_dir

    def _pass(self, point: CrashPoint, _where: str) -> None:
        if point is self.die_at:
            self.die_at = None
            raise Died

    def next(self) -> int:
        self.number += 1
        return self.number

    # What people do

    def tell(self, who: Scope, key: str, source: Source | None, minutes: int | None) -> Telling | None:
        """Let a fact be told, in a new message or in one that is there; None where it may not be learned any more."""
        store, number = self.five.memory.store, self.next()
        if source is None:
            source = self.message(who, f"{who.user}/turn-{number}")
        refused, token = self.told.refuses(who, key, source), f"P{number:06}"
        end = None if minutes is None else self.five.clock.now() + timedelta(minutes=minutes)
        try:
            until = math.inf if end is None else end.timestamp()
            version = store.put(who, key, token, source.name, until, user_statement=True)
        except GateRefused:
            # What has expired under a key is refused from its own sources, too.
            assert refused or self._has_expired_under(who, key), "a source that nobody asked to forget is refused"
            self.counted["told: refused"] += 1
            return None
        assert not refused, "P7: a forgotten source is learned from"
        return self._noted(who, key, token, source, version, end)

    def _noted(self, who: Scope, key: str, token: str, source: Source, version: int, end: datetime | None) -> Telling:
        (fact,) = (f for f in self._records(who, key) if f.version == version)
        telling = Telling(scope=who, key=key, token=token, source=source, record=fact, at=self.told.step, expires=end)
        self.told.add(telling)
        self.vectors[packed(telling.vector)] = token
        return telling

    def _records(self, who: Scope, key: str) -> list[Target]:
        query = "SELECT tenant, user_id, project, key, fact_id, version FROM facts"
        (facts,) = rows(self.folder / "memory.db", query)
        place = (who.tenant, who.user, who.project, key)
        return [Target(kind="fact", id=row[4], version=row[5]) for row in facts if row[:4] == place]

    def _has_expired_under(self, who: Scope, key: str) -> bool:
        jobs = [job for job in self.told.jobs.values() if job.selector.kind is SelectorKind.EXPIRED]
        return any((t.scope, t.key) == (who, key) for job in jobs for t in job.taken)

    def message(self, who: Scope, name: str, behind: Sequence[Source] = ()) -> Source:
        """Register a source of a person: a message, or what was derived from other sources."""
        names = [source.name for source in behind]
        kind = "model" if behind else "user_message"
        self.five.memory.store.register_source(who, name, kind=kind, derived_from=names)
        closed = frozenset(names).union(*(source.behind for source in behind))
        source = Source(name=name, scope=who, at=self.told.step, behind=closed)
        self.told.sources.append(source)
        return source

    def copy(self, telling: Telling) -> None:
        """Let each store have a copy that is made from a telling."""
        made = [self.read(kind, telling) for kind in (Indexer, Filler, Runner)]
        assert [writer.write() for writer in made] == ["kept"] * 3, "a copy of what holds is refused"

    def ask(self, who: Scope, selector: Selector) -> None:
        asked = Request(scope=who, selector=selector, reason=Reason.USER_REQUEST, requested_by="tester")
        self.counted[f"ask: {selector.kind.value}"] += 1
        job = str(accept(asked, self.five.control.acceptance)[0])
        self.told.jobs[job] = Job(id=job, scope=who, selector=selector)

    def look_for_expired(self) -> None:
        opened = look(self.five.memory, self.five.control.acceptance)
        self.counted["ask: expired"] += len(opened)
        for job in map(str, opened):
            ((tenant, user, project),) = [row[1:] for row in self.control(_SCOPES) if row[0] == job]
            who = Scope(tenant=tenant, user=user, project=project)
            self.told.jobs[job] = Job(id=job, scope=who, selector=Selector(kind=SelectorKind.EXPIRED))

    def hold(self, who: Scope, item: str | None) -> None:
        """Place a hold on all of a user's data, or on one fact; it is not in force before the next sweep."""
        items = () if item is None else (item,)
        asked = HoldRequest(
            tenant=who.tenant, user=who.user, items=items, reason=HoldReason.LITIGATION, requested_by="tester"
        )
        (placed,) = place(asked, self.five.control.acceptance)
        self.told.holds.append(Hold(id=str(placed), scope=who, item=item))
        self.held_once.update(items)
        self.counted["hold: a record" if items else "hold: a subject"] += 1

    def release(self, hold: Hold) -> None:
        self.ledger.release(hold.id, by_ref="ref")
        self.told.holds.remove(hold)
        self.counted["hold: released"] += hold.in_force

    def forget_held(self, telling: Telling, *, everywhere: bool) -> None:
        """Have a held fact forgotten by hand."""
        self.counted["hold: refuses to forget by hand"] += 1
        who = replace(telling.scope, project=None) if everywhere else telling.scope
        try:
            self.five.memory.store.forget(who, telling.key)
        except RuleRefused:
            return
        message = "P3: what is held is forgotten by hand"
        raise AssertionError(message)

    def has_expired(self) -> bool:
        """Tell whether something is hidden from every reader because its time is over."""
        now, told = self.five.clock.now(), self.told
        return any(t.there and t.expires and t.expires <= now and not told.forgotten_by(t) for t in told.tellings)

    # What writers do

    def readable(self) -> list[Telling]:
        """Give what anybody may read now and make a draft of: not what a job has left, nor what has lost its source."""
        now, told = self.five.clock.now(), self.told
        here = [t for t in told.tellings if t.there and t.active and not (told.forgotten_by(t) or told.left_by(t))]
        here = [t for t in here if not told.has_gone(t.source)]
        return [t for t in here if t.expires is None or t.expires > now]

    def read(self, kind: type[Writer], telling: Telling) -> Writer:
        """Let a writer read what is served now, and hold it."""
        revision = self.five.memory.store.revision_for_answers(telling.scope)
        name, now = f"{telling.scope.user}/late-{self.next()}", self.five.clock.now()
        writer = kind(five=self.five, telling=telling, read_at=now, revision=revision, name=name)
        writer.begin()
        return writer

    # What processes and the clock do

    def due(self) -> Sequence[tuple[str, Phase]]:
        return self.ledger.due(list(STORES))

    def batch(self, adapter: str, phase: Phase, die_at: CrashPoint | None = None) -> int:
        """Run one batch; give how many units were claimed, 0 where the process has died."""
        self.die_at = die_at
        try:
            return running.run_batch(self.five.engine, adapter, phase)
        except Died:
            self.counted["batch: died"] += 1
            return 0
        finally:
            self.die_at = None

    def pass_time(self, time: timedelta) -> None:
        self.five.clock.at += time
        self.ledger.sweep()

    def take(self, policy: Policy) -> None:
        self.five.clock.at += timedelta(seconds=1)
        until = self.five.clock.now() + DAY if policy is Policy.WINDOW else None
        self.counted[f"take: {policy.value}"] += 1
        copy = self.five.backup.take(policy, until)
        self.snapshots[copy.handle] = self.told.snapshot()

    def windows(self) -> list[Path]:
        """Name the files that go as a whole when their time has come."""
        files = [copy.file for copy, _ in self.five.backup.copies().copies if copy.policy is Policy.WINDOW]
        return [path for path in self.look.copies() if path.name in files]

    def lapse(self) -> None:
        """Let the time of every copy with a window pass; whoever keeps the copies takes those files away."""
        self.pass_time(DAY + timedelta(seconds=1))
        for path in self.windows():
            self.counted["windows lapse"] += 1
            path.unlink()
            for hold in self.told.holds:
                hold.kept = {piece for piece in hold.kept if piece[0] != path.stem}

    def restore(self, file: Path, *, by_hand: bool) -> None:
        """Put the source back to a copy: by the command's own means, or by hand and then up to date in its place."""
        self.counted["restore: by hand" if by_hand else "restore: a copy"] += 1
        self.counted.update(f"restore: a job is {state}" for state in set(self.states().values()))
        copy: Path | None = file
        self._expect_of(file.stem)
        if by_hand:
            with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(self.folder / "memory.db")) as live:
                live.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
                source.backup(live)
            copy = None
        begun = {job for job, state in self.states().items() if state != JobState.REQUESTED}
        ledger = self.ledger
        begin, targets = partial(ledger.raise_epoch, "memory"), ledger.targets_of("memory")
        waiting = self.control(_WAITING)
        self.five.memory.restore(copy, ledger.tombstones(), begin, targets, ledger.kept_by("memory"))
        self.told.restore(self.snapshots[file.stem], begun, waiting)
        left = [t for t in self.told.tellings if t.there and self.told.left_by(t)]
        self.counted["hold: kept through a restore"] += any(h.in_force for t in left for h in self.told.holds_on(t))

    def _expect_of(self, copy: str) -> None:
        """Note what a hold keeps in a source that is put back: what the copy has too, unless it was revoked already."""
        there, told = self.look.pieces(), self.told
        revoked = {telling.token for telling in told.tellings if told.forgotten_by(telling)}
        for hold in told.holds:
            back = {p for p in hold.kept if (copy, *p[1:]) in there and p[2] not in revoked}
            hold.kept = {p for p in hold.kept if p[0] not in SOURCE or p in back}

    def in_force(self) -> set[str]:
        """Name the holds that are told to be in force."""
        return {hold for (hold,) in self.control(_IN_FORCE)}

    def open_windows(self) -> list[tuple[str, str]]:
        """Give job and copy of each window that is told as open."""
        return self.control("SELECT job_id, copy_handle FROM retention_windows WHERE closed_at_us IS NULL")

    def states(self) -> dict[str, str]:
        return dict(self.control("SELECT id, state FROM deletion_jobs"))

    def control(self, query: str) -> list[Any]:
        with self.five.control.database.connect() as connection:
            return [tuple(row) for row in connection.execute(sa.text(query))]
