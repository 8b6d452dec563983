"""What must hold of five stores at any time: looked at from outside, between two steps, never inside of a call."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from orchestrator import Scope, SelectorKind
from orchestrator.domain.states import JobState
from tests.properties.looking import Piece
from tests.properties.told import Job, Telling
from tests.properties.world import ENDED, PEOPLE, World


def notice(world: World) -> None:
    """Note for which jobs the source has revoked in this step, which is over now, and what a hold has let it leave."""
    there, left, now = world.look.revoked(), defaultdict[str, set[str]](set), world.five.clock.now()
    for of, item in world.look.left():
        left[of].add(item)
    for job in world.told.jobs.values():
        leaves = frozenset(left[job.id])
        if job.revoked_at is None and job.id in there:
            world.told.revoke(job, world.lay, leaves, now)
            assert leaves <= world.held_once, "a fact is left that no hold has covered"
            world.counted["revoked: several" if len(job.taken) > 1 else "revoked: one or none"] += 1
            world.counted["hold: a job leaves"] += bool(leaves)
        elif job.left - leaves:
            world.told.free(job, leaves, world.lay, now)
            world.counted["hold: a job takes what is free"] += 1
    world.told.step += 1
    world.lay = world.look.records()


def holds_keep(world: World, pieces: Collection[Piece]) -> None:
    """P3: what a hold in force covers stays where it is, and so does whatever was made from it."""
    in_force = world.in_force() if world.told.holds else set()
    for hold in world.told.holds:
        tokens = {telling.token for telling in world.told.tellings if hold.covers(telling)}
        lie = {piece for piece in pieces if piece[2] in tokens}
        lost = sorted(hold.kept - lie)
        assert not lost, f"P3: {lost} is gone under a hold on {hold.item or 'a subject'}"
        if hold.id in in_force:
            world.counted["hold: in force"] += not hold.in_force
            hold.in_force, hold.kept = True, lie


def nothing_is_left(world: World, pieces: Collection[Piece]) -> None:
    """P1 and P2: of what a verified job has forgotten, nothing lies in any store but in copies that it names."""
    lies, states, told = defaultdict[str, set[str]](set), world.states(), world.open_windows()
    for place, _, token in pieces:
        lies[place].add(token)
    for job in world.told.jobs.values():
        if states[job.id] not in ENDED:
            continue
        assert not job.left, f"P1: job {job.selector} is {states[job.id]} and has left something"
        windows = {copy for of, copy in told if of == job.id}
        if windows:
            world.counted["verified with a window"] += 1
        assert not windows or states[job.id] == JobState.VERIFIED, "completed with an open window"
        for telling in world.told.tellings:
            left = {store for store, tokens in lies.items() if telling.token in tokens} - windows
            left = {store for store in left if _has_to_go(job, telling, store)}
            assert not left, (
                f"P1, P2: {telling.token} lies in {sorted(left)}, and job {job.selector} is {states[job.id]}"
            )


def _has_to_go(job: Job, telling: Telling, store: str) -> bool:
    """Tell whether a job answers for a telling in a store.

    What a restore has taken out of the source was never named to the stores that stay as they are, nor to who writes
    drafts by himself afterwards: only who takes a whole subject finds it there.
    """
    apart = {"vector", "cache", "drafts"} if telling.strayed else {"vector", "cache"}
    named = store not in apart or job.selector.kind is SelectorKind.SUBJECT
    return telling in job.taken or (named and job.covers(telling))


def nothing_is_served(world: World) -> dict[Scope, dict[str, set[str]]]:
    """R37 and P7: from the revoke on the source serves nothing of it, nor does anybody when the job is verified."""
    states, told = world.states(), world.told
    given = {who: world.look.served(who, told.tellings) for who in PEOPLE}
    for telling in told.tellings:
        jobs = told.forgotten_by(telling)
        verified = [job for job in jobs if states[job.id] in ENDED]
        for store, tokens in given[telling.scope].items():
            over = jobs if store in {"memory", "vector"} else [j for j in verified if _has_to_go(j, telling, store)]
            assert not over or telling.token not in tokens, f"P2, P7: {telling.token} is served by {store}"
    return given


def neighbours_are_kept(world: World, given: dict[Scope, dict[str, set[str]]]) -> None:
    """What nobody has asked to forget is still readable where it was."""
    now = world.five.clock.now()
    for telling in world.told.tellings:
        over = telling.expires is not None and telling.expires <= now
        if over or not (telling.there and telling.active) or world.told.forgotten_by(telling):
            continue
        got = given[telling.scope]
        assert telling.token in got["memory"], f"{telling.token} is lost from the source"
        where = {"vector": telling.indexed, "cache": telling.cached, "drafts": telling.reported is not None}
        for store, was_there in where.items():
            excused = _may_go(world, telling, store)
            assert excused or not was_there or telling.token in got[store], f"{telling.token} is lost from {store}"
            world.counted[f"kept in {store}"] += was_there and not excused


def _may_go(world: World, telling: Telling, store: str) -> bool:
    """Tell whether a copy of somebody who has returned since a job of the whole subject may be gone with it.

    A job that takes later what a hold has made it leave raises the revision once more, above that of new points.
    """
    if store == "drafts":
        return False
    jobs = [job for job in world.told.jobs.values() if job.selector.kind is SelectorKind.SUBJECT]
    mine = [job for job in jobs if job.names(telling.scope, telling.key, telling.source)]
    return any(store == "cache" or job.scope.project is None or job.waited for job in mine)
