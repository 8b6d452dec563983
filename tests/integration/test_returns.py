"""A person who was forgotten comes back: what is new is taken by every store, and nothing of before comes with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from adapters.backup.manifest import Policy
from adapters.drafts import MemoryChanged
from adapters.memory import SourceKind
from adapters.memory.chains import TaskScope
from orchestrator import EraseOrder, GateRefused, Reason, Refusal, Scope, Selector, SelectorKind, Target
from orchestrator.domain.job import Result
from orchestrator.domain.states import JobState
from orchestrator.service.accept import Request, accept
from orchestrator.service.expire import look
from tests.integration.five_stores import ANNA, BERTA, SECRET, TURN_6, Five
from tests.integration.write_paths_harness import answers_url, five

__all__ = ["answers_url", "five"]

SUBJECT = Selector(kind=SelectorKind.SUBJECT)
TASK = TaskScope(ANNA.user, "trips", ANNA.tenant)
OLD, NEW, AGAIN = f"anna/{TURN_6}", "anna/turn-31", "anna/turn-32"
ERASED = (JobState.COMPLETED, Result.ERASED)
EVERYWHERE = replace(ANNA, project=None)
ALL = ["memory", "vector", "cache", "drafts"]


def forget(five: Five, scope: Scope) -> str:
    """Let a job forget the person, in one project or in all of them."""
    asked = Request(scope=scope, selector=SUBJECT, reason=Reason.USER_REQUEST, requested_by="tester")
    job = str(accept(asked, five.control.acceptance)[0])
    five.run()
    assert (five.view(job).state, five.view(job).result) == ERASED
    return job


def come_back(five: Five, source: str) -> Target:
    """Let the person tell the same once more, by a new message, and let each store have a copy again."""
    store = five.memory.store
    store.register_source(ANNA, source)
    version = store.put(ANNA, "passport", SECRET, source, user_statement=True)
    five.memory.chains.remember(TASK, "task", SECRET, source)
    (fact,) = store.current(ANNA)
    made_from = Target(kind="fact", id=fact.id, version=version)
    assert five.enter(ANNA, made_from, source) == 0
    assert five.fill(ANNA, made_from)
    five.drafts.runtime.submit(ANNA, f"report of {source}")
    five.drafts.runtime.run(ANNA, f"report of {source}")
    return made_from


def recalled(five: Five) -> list[str]:
    return [memory.text for memory in five.memory.chains.recall(TASK, "passport number")]


def tombstones(five: Five) -> tuple[list[Any], list[Any]]:
    """Give the tombstones of the source, and those of the control database."""
    with five.control.database.begin() as connection:
        kept = connection.exec_driver_sql("SELECT * FROM tombstones ORDER BY kind, mac").all()
    return list(five.rows("SELECT * FROM source_tombstones ORDER BY kind, mac")), list(kept)


@pytest.mark.case(28)
@pytest.mark.case(29)
@pytest.mark.parametrize("scope", [ANNA, EVERYWHERE], ids=["one project", "all projects"])
def test_who_comes_back_is_welcome_in_every_store_and_nothing_of_before_comes_along(five: Five, scope: Scope) -> None:
    old = five.learn(ANNA)
    five.learn(BERTA)
    five.memory.chains.remember(TASK, "task", SECRET, OLD)
    revision = five.memory.store.revision(ANNA)
    five.drafts.runtime.submit(ANNA, "begun before")
    forget(five, scope)
    assert five.readable(ANNA) == []
    assert recalled(five) == []
    new = come_back(five, NEW)
    assert five.readable(ANNA) == ALL
    assert recalled(five) == [SECRET]
    assert new.id != old.id
    assert new.version > old.version, "no version is used twice"
    # Whoever began before the cut-off is refused still.
    five.clock.at += timedelta(minutes=1)
    store, chains = five.memory.store, five.memory.chains
    (memory,) = [memory.id for memory in chains.recall(TASK, "passport number")]
    writes: list[Callable[[], object]] = [
        lambda: store.register_source(ANNA, OLD),
        lambda: store.register_source(ANNA, "anna/summary-9", kind=SourceKind.MODEL, derived_from=[OLD]),
        lambda: store.put(ANNA, "passport", SECRET, OLD, user_statement=True),
        lambda: chains.remember(TASK, "user", SECRET, OLD),
        lambda: chains.correct(TASK, memory, SECRET, OLD),
    ]
    for write in writes:
        with pytest.raises(GateRefused) as caught:
            write()
        assert caught.value.refusal is Refusal.SOURCE_TOMBSTONED
    assert five.enter(ANNA, old, OLD) == 1
    assert not five.fill(ANNA, old, revision)
    with pytest.raises(MemoryChanged):
        five.drafts.runtime.run(ANNA, "begun before")
    assert five.readable(ANNA) == ALL
    assert five.readable(BERTA) == ALL


@pytest.mark.case(28)
def test_late_repeat_of_the_old_job_reaches_nothing_of_who_came_back_and_a_new_request_all(five: Five) -> None:
    five.learn(ANNA)
    job = forget(five, ANNA)
    made_from = come_back(five, NEW)
    copy = five.backup.take(Policy.REWRITE, None)
    deadline = five.clock.now() + timedelta(minutes=1)
    order = EraseOrder(job=UUID(job), unit=UUID(job), key="late", scope=ANNA, selector=SUBJECT, deadline=deadline)
    (answer,) = five.memory.revoke([order])
    assert made_from.id not in {target.id for target in answer.targets}
    late = replace(order, known=answer.targets, revision=answer.revision)
    for adapter in (five.memory, five.vector, five.drafts):
        assert [found.targets for found in adapter.find([late])] == [()], adapter.name
        assert adapter.verify([late])[0].remaining == 0, adapter.name
    assert five.readable(ANNA) == ALL
    forget(five, ANNA)
    assert five.readable(ANNA) == []
    assert recalled(five) == []
    assert SECRET.encode() not in (five.control.settings.state_dir / "backups" / copy.file).read_bytes()
    with pytest.raises(GateRefused):
        five.memory.store.put(ANNA, "passport", SECRET, NEW, user_statement=True)
    come_back(five, AGAIN)
    assert five.readable(ANNA) == ALL


@pytest.mark.case(132)
def test_no_tombstone_ends_by_itself_and_none_stands_in_the_way_of_a_name(five: Five) -> None:
    five.learn(ANNA)
    five.learn(BERTA)
    expires = (five.clock.now() + timedelta(days=1)).timestamp()
    five.memory.store.put(BERTA, "seat", "aisle", f"berta/{TURN_6}", expires=expires)
    forget(five, ANNA)
    of_source, of_control = tombstones(five)
    assert len(of_source) == len(of_control) > 0
    # All that the clock brings about: what has expired goes, leases end, files are written anew.
    five.clock.at += timedelta(days=365 * 100)
    (expiry,) = look(five.memory, five.control.acceptance)
    five.run()
    assert five.view(str(expiry)).state is JobState.COMPLETED
    five.control.scrub()
    five.memory.scrub()
    for before, after in zip((of_source, of_control), tombstones(five), strict=True):
        assert set(before) < set(after), "those that are there stay, and new ones are added"
    with pytest.raises(GateRefused):
        five.memory.store.put(ANNA, "passport", SECRET, OLD, user_statement=True)
    come_back(five, NEW)
    assert five.readable(ANNA) == ALL
