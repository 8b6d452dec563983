"""Five stores as they are under random schedules: jobs that overlap, crashes, late writers, copies and restores.

A step is what a person, a writer or a process can do while nobody else does anything, so a
schedule that breaks a property is one that could happen. After each step all stores are looked
at from outside.
"""

from __future__ import annotations

import random
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

import pytest
import redis
import sqlalchemy as sa
import structlog

from tests.fakes import FakeClock
from tests.integration.five_stores import five_in
from tests.properties.schedule import CHOICES, STEPS, Schedule, Step
from tests.properties.world import World
from tests.properties.writers import KINDS, QUIET
from tests.servers import fake_redis

FIRST, EXAMPLES, LENGTH = 1_165, 14, 20
"""The seeds of the test; `make schedules` takes new ones."""
First: TypeAlias = tuple[int, int, int]
NAMES, WEIGHTS = list(STEPS), list(STEPS.values())
OCCURS = (
    *("tell: ", "ask: key", "ask: source", "ask: subject", "ask: expired", "restore: a copy", "restore: by hand"),
    *("work: claims", "work: calls", "work: commits", "crash", "batch", "batch: died", "go on", "drain", "work off"),
    *("time passes", "windows lapse", "take: rewrite", "take: window", "verified with a window"),
    *(f"read: {kind.__name__.lower()}" for kind in KINDS),
    *(f"write: {kind}: refused after verified" for kind in ("indexer", "filler", "extractor", "summary")),
    *("write: resumer: refused after verified", "write: runner: refused after verified"),
    *("write: straypoint: kept", "write: strayanswer: kept", "write: straydraft: kept"),
    *("hold: a subject", "hold: a record", "hold: in force", "hold: a job leaves", "hold: a job takes what is free"),
    *("hold: kept through a restore", "hold: refuses to forget by hand", "hold: released"),
    "hold: what waited has ended",
    *("kept in vector", "kept in cache", "kept in drafts", "in the end: completed"),
)
"""What every run is to come to, by the beginning of its name: what did not occur was not tried."""


@pytest.mark.timeout(3600)
def test_five_stores_keep_their_properties_under_random_schedules(
    quick_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXPUNGE_ENGINE__QUIET_TIME", f"{QUIET.seconds}s")
    monkeypatch.setattr("orchestrator.logs.configure", lambda _: None)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    seen = Counter[str]()
    try:
        with fake_redis() as url:
            for seed in range(FIRST, FIRST + EXAMPLES):
                explore(seed, partial(run, quick_path / "state", url, seen))
    finally:
        sys.stdout.write("".join(f"{times:7} {what}\n" for what, times in sorted(seen.items())))
    occurred = [what for what, times in seen.items() if times]
    assert [what for what in OCCURS if not any(name.startswith(what) for name in occurred)] == []


def explore(seed: int, run: Callable[[First, Sequence[Step]], None]) -> None:
    """Run the schedule of a seed; tell one that breaks a property without the steps that do not matter."""
    chance = random.Random(seed)  # noqa: S311 - a schedule is no secret
    numbers = partial(chance.randrange, CHOICES)
    first = (numbers(), numbers(), numbers())
    steps = [(name, numbers(), numbers()) for name in chance.choices(NAMES, WEIGHTS, k=LENGTH)]
    try:
        run(first, steps)
    except Exception as error:
        for place in reversed(range(len(steps))):
            fewer = steps[:place] + steps[place + 1 :]
            if breaks(run, first, fewer):
                steps = fewer
        message = f"{type(error).__name__}, {error}\nseed {seed}: {first}, then\n" + "\n".join(map(str, steps))
        raise AssertionError(message) from error


def breaks(run: Callable[[First, Sequence[Step]], None], first: First, steps: Sequence[Step]) -> bool:
    """Tell whether a schedule breaks a property, whichever it is."""
    try:
        run(first, steps)
    except Exception:  # noqa: BLE001 - as it says
        return True
    return False


def run(folder: Path, url: str, seen: Counter[str], first: First, steps: Sequence[Step]) -> None:
    """Run a schedule in a new folder; note how often each step and state occurred."""
    shutil.rmtree(folder, ignore_errors=True)
    with five_in(folder, url) as five, redis.Redis.from_url(url) as server:
        server.flushall()
        follow(five.clock, five.control.database)
        world = World(five, server)
        try:
            Schedule(world).run(first, steps)
        finally:
            for writer in world.writers:
                writer.end()
            seen.update(world.counted)


def follow(clock: FakeClock, database: sa.Engine) -> None:
    """Let leases and pauses, which go by the clock of the control database, go by the clock of the test."""

    def connect(connection: sa.engine.interfaces.DBAPIConnection, _record: object) -> None:
        connection.create_function("julianday", 1, lambda _: clock.now().timestamp() / 86_400 + 2_440_587.5)

    database.dispose()
    sa.event.listen(database, "connect", connect)
