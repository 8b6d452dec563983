"""How a schedule ends: crashes stop, late writers come, holds are released, and every job comes to its end."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from orchestrator.domain.states import JobState
from tests.properties.world import ENDED, World

if TYPE_CHECKING:
    from tests.properties.schedule import Schedule


def finish(schedule: Schedule) -> None:
    """P4: every job ends, waits for a hold, a window or a person, and ends when those are done with."""
    world = schedule.world
    schedule.stop()
    _settle(schedule)
    world.look_for_expired()
    _settle(schedule)
    held = _held(world)
    world.counted.update(f"in the end: {parked}" for parked in _parked(world))
    while world.writers:
        schedule.write_late(world.writers.pop())
        schedule.look()
    world.lapse()
    schedule.look()
    while world.told.holds:
        world.release(world.told.holds[-1])
    _retry(world)
    _settle(schedule)
    assert _parked(world) == [], "P4: after a retry"
    states = world.states()
    assert set(states.values()) <= {JobState.COMPLETED}, "P4: not ended"
    schedule.look()
    world.counted["in the end: completed"] += len(states)
    world.counted["hold: what waited has ended"] += len(held)


def _held(world: World) -> list[str]:
    """Name the jobs that wait for a hold; nothing else keeps one from being verified that is not parked."""
    states, told = world.states(), world.told
    waiting = [job for job in told.jobs.values() if states[job.id] not in ENDED and not world.five.view(job.id).parked]
    for job in waiting:
        whose = (job.scope.tenant, job.scope.user)
        assert whose in {(hold.scope.tenant, hold.scope.user) for hold in told.holds}, "P4: it waits for nothing"
    return [job.id for job in waiting]


def _settle(schedule: Schedule) -> None:
    while schedule.work_off_all(timedelta(minutes=16)):
        pass


def _retry(world: World) -> None:
    for job in world.told.jobs:
        if world.five.view(job).parked:
            world.ledger.retry(job)


def _parked(world: World) -> list[str]:
    views = [world.five.view(job) for job in world.told.jobs]
    return [f"{' '.join(parked)}, {view.last_error}" for view in views for parked in view.parked]
