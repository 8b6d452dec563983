"""One schedule over five stores: what its steps are, how often each is drawn, and what must hold after each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final, TypeAlias

from adapters.backup import Policy
from orchestrator import Scope, Selector, SelectorKind
from orchestrator.domain.codes import CrashPoint
from orchestrator.service import run_batch as running
from tests.integration.five_stores import STORES
from tests.properties import oracle
from tests.properties.ending import finish
from tests.properties.told import Source
from tests.properties.world import ENDED, PEOPLE, Worker, World
from tests.properties.writers import KINDS, QUIET, Stray, Writer

SECOND: Final = timedelta(seconds=1)
STEPS: Final = {
    "tell": 4,
    "ask": 2,
    "go_on": 8,
    "work": 9,
    "crash": 2,
    "batch": 3,
    "drain": 3,
    "work_off": 2,
    "pass_time": 2,
    "lapse": 2,
    "take": 3,
    "restore": 3,
    "read": 2,
    "write": 7,
    "hold": 4,
    "release": 2,
    "forget": 1,
}
"""Each step by the name of its method, and how often it is drawn."""
CHOICES: Final = 12
"""A step is given two numbers below this one, and chooses by them."""
Step: TypeAlias = tuple[str, int, int]
_KEYS: Final = ("passport", "seat")
_MINUTES: Final = (None, None, 1, 5)
_ASKED: Final = (SelectorKind.KEY, SelectorKind.SOURCE, SelectorKind.SUBJECT)
_SECONDS: Final = (1, 20, 20, 150)
_CRASHES: Final = (
    None,
    CrashPoint.AFTER_CLAIM,
    CrashPoint.AFTER_ORDERS,
    CrashPoint.AFTER_EFFECT,
    CrashPoint.BEFORE_COMMIT,
    CrashPoint.AFTER_COMMIT,
)
_MOST: Final = 10
"""Tellings, jobs and writers of one schedule: the looks cost what there is to look at."""


class Schedule:
    def __init__(self, world: World) -> None:
        self.world, self.workers = world, [Worker(), Worker()]

    def run(self, first: tuple[int, int, int], steps: Sequence[Step]) -> None:
        """Begin with a world in which something is at stake, take the steps, and let everything come to its end."""
        self._begin(*first)
        self.look()
        for name, n, m in steps:
            getattr(self, name)(n, m)
            self.look()
        finish(self)

    def look(self) -> None:
        """Look at what lies in the stores, and at what readers get from them."""
        self._look_inside()
        oracle.neighbours_are_kept(self.world, oracle.nothing_is_served(self.world))

    def _look_inside(self) -> None:
        oracle.notice(self.world)
        pieces = self.world.look.pieces()
        oracle.holds_keep(self.world, pieces)
        oracle.nothing_is_left(self.world, pieces)

    def _begin(self, policies: int, n: int, m: int) -> None:
        """Everybody tells something, writers hold some of it, often a hold stands, and somebody asks for it to go."""
        for who in PEOPLE:
            self._learn(who, "passport", None, None)
        self._learn(PEOPLE[2], "seat", None, 5)
        for bit, policy in enumerate(Policy):
            if policies >> bit & 1:
                self.world.take(policy)
        for kind in range(len(KINDS)):
            self.read(n, kind)
        if n % 3 == 0:
            self.hold(n, 1)
        self.ask(n, m)

    # What people do

    def tell(self, n: int, m: int) -> None:
        """Let a fact be told in a new message, found in one that is there, or made from another one."""
        told, who, key = self.world.told, PEOPLE[n % len(PEOPLE)], _KEYS[m % 2]
        if len(told.tellings) >= _MOST:
            return
        old = [s for s in told.sources if s.there and replace(s.scope, project=who.project) == who]
        readable = self.world.readable()
        how, source = ("anew", "again", "derived")[m % 3], None
        if how == "again" and old:
            source = old[n % len(old)]
        elif how == "derived" and readable:
            behind = readable[n % len(readable)]
            who, key = behind.scope, "notes"
            source = self.world.message(who, f"{who.user}/notes-{self.world.next()}", [behind.source])
        self.world.counted[f"tell: {how if source else 'anew'}"] += 1
        self._learn(who, key, source, _MINUTES[m % 4])

    def _learn(self, who: Scope, key: str, source: Source | None, minutes: int | None) -> None:
        """Let a fact be told, and each store have a copy of it."""
        telling = self.world.tell(who, key, source, minutes)
        if telling is not None:
            self.world.copy(telling)

    def ask(self, n: int, m: int) -> None:
        """Ask for what belongs to a telling to go, or look for what has expired."""
        if len(self.world.told.jobs) >= _MOST // 2:
            return
        if self.world.has_expired() and n % 2:
            self.world.look_for_expired()
            return
        telling, kind = self.world.told.tellings[n % len(self.world.told.tellings)], _ASKED[m % 3]
        value = {SelectorKind.KEY: telling.key, SelectorKind.SOURCE: telling.source.name}.get(kind)
        scope = telling.scope if m % 2 else Scope(tenant=telling.scope.tenant, user=telling.scope.user)
        self.world.ask(scope, Selector(kind=kind, value=value))

    def hold(self, n: int, m: int) -> None:
        """Place a hold on all that somebody has told, or on one fact; often nothing runs that it would wait for."""
        tellings, holds = self.world.told.tellings, self.world.told.holds
        if len(holds) >= _MOST // 3:
            return
        telling = tellings[n % len(tellings)]
        self.world.hold(telling.scope, telling.record.id if m % 4 else None)
        if m % 3:
            self.world.pass_time(timedelta(0))

    def release(self, n: int, _m: int) -> None:
        """Release a hold."""
        if holds := self.world.told.holds:
            self.world.release(holds[n % len(holds)])

    def forget(self, n: int, m: int) -> None:
        """Have something that is held forgotten by hand."""
        told = self.world.told
        here = [t for t in told.tellings if t.there and t.active and not told.forgotten_by(t) and told.holds_on(t)]
        if here:
            self.world.forget_held(here[n % len(here)], everywhere=bool(m % 2))

    # What processes do

    def work(self, n: int, m: int) -> None:
        """Let a worker take its next step: it claims, it calls, it commits."""
        worker, world = self.workers[min(n % 3, 1)], self.world
        if worker.answers:
            world.counted["work: commits"] += 1
            done = world.ledger.commit(worker.owner, worker.answers, started_at=world.five.clock.now())
            world.counted["work: an answer is dropped"] += len(done.dropped)
            self._die(worker)
        elif worker.units:
            world.counted["work: calls"] += 1
            store, orders = world.five.engine.adapters[worker.adapter], [unit.order for unit in worker.units]
            worker.answers = running.answers_of(
                world.five.engine, lambda: running.verb(store, worker.phase)(orders), worker.units
            )
        elif due := world.due():
            world.counted["work: claims"] += 1
            worker.adapter, worker.phase = due[m % len(due)]
            worker.owner = f"worker-{world.next()}"
            ids = world.ledger.claim(worker.adapter, worker.phase, owner=worker.owner, limit=3)
            worker.units = world.ledger.load(worker.owner, ids)

    def crash(self, n: int, _m: int) -> None:
        """Let a worker die between two of its steps."""
        self.world.counted["crash"] += bool(self.workers[n % 2].units)
        self._die(self.workers[n % 2])

    def batch(self, n: int, m: int) -> None:
        """Let a worker run a batch, and perhaps die at a named point of it."""
        if due := self.world.due():
            self.world.counted["batch"] += 1
            self.world.batch(*due[n % len(due)], _CRASHES[m % len(_CRASHES)])

    def go_on(self, _n: int, _m: int) -> None:
        """Let every store do what is due in it: most often one phase of each job."""
        for each in self.world.due():
            self.world.counted["go on"] += 1
            self.world.batch(*each)

    def drain(self, n: int, _m: int) -> None:
        """Work off all that is due in one store."""
        store = STORES[n % len(STORES)]
        while due := [each for each in self.world.due() if each[0] == store]:
            self.world.counted["drain"] += 1
            if not self.world.batch(*due[0]):
                break
            self._look_inside()

    def work_off(self, _n: int, m: int) -> None:
        """Work off all that is due, and all that waits for quiet time; or let writers come that have until then."""
        self.world.counted["work off"] += 1
        self.work_off_all(QUIET + SECOND if m % 2 else SECOND)
        for writer in self._urgent():
            self._let_write(writer)

    def work_off_all(self, pause: timedelta) -> int:
        """Work off all that is due, twice, and pass some time after each; give how many units were claimed."""
        claimed = 0
        for _ in range(2):
            while due := self.world.due():
                some = sum(self.world.batch(*each) for each in due)
                self._look_inside()
                claimed += some
                if not some:
                    break
            self.world.pass_time(pause)
            if not all(hold.in_force for hold in self.world.told.holds):
                self._look_inside()  # what is in force from now on is to be seen before anything else happens
        return claimed

    # What time does

    def pass_time(self, _n: int, m: int) -> None:
        self.world.counted["time passes"] += 1
        self.world.pass_time(_SECONDS[m % len(_SECONDS)] * SECOND)

    def lapse(self, _n: int, _m: int) -> None:
        """Let the windows of all copies end."""
        if self.world.windows():
            self.world.lapse()

    # What happens to the source

    def take(self, n: int, _m: int) -> None:
        """Take a copy."""
        if len(self.world.look.copies()) < _MOST // 2:
            self.world.take(list(Policy)[n % 2])

    def restore(self, n: int, m: int) -> None:
        """Put the source back to a copy."""
        if copies := self.world.look.copies():
            self.world.restore(copies[n % len(copies)], by_hand=bool(m % 2))

    # What late writers do

    def read(self, n: int, m: int) -> None:
        """Let a writer read something, and hold it."""
        readable = self.world.readable()
        if readable and len(self.world.writers) < 2 * _MOST:
            kind = KINDS[m % len(KINDS)]
            self.world.counted[f"read: {kind.__name__.lower()}"] += 1
            self.world.writers.append(self.world.read(kind, readable[n % len(readable)]))

    def write(self, n: int, m: int) -> None:
        """Let a writer store what it holds: often one of those that have no time to lose."""
        urgent = self._urgent()
        writers = urgent if urgent and m % 3 else self.world.writers
        if writers:
            self._let_write(writers[n % len(writers)])

    def _urgent(self) -> list[Writer]:
        return [writer for writer in self.world.writers if isinstance(writer, Stray) and writer.is_promised([])]

    def _let_write(self, writer: Writer) -> None:
        self.world.writers.remove(writer)
        self.write_late(writer)

    def write_late(self, writer: Writer) -> None:
        """Let a writer store what it holds, if anything is promised of that."""
        world, kind = self.world, type(writer).__name__.lower()
        jobs = world.told.refused_by(writer.telling)
        if not writer.is_promised(jobs):
            world.counted[f"write: {kind}: of which nothing is promised"] += 1
            writer.end()
            return
        outcome, states = writer.write(), world.states()
        verified = any(states[job.id] in ENDED for job in jobs)
        when = "after verified" if verified else "after revoke" if jobs else "in time"
        world.counted[f"write: {kind}: {outcome} {when}"] += 1

    # The end

    def stop(self) -> None:
        """Let both workers die, as the last that crash."""
        for worker in self.workers:
            self._die(worker)

    @staticmethod
    def _die(worker: Worker) -> None:
        worker.units, worker.answers = (), ()
