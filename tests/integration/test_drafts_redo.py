"""Jobs that are begun anew from the first step of which something has changed; what is before it is kept."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from adapters.drafts import Fault, JobTaken, JobUnknown, State, Step
from orchestrator import InvalidRequest, Selector, SelectorKind, Target
from tests.integration.drafts_harness import (
    ALL,
    EXPIRED,
    FOREIGN,
    NEIGHBOUR,
    SUBJECT,
    A,
    B,
    Desk,
    desk,
    ends,
    lone,
    name_of,
)

__all__ = ["desk", "lone"]

STEPS = {Step.COLLECT: {"theme"}, Step.DRAFT: {"language"}}


class Writer:
    """Writes down what it was given."""

    def __init__(self) -> None:
        self.given: list[str] = []

    def __call__(self, given: str) -> str:
        self.given.append(given)
        return f"Report\n\n{given}"


def begun(desk: Desk, writer: Writer, *, expires: float = math.inf) -> tuple[Target, Target]:
    """Let a job stop after its draft: the theme was collected, the language used in the draft only."""
    theme = desk.tell("theme", "dark", source="turn-2", expires=expires)
    language = desk.tell("language", "en")
    desk.runtime.submit(A, "report-001", steps=STEPS)
    with pytest.raises(KeyboardInterrupt):
        desk.runtime.run(A, "report-001", writer, fault=stopping)
    return theme, language


def stopping(passed: Fault) -> None:
    if passed is Fault.AFTER_DRAFT:
        raise KeyboardInterrupt


def made(desk: Desk, job: str) -> dict[str, tuple[str, str]]:
    """Read id and text of what a job has made, by step, by hand."""
    rows = desk.rows(
        "SELECT d.step, d.handle, d.text FROM drafts AS d JOIN draft_jobs AS j"  # noqa: S608 - a name of ours
        f" ON j.handle = d.job AND j.tenant = d.tenant WHERE j.name = '{job}'"
    )
    return {step: (handle, text) for step, handle, text in rows}


@pytest.mark.req("R54")
def test_fact_that_the_draft_alone_used_has_draft_and_report_redone_and_the_collected_kept(desk: Desk) -> None:
    writer = Writer()
    theme, _ = begun(desk, writer)
    old = made(desk, "report-001")
    language = desk.tell("language", "zh-CN", source="turn-3")
    desk.at(2)
    ends(desk)
    told = desk.runtime.submit(A, "report-002", steps=STEPS, redo="report-001")
    assert (told.memory_rev, told.state, set(told.used)) == (3, State.OPEN, {theme, language})
    assert [(draft.step, draft.text) for draft in told.drafts] == [(Step.COLLECT, "theme: dark")]
    done = desk.runtime.run(A, "report-002", writer)
    assert writer.given == ["theme: dark\nlanguage: en", "theme: dark\nlanguage: zh-CN"]
    assert done.report is not None
    assert done.report.text == "Report\n\ntheme: dark\nlanguage: zh-CN"
    assert {theme, language} <= set(done.report.used)
    new = made(desk, "report-002")
    assert new["collect"][1] == old["collect"][1]
    assert new["collect"][0] != old["collect"][0], "a row of its own"
    assert desk.runtime.inspect(A, "report-001").memory_rev == 2, "the old job is where it was"
    ends(desk)


@pytest.mark.req("R54")
@pytest.mark.parametrize("change", ["correct", "forget", "expire"])
def test_fact_that_was_collected_has_all_redone(lone: Desk, change: str) -> None:
    writer = Writer()
    begun(lone, writer, expires=100)
    if change == "correct":
        lone.tell("theme", "light", source="turn-3")
    elif change == "forget":
        lone.memory.store.forget(A, "theme")
        lone.tell("theme", "light", source="turn-3")
    else:
        lone.tell("theme", "light", source="turn-3", expires=500)
        lone.at(200)
    told = lone.runtime.submit(A, "report-002", steps=STEPS, redo="report-001")
    assert told.drafts == ()
    lone.at(300)
    lone.runtime.run(A, "report-002", writer)
    assert writer.given[1:] == ["theme: light\nlanguage: en"]


@pytest.mark.req("R54")
def test_writer_is_not_called_where_nothing_that_was_used_has_changed(desk: Desk) -> None:
    writer = Writer()
    theme, language = begun(desk, writer)
    desk.tell("seat", "aisle", source="turn-3")
    desk.at(2)
    ends(desk)
    told = desk.runtime.submit(A, "report-002", steps=STEPS, redo="report-001")
    assert [draft.step for draft in told.drafts] == [Step.COLLECT, Step.DRAFT]
    done = desk.runtime.run(A, "report-002", writer)
    assert len(writer.given) == 1
    assert done.report is not None
    assert done.report.text == "Report\n\ntheme: dark\nlanguage: en"
    assert {theme, language} <= set(done.report.used)
    assert done.memory_rev == 3


@pytest.mark.req("R54")
def test_draft_is_not_kept_behind_what_was_collected_anew(lone: Desk) -> None:
    """The draft used the language alone, which is as it was: the theme is before it."""
    writer = Writer()
    begun(lone, writer)
    lone.tell("theme", "light", source="turn-3")
    assert lone.runtime.submit(A, "report-002", steps=STEPS, redo="report-001").drafts == ()


@pytest.mark.req("R55")
@pytest.mark.parametrize("steps", [None, {Step.DRAFT: {"language"}}])
def test_step_of_which_nothing_was_said_depends_on_the_whole_scope(
    lone: Desk, steps: dict[Step, set[str]] | None
) -> None:
    writer = Writer()
    lone.tell("language", "en")
    lone.runtime.submit(A, "report-001", steps=steps)
    with pytest.raises(KeyboardInterrupt):
        lone.runtime.run(A, "report-001", writer, fault=stopping)
    assert writer.given == ["language: en"], "what was collected is not given twice"
    lone.tell("seat", "aisle", source="turn-3")
    lone.at(2)
    ends(lone)
    for job, said in (("report-002", steps), ("report-003", {Step.COLLECT: {"language"}, Step.DRAFT: {"language"}})):
        assert lone.runtime.submit(A, job, steps=said, redo="report-001").drafts == ()


@pytest.mark.req("R55")
def test_draft_of_which_nothing_was_said_is_redone_behind_what_was_collected(lone: Desk) -> None:
    writer = Writer()
    lone.tell("theme", "dark")
    lone.runtime.submit(A, "report-001", steps={Step.COLLECT: {"theme"}})
    with pytest.raises(KeyboardInterrupt):
        lone.runtime.run(A, "report-001", writer, fault=stopping)
    lone.tell("seat", "aisle", source="turn-3")
    told = lone.runtime.submit(A, "report-002", steps={Step.COLLECT: {"theme"}}, redo="report-001")
    assert [draft.step for draft in told.drafts] == [Step.COLLECT]


@pytest.mark.req("R47")
def test_job_whose_steps_are_known_fails_for_good_as_any_other(lone: Desk) -> None:
    begun(lone, Writer())
    lone.tell("seat", "aisle", source="turn-3")
    lone.at(2)
    ends(lone)
    with pytest.raises(JobTaken):
        lone.runtime.submit(A, "report-001", steps=STEPS)
    with pytest.raises(JobTaken):
        lone.runtime.submit(A, "report-001", steps=STEPS, redo="report-001")
    assert lone.runtime.inspect(A, "report-001").memory_rev == 2


def test_same_redo_again_is_the_same_job(desk: Desk) -> None:
    begun(desk, Writer())
    desk.tell("language", "zh-CN", source="turn-3")
    first = desk.runtime.submit(A, "report-002", steps=STEPS, redo="report-001")
    assert desk.runtime.submit(A, "report-002", steps=STEPS, redo="report-001") == first
    assert len(made(desk, "report-002")) == 1
    other = {Step.COLLECT: {"theme", "language"}}
    with pytest.raises(JobTaken):
        desk.runtime.submit(A, "report-002", steps=other, redo="report-001")
    done = desk.runtime.run(A, "report-002")
    assert desk.runtime.submit(A, "report-002", steps=STEPS, redo="report-001") == done


def test_job_of_another_scope_is_not_redone(lone: Desk) -> None:
    begun(lone, Writer())
    for scope in (B, ALL, NEIGHBOUR, FOREIGN):
        lone.tell("theme", "dark", scope)
        lone.tell("language", "en", scope)
        with pytest.raises(JobUnknown):
            lone.runtime.submit(scope, "report-002", steps=STEPS, redo="report-001")
    assert lone.states() == [("report-001", "open")]


@pytest.mark.parametrize(
    "steps",
    [{Step.PUBLISH: {"theme"}}, {Step.COLLECT: set()}, {Step.COLLECT: {"theme"}, Step.DRAFT: ()}, {"all": {"theme"}}],
)
def test_steps_that_could_not_be_kept_to_are_refused(lone: Desk, steps: dict[Step, set[str]]) -> None:
    lone.tell("theme", "dark")
    with pytest.raises(InvalidRequest, match=r"^steps may name collect and draft") as caught:
        lone.runtime.submit(A, "report-001", steps=steps)
    assert "theme" not in str(caught.value)
    with pytest.raises(InvalidRequest, match=r"^keys and steps exclude each other"):
        lone.runtime.submit(A, "report-001", keys=["theme"], steps={Step.COLLECT: {"theme"}})
    with pytest.raises(InvalidRequest, match=r"^keys must name facts that hold now"):
        lone.runtime.submit(A, "report-001", steps={Step.COLLECT: {"seat"}})
    assert lone.states() == []


@pytest.mark.req("R144")
def test_draft_that_says_what_was_forgotten_since_is_not_taken_over(lone: Desk) -> None:
    """A writer has put the number in by itself; then it was forgotten, and the seat that was used stayed."""
    lone.tell("passport", "My passport number is P1234567")
    lone.tell("seat", "aisle")
    steps = {Step.COLLECT: {"seat"}, Step.DRAFT: {"seat"}}
    lone.runtime.submit(A, "report-001", steps=steps)
    with pytest.raises(KeyboardInterrupt):
        lone.runtime.run(A, "report-001", lambda given: f"{given}; P1234567", fault=stopping)
    lone.revoke(lone.order(Selector(kind=SelectorKind.KEY, value="passport")))
    told = lone.runtime.submit(A, "report-002", steps=steps, redo="report-001")
    assert [draft.step for draft in told.drafts] == [Step.COLLECT]
    assert "P1234567" not in lone.runtime.run(A, "report-002").drafts[1].text


def test_subject_job_reaches_what_was_taken_over_as_what_it_was_taken_from(desk: Desk) -> None:
    """The copy keeps the place of its origin: what the person said after the request is no reason to spare it."""
    held = frozenset(target.id for target in begun(desk, Writer()))
    desk.tell("theme", "dark", NEIGHBOUR)
    desk.publish("report-001", NEIGHBOUR)
    stays = desk.texts(NEIGHBOUR)
    order = desk.order(SUBJECT)
    assert desk.memory.revoke([replace(order, held=held)])[0].targets == ()
    desk.tell("seat", "aisle", source="turn-9")
    desk.runtime.submit(A, "report-002", steps=STEPS, redo="report-001")
    assert list(made(desk, "report-002")) == ["collect"], "a draft of forgotten sources is let in by no gate"
    assert desk.rows("SELECT DISTINCT position FROM drafts WHERE step = 'collect' AND user_id = 'user-1'") == [(2,)]
    done, seen = desk.clean_up(desk.revoke(order))
    assert (done.erased, seen.remaining) == (3, 0)
    assert (desk.texts(A), desk.texts(NEIGHBOUR)) == ([], stays)


@pytest.mark.parametrize(
    "selector",
    [
        Selector(kind=SelectorKind.KEY, value="theme"),
        Selector(kind=SelectorKind.SOURCE, value=name_of(A, "turn-2")),
    ],
    ids=["key", "source"],
)
def test_what_was_taken_over_goes_with_the_fact_that_it_was_made_from(lone: Desk, selector: Selector) -> None:
    begun(lone, Writer())
    lone.tell("language", "zh-CN", source="turn-3")
    lone.runtime.submit(A, "report-002", steps=STEPS, redo="report-001")
    done, seen = lone.clean_up(lone.revoke(lone.order(selector)))
    assert (done.erased, seen.remaining) == (3, 0)
    assert lone.texts() == []
    assert lone.states() == [("report-001", "failed"), ("report-002", "failed")]


def test_what_has_expired_takes_what_was_taken_over(lone: Desk) -> None:
    begun(lone, Writer(), expires=100)
    lone.tell("language", "zh-CN", source="turn-3")
    lone.runtime.submit(A, "report-002", steps=STEPS, redo="report-001")
    lone.at(100)
    done, seen = lone.clean_up(lone.revoke(lone.order(EXPIRED)))
    assert (done.erased, seen.remaining, lone.texts()) == (3, 0, [])
