"""Drafts are found by what they were made from, however many drafts lie between, and by the person."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

import pytest

from adapters.drafts import Fault, ReportUnusable, State
from tests.integration.drafts_harness import (
    ALL,
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


def test_everything_that_was_made_from_a_fact_goes_and_nothing_else(desk: Desk) -> None:
    published(desk, A, B, NEIGHBOUR, FOREIGN)
    stays = [desk.texts(scope) for scope in (B, NEIGHBOUR, FOREIGN)]
    order = desk.revoke(desk.order(LANGUAGE))
    assert sorted(target.kind for target in desk.find(order)) == ["checkpoint", "checkpoint", "report"]
    done, seen = desk.clean_up(order)
    assert (done.erased, seen.remaining) == (3, 0)
    assert desk.texts(A) == ["Report\n\ntheme: dark"] * 2 + ["theme: dark"]
    assert [desk.texts(scope) for scope in (B, NEIGHBOUR, FOREIGN)] == stays
    told = desk.runtime.run(A, "report-001")
    assert (told.state, told.report) == (State.PUBLISHED, None), "what was published is not published again"
    again, seen = desk.clean_up(order)
    assert (again.erased, again.already_absent, seen.remaining) == (0, 0, 0)


def test_drafts_of_another_version_stay(lone: Desk) -> None:
    lone.tell("language", "en")
    lone.publish("report-001")
    second = lone.tell("language", "fr", source="turn-2")
    lone.publish("report-002")
    order = replace(lone.order(LANGUAGE), known=(second,))
    assert lone.drafts.verify([order])[0].remaining == 3
    assert lone.clean_up(order)[0].erased == 3
    assert lone.texts() == ["Report\n\nlanguage: en"] * 2 + ["language: en"]
    every = replace(order, known=(replace(second, version=0),))
    assert lone.drafts.verify([every])[0].remaining == 3
    assert lone.clean_up(every)[0].erased == 3


def test_report_upon_a_report_upon_a_report_goes_with_the_first_fact(desk: Desk) -> None:
    fact = desk.tell("language", SECRET)
    desk.tell("theme", "dark")
    desk.publish("report-001", keys=["language"])
    desk.publish("report-002", keys=[], upon=["report-001"])
    text = desk.publish("report-003", keys=["theme"], upon=["report-002"])
    assert SECRET in text
    desk.runtime.submit(A, "report-004", keys=[], upon=["report-003"])
    desk.die("report-004", Fault.AFTER_COLLECT)
    third = desk.runtime.inspect(A, "report-003").report
    assert third is not None
    assert fact in third.used
    assert {target.kind for target in third.used} == {"fact", "checkpoint", "report"}
    desk.publish("report-005", keys=["theme"])
    order = desk.revoke(desk.order(LANGUAGE))
    (holding,) = desk.drafts.find([order])
    assert len(holding.targets) == 10, "one pass finds them all, however deep"
    assert {target.derived_of for target in holding.targets} == {f"fact:{fact.id}@1"}
    done, seen = desk.clean_up(order)
    assert (done.erased, seen.remaining) == (10, 0)
    assert not [text for text in desk.texts() if SECRET in text]
    assert len(desk.texts()) == 3
    assert dict(desk.states())["report-004"] == "failed"


def test_report_that_is_gone_or_not_current_is_not_built_on(lone: Desk) -> None:
    lone.tell("language", SECRET, expires=100)
    lone.publish("report-001")
    assert lone.runtime.submit(A, "report-002", keys=[], upon=["report-001"]).memory_expires == 100
    for job in ("report-009", "report-002"):
        with pytest.raises(ReportUnusable):
            lone.runtime.submit(A, "report-003", upon=[job])
    for scope in (B, FOREIGN):
        with pytest.raises(ReportUnusable):
            lone.runtime.submit(scope, "report-003", upon=["report-001"])
    lone.at(100)
    with pytest.raises(ReportUnusable):
        lone.runtime.submit(A, "report-003", upon=["report-001"])
    lone.at(0)
    lone.tell("theme", "dark")
    with pytest.raises(ReportUnusable):
        lone.runtime.submit(A, "report-003", upon=["report-001"])


def test_checkpoint_that_names_nothing_is_counted_and_never_called_clean(desk: Desk) -> None:
    desk.tell("language", SECRET)
    desk.publish("report-001")
    for scope in (A, B, NEIGHBOUR, FOREIGN):
        desk.publish("of nothing", scope, keys=[])
    order = desk.revoke(desk.order(LANGUAGE))
    (holding,) = desk.drafts.find([order])
    assert (len(holding.targets), holding.no_lineage) == (3, 1)
    (everywhere,) = desk.drafts.find([replace(order, scope=ALL)])
    assert everywhere.no_lineage == 2
    (subject,) = desk.drafts.find([desk.order(SUBJECT)])
    assert (len(subject.targets), subject.no_lineage) == (6, 0)


def test_long_list_comes_in_pages(lone: Desk) -> None:
    fact = lone.tell("language", SECRET)
    _ = lone.runtime
    numbers = range(2001)
    rows = ", ".join(f"('tenant-a', 'd-{n:04}', 'j-{n}', 'user-1', 'project-A', 'collect', 1, 'x')" for n in numbers)
    used = ", ".join(f"('tenant-a', 'd-{n:04}', 'fact', '{fact.id}', 1)" for n in numbers)
    lone.execute(f"INSERT INTO drafts VALUES {rows}")  # noqa: S608 - values of ours
    lone.execute(f"INSERT INTO draft_used VALUES {used}")  # noqa: S608 - as above
    order, pages = replace(lone.order(LANGUAGE), known=(fact,)), []
    while True:
        (holding,) = lone.drafts.find([order])
        pages.append(len(holding.targets))
        if holding.cursor is None:
            break
        order = replace(order, cursor=holding.cursor)
    assert pages == [1000, 1000, 1]


def test_preview_before_anything_was_revoked_counts_and_changes_nothing(lone: Desk) -> None:
    published(lone, A)
    known = lone.memory.find([lone.order(LANGUAGE)])[0].targets
    assert len(lone.find(replace(lone.order(LANGUAGE, job=uuid4()), known=known))) == 3
    assert len(lone.find(lone.order(SUBJECT))) == 6
    assert [seen.remaining for seen in lone.drafts.verify([lone.order(SUBJECT), lone.order(SUBJECT, B)])] == [6, 0]
    assert len(lone.texts()) == 6
