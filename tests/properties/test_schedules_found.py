"""Schedules that once broke a property of five stores, each by itself."""

from __future__ import annotations

import math
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from functools import partial

from adapters.backup import Copy
from adapters.memory.chains import TaskScope
from adapters.vector import Point
from orchestrator import MAX_PAGE, Scope, Selector, SelectorKind, Target
from orchestrator.domain.codes import HoldReason
from orchestrator.domain.job import Result
from orchestrator.domain.states import JobState
from orchestrator.domain.unit import Phase
from orchestrator.service.expire import look
from orchestrator.service.hold import HoldRequest, place
from orchestrator.service.run_batch import answers_of, run_batch, verb
from tests.integration.five_stores import ANNA, NOW, Five, five

__all__ = ["five"]

OF_SOURCE_2 = Selector(kind=SelectorKind.SOURCE, value="turn-2")


def tell(five: Five, text: str, source: str, expires: float = math.inf, who: Scope = ANNA) -> Target:
    """Let a passport be told, and give the record."""
    five.memory.store.register_source(ANNA, source)
    version = five.memory.store.put(who, "passport", text, source, expires, user_statement=True)
    (fact,) = five.memory.store.current(who)
    return Target(kind="fact", id=fact.id, version=version)


def hold_on(five: Five, record: Target) -> str:
    asked = HoldRequest(
        tenant=ANNA.tenant, user=ANNA.user, items=(record.id,), reason=HoldReason.LITIGATION, requested_by="tester"
    )
    (hold,) = place(asked, five.control.acceptance)
    five.control.ledger.sweep()
    return str(hold)


def put_back(five: Five, copy: Copy) -> None:
    ledger = five.control.ledger
    file = five.control.settings.state_dir / "backups" / copy.file
    begin, targets = partial(ledger.raise_epoch, "memory"), ledger.targets_of("memory")
    five.memory.restore(file, ledger.tombstones(), begin, targets, ledger.kept_by("memory"))


def known(five: Five) -> list[str]:
    return [fact.value for fact in five.memory.store.current(ANNA)]


def ended(five: Five, job: str) -> bool:
    five.run()
    view = five.view(job)
    return (view.state, view.result) == (JobState.COMPLETED, Result.ERASED)


def test_version_that_was_forgotten_is_not_given_again_by_a_source_that_is_put_back(five: Five) -> None:
    """The indexer has read version 2; in the copy there is version 1 alone, so the next one would be the second."""
    tell(five, "P000001", "turn-1")
    copy = five.backup.take()
    forgotten = tell(five, "P000002", "turn-2")
    assert ended(five, five.request(OF_SOURCE_2))
    put_back(five, copy)
    assert tell(five, "P000003", "turn-3").version > forgotten.version
    late = Point(made_from=forgotten, source="turn-2", vector=[1.0, 2.0, 0.0, 0.5])
    assert five.index.put(ANNA, [late]).refused == 1


def test_job_that_goes_on_over_a_restore_takes_no_later_version_for_its_own(five: Five) -> None:
    tell(five, "P000001", "turn-1")
    copy = five.backup.take()
    tell(five, "P000002", "turn-2")
    job = five.request(OF_SOURCE_2)
    assert run_batch(five.engine, "memory", Phase.REVOKE) == 1
    put_back(five, copy)
    tell(five, "P000003", "turn-3")
    five.run()
    assert five.view(job).state is JobState.COMPLETED
    assert known(five) == ["P000003"]


def test_person_who_returns_after_a_restore_keeps_what_is_told_while_the_job_goes_on(five: Five) -> None:
    """The source that was put back had lost up to where the job reaches, so all that was told since was named."""
    tell(five, "P000001", "turn-1")
    copy = five.backup.take()
    job = five.request(Selector(kind=SelectorKind.SUBJECT))
    assert run_batch(five.engine, "memory", Phase.REVOKE) == 1
    put_back(five, copy)
    tell(five, "P000002", "turn-2")
    five.run()
    assert five.view(job).state is JobState.COMPLETED
    assert known(five) == ["P000002"]


def test_version_from_a_source_that_nobody_asked_to_forget_comes_back(five: Five) -> None:
    tell(five, "P000001", "turn-1")
    tell(five, "P000002", "turn-2")
    tell(five, "P000003", "turn-3")
    copy = five.backup.take()
    keep = five.control.settings.state_dir / "kept.db"
    keep.write_bytes((keep.parent / "backups" / copy.file).read_bytes())
    assert ended(five, five.request(OF_SOURCE_2))
    assert known(five) == ["P000003"]
    ledger = five.control.ledger
    five.memory.restore(keep, ledger.tombstones(), partial(ledger.raise_epoch, "memory"), ledger.targets_of("memory"))
    assert known(five) == ["P000003"]
    assert five.rows("SELECT value FROM facts ORDER BY version") == [("P000001",), ("P000003",)]


def test_expiry_job_ends_although_the_source_is_put_back_meanwhile(five: Five) -> None:
    """The copies are looked through for records that the source has written down: they are brought over."""
    tell(five, "P000001", "turn-1", (NOW + timedelta(minutes=1)).timestamp())
    copy = five.backup.take()
    five.clock.at += timedelta(minutes=2)
    (job,) = look(five.memory, five.control.acceptance)
    assert run_batch(five.engine, "memory", Phase.REVOKE) == 1
    put_back(five, copy)
    assert ended(five, str(job))


def test_held_fact_is_in_a_copy_that_was_taken_before_the_answer_of_its_source_was_kept(five: Five) -> None:
    """The marks of the job lie in the copy, and the control database knows nothing of what the job has left."""
    held = tell(five, "P000001", "turn-1")
    hold = hold_on(five, held)
    job, ledger = five.request(Selector(kind=SelectorKind.SUBJECT)), five.control.ledger
    claimed = ledger.load("worker", ledger.claim("memory", Phase.REVOKE, owner="worker", limit=1))
    answers = answers_of(
        five.engine, lambda: verb(five.memory, Phase.REVOKE)([unit.order for unit in claimed]), claimed
    )
    put_back(five, five.backup.take())
    assert known(five) == ["P000001"]
    dropped = ledger.commit("worker", answers, started_at=five.clock.now()).dropped
    assert len(dropped) == 1, "an answer from before the restore"
    with five.control.database.begin() as connection:
        connection.exec_driver_sql("UPDATE deletion_units SET lease_until_us = 0 WHERE status = 'running'")
    five.run()
    assert known(five) == ["P000001"]
    ledger.release(hold, by_ref="ref")
    assert ended(five, job)
    assert known(five) == []


def test_held_fact_outlives_a_restore_between_two_pages_of_what_its_source_has_revoked(five: Five) -> None:
    """The first page has told the marks of the job: what it has left is known with them."""
    held = tell(five, "P000001", "turn-1")
    for n in range(MAX_PAGE + 1):
        five.memory.store.put(ANNA, f"key-{n}", "aisle", "turn-1")
    hold, copy = hold_on(five, held), five.backup.take()
    job = five.request(Selector(kind=SelectorKind.SUBJECT))
    assert run_batch(five.engine, "memory", Phase.REVOKE) == 1
    assert five.view(job).state is JobState.REQUESTED, "a page is to come"
    put_back(five, copy)
    assert known(five) == ["P000001"]
    five.run()
    assert known(five) == ["P000001"]
    five.control.ledger.release(hold, by_ref="ref")
    assert ended(five, job)
    assert five.rows("SELECT value FROM facts") == []


def test_copy_that_knows_an_earlier_reach_of_a_job_loses_what_the_source_has_revoked_later(five: Five) -> None:
    """The source was put back before the job had an answer: it revokes anew, and reaches further than the copy says."""
    tell(five, "P000001", "turn-1")
    before = five.backup.take()
    job, ledger = five.request(Selector(kind=SelectorKind.SUBJECT)), five.control.ledger
    claimed = ledger.load("worker", ledger.claim("memory", Phase.REVOKE, owner="worker", limit=1))
    five.memory.revoke([unit.order for unit in claimed])
    tell(five, "P000002", "turn-2")
    five.clock.at += timedelta(seconds=1)
    between = five.backup.take()
    put_back(five, before)
    with five.control.database.begin() as connection:
        connection.exec_driver_sql("UPDATE deletion_units SET lease_until_us = 0 WHERE status = 'running'")
    ledger.sweep()
    run_batch(five.engine, "memory", Phase.REVOKE)
    again = [replace(unit.order, targets=(), held=frozenset()) for unit in claimed]
    assert [seen.remaining for seen in five.backup.verify(again)] == [2]
    assert [{target.id for target in found.targets} for found in five.backup.find(again)] == [
        {before.handle, between.handle}
    ]
    assert ended(five, job)
    file = five.control.settings.state_dir / "backups" / between.file
    with closing(sqlite3.connect(file)) as copy:
        assert copy.execute("SELECT value FROM facts").fetchall() == []


def test_memory_that_was_forgotten_gives_its_id_to_no_other(five: Five) -> None:
    task, chains = TaskScope("anna", "trips", "acme"), five.memory.chains
    five.memory.store.register_source(ANNA, "turn-1")
    chains.remember(task, "task", "The passport is P000001.", "turn-1")
    copy = five.backup.take()
    five.memory.store.register_source(ANNA, "turn-2")
    forgotten = chains.remember(task, "task", "The passport is P000002.", "turn-2")
    assert ended(five, five.request(OF_SOURCE_2))
    put_back(five, copy)
    five.memory.store.register_source(ANNA, "turn-3")
    assert chains.remember(task, "task", "The passport is P000003.", "turn-3") > forgotten


def test_fill_of_a_project_that_has_no_answer_of_the_source_yet_is_refused(five: Five) -> None:
    at_work = replace(ANNA, project="work")
    read = tell(five, "P000002", "turn-2", who=at_work)
    revision = five.memory.store.revision(at_work)
    assert ended(five, five.request(OF_SOURCE_2))
    assert not five.cache.answers.put(at_work, "Which passport?", "P000002", [read], revision)
    anew = tell(five, "P000003", "turn-3", who=at_work)
    revision = five.memory.store.revision_for_answers(at_work)
    assert five.cache.answers.put(at_work, "Which passport?", "P000003", [anew], revision), (
        "what is read after it is kept"
    )
