"""An input is valid in the transaction that keeps it, made once under its name, and of nothing that was forgotten."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa
from structlog.testing import capture_logs

from adapters.context import Assembled, InputTaken, MemoryUnsettled, Ranked, Ranking, Record
from adapters.memory.session import NoAccess
from orchestrator import GateRefused, Keyring, Refusal, Selector, SelectorKind
from tests.integration.context_harness import TRIPS, Study, alone, everything, person, study, told
from tests.integration.drafts_harness import FOREIGN, LANGUAGE, NEIGHBOUR, A, B, Died, name_of

__all__ = ["alone", "study"]


def meanwhile(act: Callable[[], object], *, times: int = 1) -> Ranking:
    """Rank everything, and let something happen between the ranking and the sending."""
    left = [times]

    def rank(records: Sequence[Record]) -> Ranked:
        if left[0]:
            left[0] -= 1
            act()
        return everything(records)

    return rank


@pytest.mark.req("R34")
def test_record_that_is_revoked_between_rank_and_send_is_absent(study: Study) -> None:
    study.tell("language", "zh-CN")
    study.tell("theme", "dark")
    made = study.assemble(ranking=meanwhile(lambda: study.memory.revoke([study.order(LANGUAGE)])))
    assert told(made) == ["dark"]
    assert ["zh-CN" in text for text in study.inputs()] == [False]
    assert made.revision == study.memory.store.revision(A), "selected anew under the revision that it names"


@pytest.mark.req("R34")
def test_change_of_what_holds_in_general_begins_the_selection_anew_as_well(study: Study) -> None:
    general = person().scope()
    study.prefer("answer_detail", "brief", general)
    calls = list[int]()

    def changes(records: Sequence[Record]) -> Ranked:
        calls.append(len(records))
        if len(calls) == 1:
            study.prefer("answer_detail", "detailed", general)
        return everything(records)

    made = study.assemble(ranking=changes, preferences=["answer_detail"])
    assert (told(made), len(calls)) == (["detailed"], 2)
    assert (made.revision, made.general_revision) == (0, study.memory.store.revision(general))
    study.prefer("answer_detail", "brief", general)
    with pytest.raises(InputTaken):
        study.assemble(preferences=["answer_detail"])


@pytest.mark.req("R34")
def test_record_that_expires_between_rank_and_send_is_absent_and_makes_room(study: Study) -> None:
    study.tell("a", "a" * 1500, expires=100.0)
    study.tell("b", "b" * 1500)
    study.at(99.999)
    assert told(study.assemble("before")) == ["a" * 1500]
    made = study.assemble(ranking=meanwhile(lambda: study.at(100)))
    assert (told(made), made.omitted) == (["b" * 1500], ())


@pytest.mark.req("R34")
def test_memory_that_changes_each_time_is_left_alone_at_last(study: Study) -> None:
    changes = iter(range(99))
    ranking = meanwhile(lambda: study.tell("theme", f"dark {next(changes)}"), times=99)
    with pytest.raises(MemoryUnsettled):
        study.assemble(ranking=ranking)
    assert (next(changes), study.inputs()) == (3, [])
    assert told(study.assemble(ranking=meanwhile(lambda: study.tell("theme", "light"), times=2))) == ["light"]


def test_same_name_is_the_same_input_until_the_memory_changes(study: Study) -> None:
    study.tell("language", "zh-CN")
    study.tell("theme", "dark", B)
    asked: dict[str, Any] = {"preferences": ["theme"], "constraints": {"style": "Short."}}
    made = study.assemble(**asked)
    assert study.assemble(preferences=["theme", "theme"], constraints={"style": "Short."}) == made
    assert len(study.inputs()) == 1
    others: list[dict[str, Any]] = [{}, {"preferences": ["theme"]}, {**asked, "constraints": {"style": "Long."}}]
    for other in others:
        with pytest.raises(InputTaken, match=r"^This name .* take a new name\.$"):
            study.assemble(**other)
    assert told(study.assemble(scope=B)) == ["dark"], "the name is free in every other scope"
    study.tell("seat", "aisle")
    with pytest.raises(InputTaken):
        study.assemble(**asked)
    assert told(study.assemble("turn-2", **asked)) == ["zh-CN", "aisle"]
    assert len(study.inputs(A)) == 2


def test_input_is_given_again_only_while_all_of_it_may_be_handed_out(study: Study) -> None:
    study.tell("language", "zh-CN", expires=100.0)
    made = study.assemble()
    study.at(99)
    assert study.assemble() == made
    study.at(100)
    with pytest.raises(InputTaken):
        study.assemble()


def test_callers_of_one_name_at_once_get_one_input(study: Study) -> None:
    study.tell("language", "zh-CN")
    study.assemble("the tables are there")
    start, got = threading.Barrier(4), list[Assembled]()

    def call() -> None:
        start.wait()
        got.append(study.assemble())

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == [got[0]] * 4
    assert len(study.inputs()) == 2


def test_process_that_dies_while_an_input_is_kept_leaves_nothing_and_a_repeat_makes_it(study: Study) -> None:
    study.tell("language", "zh-CN")
    assembler = study.assembler()

    def die(_connection: object, _cursor: object, statement: str, *_more: object) -> None:
        if "INSERT INTO draft_used" in statement:
            raise Died

    sa.event.listen(assembler._engine, "before_cursor_execute", die)
    with pytest.raises(Died):
        assembler.assemble("turn-1", everything, project=A.project)
    assert study.inputs() == [], "the row was written, and is not without what it was made from"
    sa.event.remove(assembler._engine, "before_cursor_execute", die)
    assert told(assembler.assemble("turn-1", everything, project=A.project)) == ["zh-CN"]


@pytest.mark.req("R7")
def test_person_who_is_no_member_any_more_gets_no_input(study: Study) -> None:
    study.tell("language", "zh-CN")
    projects = {"project-A"}
    who, leaves = person(A, projects), meanwhile(projects.clear)
    with pytest.raises(NoAccess):
        study.assembler(who).assemble("turn-1", leaves, project="project-A")
    with pytest.raises(NoAccess):
        study.assembler(who).assemble("turn-1", everything, project="project-A")
    assert study.inputs() == []


def test_lineage_names_each_record_by_id_and_version(study: Study) -> None:
    fact = study.tell("language", "zh-CN", TRIPS)
    memory = study.remember("Sits at the aisle.")
    event = study.prefer("answer_detail", "brief", TRIPS)
    study.prefer("theme", None, TRIPS)
    study.tell("omitted", "x" * 1500, TRIPS)
    study.assemble(scope=TRIPS, preferences=["answer_detail", "theme", "never-set"])
    used = {tuple(row) for row in study.rows("SELECT kind, id, version FROM draft_used")}
    of_event = ("event", event.id, event.sequence)
    assert used == {("fact", fact.id, fact.version), ("memory", memory.id, memory.version), of_event}


def test_no_key_that_was_only_asked_for_and_no_text_that_was_omitted_is_kept(alone: Study) -> None:
    alone.tell("a", "a" * 1500)
    alone.tell("omitted-key", "Harbin" * 100)
    alone.assemble("Anna's own name for it", preferences=["never-set"], constraints={"asked-key": "Paris"})
    (text,) = alone.inputs()
    for word in ("Harbin", "omitted-key", "never-set", "asked-key", "Paris", "Anna"):
        assert word not in text
    assert not [row for row in alone.rows("SELECT * FROM drafts") if "Anna" in str(row)]


def test_what_was_forgotten_goes_in_no_more_though_a_hold_keeps_its_record(study: Study) -> None:
    held = study.tell("language", "zh-CN", source="turn-1")
    study.tell("theme", "dark", source="turn-2")
    before = study.assemble("before")
    assert told(before) == ["zh-CN", "dark"]
    order = study.order(Selector(kind=SelectorKind.SOURCE, value=name_of(A, "turn-1")))
    (answer,) = study.memory.revoke([replace(order, held=frozenset({held.id}))])
    assert answer.left == {held.id}
    assert "zh-CN" in [fact.value for fact in study.memory.store.current(A)], "the hold keeps it"
    made = study.assemble()
    assert (told(made), made.withheld) == (["dark"], 1)
    with pytest.raises(InputTaken):
        study.assemble("before")


def test_what_is_withheld_makes_room_for_the_next(study: Study) -> None:
    held = study.tell("a", "a" * 1500, source="turn-1")
    study.tell("b", "b" * 1500, source="turn-2")
    order = study.order(Selector(kind=SelectorKind.KEY, value="a"))
    study.memory.revoke([replace(order, held=frozenset({held.id}))])
    made = study.assemble()
    assert (told(made), made.omitted, made.withheld) == (["b" * 1500], (), 1)


def test_keyring_that_misses_a_key_lets_nothing_out(study: Study) -> None:
    study.tell("language", "zh-CN")
    study.tell("theme", "dark")
    study.memory.revoke([study.order(LANGUAGE)])
    study.drafts._context.gate.keyring = Keyring(current="tk-2", keys={"tk-2": b"z" * 32})
    with pytest.raises(GateRefused) as caught:
        study.assemble()
    assert caught.value.refusal is Refusal.KEYRING_INCOMPLETE
    assert study.inputs() == []


def test_log_tells_counts_and_no_text(alone: Study) -> None:
    alone.tell("language", "zh-CN, from Harbin")
    with capture_logs() as logs:
        made = alone.assemble(f"name {uuid4()}", constraints={"city": "Paris"})
    assert logs == [
        {
            "event": "input.assembled",
            "log_level": "info",
            "items": 1,
            "omitted": 0,
            "dropped": 0,
            "withheld": 0,
            "failed": False,
        }
    ]
    for part in (made, made.items[0]):
        assert "Harbin" not in repr(part)
        assert "Paris" not in repr(part)


def test_another_tenant_or_user_of_the_same_name_gets_its_own(study: Study) -> None:
    for scope in (A, NEIGHBOUR, FOREIGN):
        study.tell("language", f"that of {scope.tenant} {scope.user}", scope)
        study.assemble(scope=scope)
    for scope in (A, NEIGHBOUR, FOREIGN):
        assert told(study.assemble(scope=scope)) == [f"that of {scope.tenant} {scope.user}"]
        assert len(study.inputs(scope)) == 1
