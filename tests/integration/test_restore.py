"""Putting the source back: what was forgotten since does not come back, and nothing is served before that is sure."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from adapters.memory import MemoryAdapter, epoch
from adapters.memory.replay import RANGE
from orchestrator import (
    GateRefused,
    Scope,
    Selector,
    SelectorKind,
    StaleSource,
)
from orchestrator.domain.codes import CrashPoint
from orchestrator.domain.states import JobState
from orchestrator.service.expire import look
from tests.integration.jobs_harness import ANNA, BERTA, RENEWED, SUBJECT, TEXTS, Died, deployment, scope_of
from tests.integration.restore_harness import ERASED, PASSPORT, Snapshots, recalled, run, snapshots

__all__ = ["deployment", "snapshots"]


@pytest.mark.req("R149")
@pytest.mark.case(125)
@pytest.mark.parametrize("kind", [SelectorKind.SUBJECT, SelectorKind.SOURCE, SelectorKind.MEMORY, SelectorKind.KEY])
def test_backup_from_before_the_erasure_brings_nobody_back_who_was_forgotten(
    snapshots: Snapshots, kind: SelectorKind
) -> None:
    made = snapshots.made
    chain = made.rows("SELECT id FROM memories WHERE user_id = 'anna' ORDER BY id")[0][0]
    values = {SelectorKind.MEMORY: str(chain), SelectorKind.SOURCE: "anna/turn-1", SelectorKind.KEY: "colour"}
    neighbours = made.berta()
    snapshots.take("day-7")
    run(made, Selector(kind=kind, value=values.get(kind)))
    left, facts = made.texts(ANNA), [f.key for f in made.memory.store.current(scope_of(ANNA))]
    replayed = snapshots.put_back("day-7")
    gone = {SelectorKind.SUBJECT: 4, SelectorKind.SOURCE: 4, SelectorKind.MEMORY: 1, SelectorKind.KEY: 1}
    assert replayed.erased == gone[kind]
    assert made.texts(ANNA) == left
    assert [f.key for f in made.memory.store.current(scope_of(ANNA))] == facts
    assert made.berta() == neighbours, "what nobody has forgotten is back as it was"


def test_copy_from_after_the_revoke_leaves_nothing_hidden_behind(snapshots: Snapshots) -> None:
    """What a job had hidden when the copy was taken was erased since: nobody would come back for it."""
    made = snapshots.made
    job = made.file(SUBJECT)
    made.die_once("memory.revoke")
    with pytest.raises(Died):
        made.run()
    snapshots.take("hidden")
    made.take_over()
    made.run()
    assert made.ended(job) == ERASED
    snapshots.put_back("hidden")
    assert made.texts(ANNA) == []
    assert made.rows("SELECT fact_id FROM facts WHERE user_id = 'anna'") == []


def test_what_had_expired_and_was_hidden_in_the_copy_goes_although_no_tombstone_matches_it(
    snapshots: Snapshots,
) -> None:
    """No word of it is distinctive, so the gate would let it in again; the job that hid it has erased it since."""
    made = snapshots.made
    memory = made.memory.chains.remember(ANNA, "task", "To be at it by ten.", "anna/turn-2", 7)
    made.clock.at += timedelta(days=8)
    (job,) = look(made.memory, made.control.acceptance)
    made.die_once("memory.revoke")
    with pytest.raises(Died):
        made.run()
    assert made.rows(f"SELECT revoked FROM memory_tenants WHERE memory_id = {memory}") == [(1,)]  # noqa: S608 - our id
    snapshots.take("hidden")
    made.take_over()
    made.run()
    assert made.ended(str(job)) == ERASED
    snapshots.put_back("hidden")
    assert made.rows(f"SELECT id FROM memories WHERE id = {memory}") == []  # noqa: S608 - as above
    assert set(made.texts(ANNA)) == {*TEXTS.values(), RENEWED}, "nothing else goes"


def test_answer_to_a_call_from_before_the_restore_is_dropped_and_its_job_ends_right(snapshots: Snapshots) -> None:
    """A claim, a copy, the source revokes, the copy is put back: the control database must not believe the revoke."""
    made = snapshots.made
    snapshots.take("before")
    job = made.file(SUBJECT)
    put_back = list[bool]()

    def crash(point: CrashPoint, where: str) -> None:
        if point is CrashPoint.AFTER_EFFECT and where == "memory.revoke" and not put_back:
            put_back.append(True)
            snapshots.put_back("before")

    made.engine = replace(made.engine, crash=crash)
    made.run()
    assert put_back
    assert made.view(job).state is JobState.REQUESTED, "its answer is of another epoch"
    assert PASSPORT in made.texts(ANNA)
    made.take_over()
    made.run()
    assert made.ended(job) == ERASED
    assert made.texts(ANNA) == []


def test_copy_that_is_put_back_by_hand_serves_nothing_until_it_was_brought_up_to_date(
    snapshots: Snapshots, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = snapshots.made
    monkeypatch.setattr(epoch, "FRESH_S", 0)
    snapshots.take("old")
    run(made)
    snapshots.put_back("old")
    snapshots.by_hand("old")
    for call in (
        lambda: recalled(made),
        lambda: made.memory.store.current(scope_of(ANNA)),
        lambda: made.memory.store.register_source(scope_of(ANNA), "turn-9"),
        lambda: made.memory.chains.remember(BERTA, "task", "Another one.", "berta/turn-1"),
        lambda: made.memory.store.put(scope_of(BERTA), "colour", "blue", "berta/turn-1"),
    ):
        with pytest.raises(StaleSource, match="expunge restore"):
            call()
    job = made.file(SUBJECT)
    made.run()
    assert made.view(job).state is JobState.REQUESTED
    assert made.view(job).last_error == "stale_source"
    made.memory.restore(None, made.control.ledger.tombstones(), partial(made.control.ledger.raise_epoch, "memory"))
    assert made.texts(ANNA) == []
    assert [f.key for f in made.memory.store.current(scope_of(BERTA))] == ["colour"]


def test_restore_that_dies_half_way_is_done_by_running_it_again(
    snapshots: Snapshots, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = snapshots.made
    monkeypatch.setattr(epoch, "FRESH_S", 0)
    snapshots.take("copy")
    run(made)

    def die() -> int:
        made.control.ledger.raise_epoch("memory")
        raise Died

    with pytest.raises(Died):
        made.memory.restore(None, made.control.ledger.tombstones(), die)
    with pytest.raises(StaleSource):
        recalled(made)
    snapshots.put_back("copy")
    assert made.texts(ANNA) == []
    assert made.texts(BERTA) != []


def test_numbers_of_a_restored_source_begin_above_all_that_were_given(snapshots: Snapshots) -> None:
    made = snapshots.made
    snapshots.take("copy")
    before = made.memory.store.revision(scope_of(ANNA))
    run(made, Selector(kind=SelectorKind.KEY, value="colour"))
    snapshots.put_back("copy")
    assert made.memory.store.revision(scope_of(ANNA)) >= 2 * RANGE > before
    assert made.memory.store.register_source(scope_of(ANNA), "anna/turn-9") > 2 * RANGE
    with pytest.raises(GateRefused):
        made.memory.store.put(scope_of(ANNA), "colour", "green", "anna/turn-1")
    made.memory.store.put(scope_of(ANNA), "colour", "red", "anna/turn-9", user_statement=True)
    assert [f.version for f in made.memory.store.current(scope_of(ANNA))] == [2], "no version is given twice"


def test_what_was_stated_afresh_before_the_copy_comes_back(snapshots: Snapshots) -> None:
    """A tombstone stands for ever; whoever said it again afterwards has said it."""
    made = snapshots.made
    run(made)
    made.memory.store.register_source(scope_of(ANNA), "anna/turn-9")
    made.memory.store.put(scope_of(ANNA), "colour", "green", "anna/turn-9", user_statement=True)
    made.memory.chains.remember(ANNA, "task", PASSPORT, "anna/turn-9", user_statement=True)
    snapshots.take("copy")
    assert snapshots.put_back("copy").erased == 0
    assert [f.value for f in made.memory.store.current(scope_of(ANNA))] == ["green"]
    assert made.texts(ANNA) == [PASSPORT]


def test_correction_of_a_forgotten_memory_does_not_survive_in_a_copy(snapshots: Snapshots) -> None:
    made = snapshots.made
    snapshots.take("copy")
    chain = made.rows("SELECT id FROM memories WHERE user_id = 'anna' ORDER BY id")[0][0]
    run(made, Selector(kind=SelectorKind.MEMORY, value=str(chain)))
    snapshots.put_back("copy")
    assert not {PASSPORT, RENEWED} & set(made.texts(ANNA))
    assert set(made.texts(ANNA)) == {TEXTS["seat"], TEXTS["meal"]}


def test_process_that_was_open_meanwhile_goes_on_with_what_was_put_back(snapshots: Snapshots) -> None:
    made = snapshots.made
    other = MemoryAdapter(made.memory._context, url=made.memory._url.render_as_string(hide_password=False))
    with closing(other):
        assert other.store.current(scope_of(ANNA))
        snapshots.take("copy")
        run(made)
        snapshots.put_back("copy")
        assert other.store.current(scope_of(ANNA)) == []
        assert other.store.current(scope_of(BERTA))
        with pytest.raises(GateRefused):
            other.store.put(Scope(tenant="acme", user="anna", project="trips"), "colour", "green", "anna/turn-1")
