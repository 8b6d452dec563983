"""Drafts that deletion jobs reach: those of what is forgotten or of the person, and nothing beside."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adapters.drafts import Fault, MemoryChanged, State, Step
from adapters.drafts.tables import metadata
from orchestrator import (
    Residual,
)
from tests.integration.drafts_harness import (
    ALL,
    EXPIRED,
    FOREIGN,
    LANGUAGE,
    NEIGHBOUR,
    SECRET,
    SUBJECT,
    A,
    B,
    Desk,
    desk,
    lone,
    published,
)

__all__ = ["desk", "lone"]


@pytest.mark.req("R141")
@pytest.mark.req("R48")
def test_draft_of_a_stopped_job_is_gone_after_the_clean_up_and_its_row_says_why(lone: Desk) -> None:
    fact = lone.tell("language", SECRET)
    lone.runtime.submit(A, "report-001")
    lone.die("report-001", Fault.AFTER_DRAFT)
    order = lone.revoke(lone.order(LANGUAGE))
    before = lone.runtime.inspect(A, "report-001")
    assert [SECRET in draft.text for draft in before.drafts] == [True, True]
    targets = lone.find(order)
    assert {(t.kind, t.version, t.derived_of) for t in targets} == {("checkpoint", 0, f"fact:{fact.id}@1")}
    done, seen = lone.clean_up(order)
    assert (done.erased, done.already_absent, seen.remaining) == (2, 0, 0)
    told = lone.runtime.inspect(A, "report-001")
    assert (told.state, told.drafts) == (State.FAILED, ())
    assert told.failure == "memory_changed_or_expired: submit a new job id"
    lone.at(2)
    with pytest.raises(MemoryChanged):
        lone.runtime.run(A, "report-001")
    assert lone.rows("SELECT count(*) FROM drafts") == [(0,)]


def test_whole_of_a_person_goes_in_every_project_or_in_one(desk: Desk) -> None:
    published(desk, A, B, NEIGHBOUR, FOREIGN)
    desk.runtime.submit(A, "of nothing", keys=[])
    desk.runtime.run(A, "of nothing")
    stays = [desk.texts(scope) for scope in (NEIGHBOUR, FOREIGN)]
    in_b = desk.texts(B)
    done, seen = desk.clean_up(desk.revoke(desk.order(SUBJECT, A)))
    assert (done.erased, seen.remaining) == (9, 0)
    assert (desk.texts(A), desk.texts(B)) == ([], in_b)
    done, seen = desk.clean_up(desk.revoke(desk.order(SUBJECT, ALL)))
    assert (done.erased, seen.remaining) == (6, 0)
    assert [desk.texts(scope) for scope in (NEIGHBOUR, FOREIGN)] == stays
    assert len(desk.states()) == 9, "their rows stay"


def test_drafts_of_a_person_who_came_back_are_no_copies(desk: Desk) -> None:
    published(desk, A)
    order = desk.revoke(desk.order(SUBJECT, ALL))
    targets = desk.find(order)
    assert len(targets) == 6
    desk.tell("seat", "window", source="turn-9")
    fresh = desk.publish("report-009")
    assert desk.find(order) == targets
    done, seen = desk.clean_up(order)
    assert (done.erased, seen.remaining) == (6, 0)
    assert desk.texts() == [fresh, fresh, "seat: window"]
    done, seen = desk.clean_up(desk.revoke(desk.order(SUBJECT, ALL)))
    assert (done.erased, seen.remaining) == (3, 0), "they are those of the next request"


def test_what_has_expired_takes_what_was_made_from_it_and_not_the_person(lone: Desk) -> None:
    lone.tell("language", SECRET, expires=100)
    lone.tell("theme", "dark")
    lone.publish("report-001")
    lone.publish("report-002", keys=["theme"])
    lone.runtime.submit(A, "report-003")
    lone.die("report-003", Fault.AFTER_DRAFT)
    lone.at(100)
    order = lone.revoke(lone.order(EXPIRED))
    assert order.revision is None
    done, seen = lone.clean_up(order)
    assert (done.erased, seen.remaining) == (5, 0)
    assert lone.texts() == ["Report\n\ntheme: dark"] * 2 + ["theme: dark"]
    assert lone.states() == [("report-001", "published"), ("report-002", "published"), ("report-003", "failed")]


@pytest.mark.case(69)
def test_what_hangs_on_a_draft_goes_with_it_and_orphans_are_found(lone: Desk) -> None:
    published(lone, A)
    lone.execute("DELETE FROM draft_jobs")
    done, seen = lone.clean_up(lone.revoke(lone.order(SUBJECT)))
    assert (done.erased, seen.remaining) == (6, 0)
    assert lone.rows("SELECT handle FROM draft_used WHERE kind <> 'fact'") == []
    assert lone.rows("SELECT count(*) FROM draft_used") == [(2,)], "what the jobs were to use, by id"
    published(lone, NEIGHBOUR)
    lone.execute("DELETE FROM draft_used")
    (holding,) = lone.drafts.find([lone.order(SUBJECT, NEIGHBOUR)])
    assert len(holding.targets) == 6
    assert {target.derived_of for target in holding.targets} == {None}


@pytest.mark.case(67)
def test_no_table_of_drafting_holds_a_text_when_its_person_is_gone(lone: Desk) -> None:
    published(lone, A, NEIGHBOUR)
    lone.drafts.approvals(lambda _scope: True).request(A, "mail-1", "send-mail", report="report-001")
    lone.runtime.submit(A, "report-003", steps={Step.COLLECT: {"language"}})
    lone.die("report-003", Fault.AFTER_DRAFT)
    assert {table for table in metadata.tables if lone.rows(f"SELECT * FROM {table}")} == set(metadata.tables)  # noqa: S608
    handles = {row[0] for row in lone.rows("SELECT handle FROM drafts")}
    lone.clean_up(lone.revoke(lone.order(SUBJECT, ALL)))
    kept = [row for table in metadata.tables for row in lone.rows(f"SELECT * FROM {table}")]  # noqa: S608
    mine = [row for row in kept if A.user in row]
    assert {row[4] for row in mine} == {"report-001", "report-002", "report-003", "mail-1"}
    assert SECRET not in repr(mine)
    assert len(lone.texts(NEIGHBOUR)) == 6
    lone.tell("seat", "window", source="turn-9")
    lone.publish("report-009")
    fresh = {row[0] for row in lone.rows(f"SELECT handle FROM drafts WHERE user_id = '{A.user}'")}  # noqa: S608
    assert not fresh & handles, "no handle is used twice"


def test_only_exact_handles_of_the_tenant_are_erased_once(desk: Desk) -> None:
    published(desk, A, FOREIGN)
    before = desk.texts()
    order = desk.order(SUBJECT)
    targets = desk.find(order)
    report = next(target for target in targets if target.kind == "report")
    wrong = (
        replace(report, kind="checkpoint"),
        replace(report, version=1),
        replace(report, kind="fact"),
        replace(report, id=report.id[:-1] + "%"),
        replace(report, id="%"),
    )
    answers = desk.drafts.erase(
        [
            replace(order, targets=wrong),
            replace(order, targets=targets, scope=FOREIGN),
            order,
        ]
    )
    assert [(a.erased, a.already_absent) for a in answers] == [(0, 5), (0, 6), (0, 0)]
    assert desk.texts() == before
    both = desk.drafts.erase([replace(order, targets=targets)] * 2)
    assert [(a.erased, a.already_absent) for a in both] == [(6, 0), (0, 6)]
    left = {Residual.DEAD_TUPLES, Residual.WAL_ARCHIVE} if desk.drafts._residuals else set()
    assert [answer.residuals for answer in both] == [left, set()]
    assert len(desk.texts(FOREIGN)) == 6


def test_look_counts_each_draft_once_and_sees_a_late_one_by_its_lineage(desk: Desk) -> None:
    published(desk, A)
    order = desk.revoke(desk.order(LANGUAGE))
    targets = desk.find(order)
    assert desk.drafts.verify([replace(order, targets=targets)])[0].remaining == 3
    desk.drafts.erase([replace(order, targets=targets)])
    fact = order.known[0]
    place = "'tenant-a', 'late', 'late', 'user-1', 'project-A', 'collect', 1, 'late'"
    desk.execute(f"INSERT INTO drafts VALUES ({place})")  # noqa: S608 - values of ours
    desk.execute(f"INSERT INTO draft_used VALUES ('tenant-a', 'late', 'fact', '{fact.id}', 1)")  # noqa: S608
    assert desk.drafts.verify([replace(order, targets=targets)])[0].remaining == 1
    assert desk.drafts.verify([replace(order, scope=FOREIGN)])[0].remaining == 0
