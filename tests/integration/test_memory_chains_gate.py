"""The gate before memories: what was forgotten is not remembered again, by either level and in other words."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
import structlog

from adapters.memory import SourceKind
from adapters.memory.chains import MemoryInputError, MemoryNotFound, SourceChains
from orchestrator import GateRefused, InvalidRequest, Refusal, Scope, Selector, SelectorKind
from tests.integration.memory_chains_harness import (
    ALICE,
    AT_WORK,
    BOB,
    FOREIGN,
    PASSPORT,
    RENEWED,
    SUBJECT,
    Source,
    by_memory,
    by_source,
    everything,
    kinds,
    place,
    source,
)

__all__ = ["source"]
DIET = "Eats neither nuts nor meat."


def test_memory_of_a_source_that_was_never_accepted_is_refused(source: Source) -> None:
    first = source.tell(ALICE, PASSPORT, "turn-1")
    source.register(BOB, "bob-1")
    for name in ("turn-2", "bob-1"):  # another user's is as unknown as none
        calls: list[Callable[[], object]] = [
            lambda name=name: source.adapter.chains.remember(ALICE, "user", DIET, name),  # type: ignore[misc]
            lambda name=name: source.adapter.chains.correct(ALICE, first, DIET, name),  # type: ignore[misc]
        ]
        for call in calls:
            with pytest.raises(GateRefused) as caught:
                call()
            assert caught.value.refusal is Refusal.UNKNOWN_SOURCE
    assert source.adapter.chains.refused == {Refusal.UNKNOWN_SOURCE: 4}
    assert source.ids() == [first]
    with pytest.raises(InvalidRequest):
        source.adapter.chains.remember(ALICE, "user", DIET, "s" * 513)


def test_each_write_raises_the_revision_of_what_it_concerns_alone(source: Source) -> None:
    scopes = (everything(ALICE), place(ALICE), place(AT_WORK), place(BOB), place(FOREIGN))

    def revisions() -> list[int]:
        return [source.adapter.store.revision(scope) for scope in scopes]

    first = source.tell(ALICE, PASSPORT, "turn-1")
    assert revisions() == [0, 1, 0, 0, 0]
    of_user = source.tell(ALICE, DIET, "turn-1", level="user")
    # What is of the user is read in each project: those that have a revision rise with it, to one number above all.
    assert revisions() == [2, 2, 0, 0, 0]
    source.correct(ALICE, first, RENEWED, "turn-2")
    assert revisions() == [2, 3, 0, 0, 0]
    source.correct(AT_WORK, of_user, "Eats all.", "turn-3")
    assert revisions() == [4, 4, 0, 0, 0]
    with pytest.raises(MemoryInputError):
        source.correct(ALICE, first, RENEWED, "turn-2")
    with pytest.raises(MemoryNotFound):
        source.correct(BOB, of_user, RENEWED, "bob-1")
    assert revisions() == [4, 4, 0, 0, 0]


def test_forgetting_a_memory_marks_texts_and_tokens_and_no_source(source: Source) -> None:
    first = source.tell(ALICE, PASSPORT, "turn-1")
    source.register(ALICE, "turn-0")
    source.register(ALICE, "summary-1", "turn-0", kind=SourceKind.MODEL)
    source.correct(ALICE, first, RENEWED, "summary-1")
    source.tell(ALICE, "There is a number on the door.", "turn-3")
    source.adapter.store.put(place(ALICE), "office", "The passport office", "turn-3")
    answer = source.revoke(source.order(by_memory(first), everything(ALICE)))
    assert kinds(answer) == ["fact_source", "source_token", "text"]
    for text, name in (
        (PASSPORT, "turn-1"),
        (RENEWED, "summary-1"),
        (RENEWED, "turn-0"),  # the source behind has told the same
        ("Document P1234567 it is", "turn-1"),
        ("Document P7654321 it is", "turn-0"),
    ):
        assert source.refused(ALICE, text, name) is Refusal.TOKEN_TOMBSTONED
    assert source.refused(ALICE, PASSPORT, "turn-4") is Refusal.TEXT_TOMBSTONED
    assert source.refused(ALICE, f"  {PASSPORT.upper()} ", "turn-4") is Refusal.TEXT_TOMBSTONED
    for text, name in ((DIET, "turn-1"), ("A number.", "turn-1"), ("A passport.", "turn-1"), (DIET, "summary-1")):
        assert source.tell(ALICE, text, name)
    assert source.tell(BOB, PASSPORT, "bob-1")
    assert source.tell(FOREIGN, PASSPORT, "turn-1")


@pytest.mark.parametrize(("level", "other"), [("task", "user"), ("user", "task"), ("task", "task"), ("user", "user")])
def test_text_that_was_forgotten_at_one_level_is_refused_at_both(source: Source, level: str, other: str) -> None:
    first = source.tell(ALICE, PASSPORT, "turn-1", level=level)
    source.run(source.order(by_memory(first), everything(ALICE)))
    assert source.refused(ALICE, PASSPORT, "turn-1", level=other) is Refusal.TOKEN_TOMBSTONED
    assert source.refused(ALICE, PASSPORT, "turn-4", level=other) is Refusal.TEXT_TOMBSTONED
    if level == "task":
        assert source.tell(AT_WORK, PASSPORT, "work-1"), "a task sees nothing of another"
    else:
        assert source.refused(AT_WORK, PASSPORT, "work-1") is Refusal.TEXT_TOMBSTONED


def test_forgetting_a_source_refuses_it_whole_and_the_texts_of_its_chains(source: Source) -> None:
    first = source.tell(ALICE, PASSPORT, "turn-1")
    source.correct(ALICE, first, RENEWED, "turn-2")
    answer = source.revoke(source.order(by_source("turn-1"), everything(ALICE)))
    assert kinds(answer) == ["source", "text"]
    assert source.refused(ALICE, DIET, "turn-1") is Refusal.SOURCE_TOMBSTONED
    for text in (PASSPORT, RENEWED):
        assert source.refused(ALICE, text, "turn-2") is Refusal.TEXT_TOMBSTONED
    assert source.tell(ALICE, DIET, "turn-2")


def test_forgetting_a_subject_refuses_what_was_accepted_before(source: Source) -> None:
    source.tell(ALICE, PASSPORT, "turn-1")
    source.register(ALICE, "turn-2")
    answer = source.revoke(source.order(SUBJECT, everything(ALICE)))
    assert kinds(answer) == ["source", "subject"]
    for scope in (ALICE, AT_WORK):
        for level in ("task", "user"):
            assert source.refused(scope, DIET, "turn-2", level=level) is Refusal.SOURCE_TOMBSTONED
    assert source.tell(ALICE, PASSPORT, "turn-9", stated=True), "a returning person is welcome"
    assert source.tell(BOB, PASSPORT, "bob-1")


def test_only_a_fresh_statement_of_the_user_brings_a_text_back_and_once(source: Source) -> None:
    first = source.tell(ALICE, PASSPORT, "turn-1")
    source.register(ALICE, "before")
    source.run(source.order(by_memory(first), everything(ALICE)))
    source.register(ALICE, "summary", "before", kind=SourceKind.MODEL)
    source.register(ALICE, "model", kind=SourceKind.MODEL)
    for name in ("before", "summary", "model"):
        assert source.refused(ALICE, PASSPORT, name, stated=True) is Refusal.TEXT_TOMBSTONED
    source.register(AT_WORK, "work-1")
    assert source.refused(ALICE, PASSPORT, "work-1", stated=True) is Refusal.TEXT_TOMBSTONED
    assert source.refused(ALICE, PASSPORT, "turn-9") is Refusal.TEXT_TOMBSTONED
    fresh = source.tell(ALICE, PASSPORT, "turn-9", stated=True)
    assert source.recalled(ALICE) == [fresh]
    assert source.refused(ALICE, PASSPORT, "turn-9", stated=True) is Refusal.TEXT_TOMBSTONED
    other = source.tell(ALICE, DIET, "turn-9")
    assert source.correct(ALICE, other, PASSPORT, "turn-10", stated=True)


def test_statement_of_no_task_confirms_what_is_kept_for_the_user_alone(source: Source) -> None:
    first = source.tell(ALICE, PASSPORT, "turn-1", level="user")
    source.run(source.order(by_memory(first), everything(ALICE)))
    source.adapter.store.register_source(Scope(tenant="acme", user="alice"), "general-1")
    assert source.refused(ALICE, PASSPORT, "general-1", stated=True) is Refusal.TEXT_TOMBSTONED
    assert source.tell(ALICE, PASSPORT, "general-1", level="user", stated=True)


def test_gate_compares_memories_with_what_facts_have_lost(source: Source) -> None:
    source.register(ALICE, "turn-1")
    source.adapter.store.put(place(ALICE), "passport", PASSPORT, "turn-1")
    (fact,) = source.adapter.store.current(place(ALICE))
    source.run(source.order(by_memory(1), everything(ALICE)))
    assert source.adapter.store.current(place(ALICE)) == [fact], "an id of a chain names no fact"
    source.run(source.order(by_source("turn-1"), everything(ALICE)))
    assert source.refused(ALICE, DIET, "turn-1") is Refusal.SOURCE_TOMBSTONED


def test_source_offers_neither_a_purge_nor_a_deletion_by_itself_and_logs_no_text(source: Source) -> None:
    assert not {"forget", "purge_expired"} & {name for name in dir(SourceChains) if not name.startswith("_")}
    first = source.tell(ALICE, PASSPORT, "turn-1")
    source.run(source.order(by_memory(first), everything(ALICE)))
    with structlog.testing.capture_logs() as lines:
        source.refused(ALICE, PASSPORT, "turn-1")
    assert lines == [{"event": "gate.refused", "log_level": "info", "code": "token_tombstoned"}]


def test_word_that_stays_in_one_task_is_marked_in_another_where_what_said_it_has_expired(source: Source) -> None:
    chains = source.application.chains
    for scope, name in ((ALICE, "turn-1"), (AT_WORK, "work-1")):
        source.register(scope, name)
        chains.remember(scope, "task", PASSPORT, name, 1)
    chains.remember(AT_WORK, "task", "Keeps P1234567 at hand.", "work-1")
    source.clock.at += timedelta(days=2)
    source.revoke(source.order(Selector(kind=SelectorKind.EXPIRED), everything(ALICE)))
    assert source.refused(ALICE, "P1234567, that was it.", "turn-1") is Refusal.TOKEN_TOMBSTONED
    assert source.tell(AT_WORK, "P1234567, that was it.", "work-1"), "there it tells nothing that is not known"
