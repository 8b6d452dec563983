"""Draft jobs are bound to the memory that they were submitted over, and nothing moves them to another."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import sqlalchemy as sa

from adapters.drafts import DraftRuntime, Fault, JobTaken, JobUnknown, State
from tests.integration.drafts_harness import ALL, FOREIGN, NEIGHBOUR, A, B, Desk, desk, ends, lone

__all__ = ["desk", "lone"]


@pytest.mark.req("R39")
def test_submit_captures_the_revision_the_earliest_expiry_and_each_record(desk: Desk) -> None:
    for value in ("en", "fr", "zh-CN"):
        language = desk.tell("language", value, expires=200)
    theme = desk.tell("theme", "dark", expires=100)
    desk.tell("theme", "light", B, expires=50)
    told = desk.runtime.submit(A, "report-001")
    assert (told.memory_rev, told.memory_expires) == (4, 100)
    assert set(told.used) == {language, theme}
    assert language.version == 3
    assert told.state is State.OPEN


def test_only_the_facts_that_are_used_say_when_a_job_expires(lone: Desk) -> None:
    lone.tell("theme", "dark", expires=100)
    language = lone.tell("language", "en", expires=200)
    lone.tell("seat", "aisle")
    told = lone.runtime.submit(A, "report-001", keys=["language", "seat"])
    assert told.memory_expires == 200
    assert language in told.used
    assert len(told.used) == 2
    assert lone.runtime.submit(A, "report-002", keys=["seat"]).memory_expires is None
    assert lone.publish("report-003", keys=["language"]) == "Report\n\nlanguage: en"


@pytest.mark.req("R47")
def test_no_interface_moves_a_job_to_another_revision(lone: Desk) -> None:
    lone.tell("language", "zh-CN")
    first = lone.runtime.submit(A, "report-001")
    said: list[str] = []

    def note(_c: Any, _cursor: Any, statement: str, *_more: Any) -> None:  # noqa: ANN401 - SQLAlchemy's own
        said.append(statement)

    sa.event.listen(lone.drafts._engine, "before_cursor_execute", note)
    lone.die("report-001", Fault.AFTER_DRAFT)
    lone.memory.store.forget(A, "language")
    lone.at(2)
    with pytest.raises(JobTaken):
        lone.runtime.submit(A, "report-001")
    ends(lone)
    with pytest.raises(JobTaken):
        lone.runtime.submit(A, "report-001")
    assert lone.runtime.inspect(A, "report-001").memory_rev == first.memory_rev
    changes = [statement for statement in said if statement.startswith("UPDATE draft_jobs")]
    assert changes
    assert not [statement for statement in changes if "memory_rev" in statement or "memory_expires" in statement]
    public = {name: inspect.signature(m) for name, m in vars(DraftRuntime).items() if not name.startswith("_")}
    assert public.keys() == {"submit", "run", "inspect", "cancel"}
    assert not [name for of_one in public.values() for name in of_one.parameters if "rev" in name or "expire" in name]


def test_same_submit_again_is_the_same_job(desk: Desk) -> None:
    desk.tell("language", "zh-CN")
    first = desk.runtime.submit(A, "report-001")
    assert desk.runtime.submit(A, "report-001") == first
    done = desk.runtime.run(A, "report-001")
    assert desk.runtime.submit(A, "report-001") == done
    with pytest.raises(JobTaken):
        desk.runtime.submit(A, "report-001", keys=[])
    assert desk.rows("SELECT count(*) FROM draft_jobs") == [(1,)]


def test_job_is_unknown_outside_of_its_scope(lone: Desk) -> None:
    lone.tell("language", "zh-CN")
    lone.runtime.submit(A, "report-001")
    for scope in (B, ALL, NEIGHBOUR, FOREIGN):
        for act in (lone.runtime.run, lone.runtime.inspect):
            with pytest.raises(JobUnknown):
                act(scope, "report-001")
    assert lone.runtime.submit(FOREIGN, "report-001").used == ()
    assert lone.runtime.run(A, "report-001").report is not None
    assert lone.texts(FOREIGN) == []
