"""Texts that enter drafts: what was forgotten does not come in again, and nothing is stored that no job could name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adapters.drafts import JobUnknown, MemoryChanged, State
from orchestrator import GateRefused, InvalidRequest, Refusal, Selector, SelectorKind
from orchestrator.testing.people import HOSTILE
from tests.integration.drafts_harness import LANGUAGE, SUBJECT, A, Desk, desk, lone, name_of

__all__ = ["desk", "lone"]

PASSPORT = Selector(kind=SelectorKind.KEY, value="passport")
NUMBER = "My passport number is P1234567"


def erased(desk: Desk, selector: Selector = PASSPORT) -> None:
    """Let a job revoke, and erase what it named in both stores."""
    order = desk.revoke(desk.order(selector))
    desk.clean_up(order)
    desk.memory.erase([replace(order, targets=order.known)])


@pytest.mark.req("R150")
def test_writer_that_says_again_what_its_sources_lost_is_refused(lone: Desk) -> None:
    lone.tell("passport", NUMBER)
    lone.tell("seat", "aisle")
    erased(lone)
    lone.runtime.submit(A, "report-001")
    with pytest.raises(GateRefused) as caught:
        lone.runtime.run(A, "report-001", lambda given: f"{given}; flies with p1234567")
    assert caught.value.refusal is Refusal.TOKEN_TOMBSTONED
    assert "1234567" not in str(caught.value)
    assert lone.runtime.refused == {Refusal.TOKEN_TOMBSTONED: 1}
    told = lone.runtime.inspect(A, "report-001")
    assert [(draft.step.value, draft.text) for draft in told.drafts] == [("collect", "seat: aisle")]
    lone.at(2)
    assert lone.runtime.run(A, "report-001").state is State.PUBLISHED, "other words pass"


@pytest.mark.req("R143")
def test_it_is_refused_of_what_was_derived_from_the_source_too(lone: Desk) -> None:
    lone.tell("passport", NUMBER)
    summary = lone.summarise("summary-9", "turn-1")
    lone.memory.store.put(A, "seat", "aisle", summary)
    erased(lone)
    lone.runtime.submit(A, "report-001")
    with pytest.raises(GateRefused) as caught:
        lone.runtime.run(A, "report-001", lambda _given: "flies with P1234567")
    assert caught.value.refusal is Refusal.TOKEN_TOMBSTONED


@pytest.mark.req("R145")
def test_fact_that_was_freshly_confirmed_may_be_used_beside_one_of_the_old_source(desk: Desk) -> None:
    desk.tell("passport", NUMBER)
    desk.tell("seat", "aisle")
    erased(desk)
    desk.tell("passport", NUMBER, source="turn-31")
    assert desk.publish("report-001") == f"Report\n\npassport: {NUMBER}\nseat: aisle"


def test_value_of_a_fact_covers_no_part_of_another_word(lone: Desk) -> None:
    lone.tell("passport", NUMBER)
    lone.tell("row", "1")
    lone.tell("letter", "P")
    erased(lone)
    lone.runtime.submit(A, "report-001")
    with pytest.raises(GateRefused):
        lone.runtime.run(A, "report-001", lambda _given: "P1234567")


def test_returning_person_may_have_drafts_again(lone: Desk) -> None:
    lone.tell("passport", NUMBER)
    erased(lone, SUBJECT)
    assert lone.publish("report-001") == "Report\n\nNothing is known."
    lone.tell("seat", "window", source="turn-9")
    assert lone.publish("report-002") == "Report\n\nseat: window"


@pytest.mark.req("R144")
@pytest.mark.case(23)
def test_late_checkpoint_is_refused_in_the_transaction_that_would_write_it(desk: Desk) -> None:
    """The runner has read before the revocation, and writes when all is erased."""
    desk.tell("language", "zh-CN")
    desk.tell("theme", "dark", source="turn-2")
    desk.runtime.submit(A, "report-001")

    def late(given: str) -> str:
        order = desk.revoke(desk.order(LANGUAGE))
        done, seen = desk.clean_up(order)
        assert (done.erased, seen.remaining) == (1, 0)
        return given

    with pytest.raises(MemoryChanged):
        desk.runtime.run(A, "report-001", late)
    assert desk.texts() == []
    assert desk.rows("SELECT count(*) FROM draft_used u JOIN drafts d ON d.handle = u.handle") == [(0,)]


@pytest.mark.case(23)
def test_late_checkpoint_is_refused_before_anything_is_erased_too(lone: Desk) -> None:
    lone.tell("language", "zh-CN")
    lone.runtime.submit(A, "report-001")

    def late(given: str) -> str:
        lone.revoke(lone.order(LANGUAGE))
        return given

    with pytest.raises(MemoryChanged):
        lone.runtime.run(A, "report-001", late)
    assert lone.texts() == ["language: zh-CN"]


def test_ids_are_exact(lone: Desk) -> None:
    for name in HOSTILE:
        scope = replace(A, user=name)
        lone.tell("language", "zh-CN", scope)
        lone.publish(name, scope)
    for left, name in reversed(list(enumerate(HOSTILE))):
        scope = replace(A, user=name)
        for other in HOSTILE:
            if other != name:
                with pytest.raises(JobUnknown):
                    lone.runtime.inspect(scope, other)
        done, seen = lone.clean_up(lone.revoke(lone.order(SUBJECT, scope)))
        assert (done.erased, seen.remaining) == (3, 0)
        assert len(lone.texts()) == 3 * left


@pytest.mark.parametrize("job", ["", " ", "\n", "x" * 513, "nul\0", "\ud800", None, 7])
def test_id_that_could_not_be_stored_is_refused(lone: Desk, job: object) -> None:
    with pytest.raises(InvalidRequest, match=r"^job must "):
        lone.runtime.submit(A, job)  # type: ignore[arg-type]  # whatever comes in


@pytest.mark.parametrize("text", ["", " \n", "x" * 1_000_001, "nul\0", "\ud800", None])
def test_text_that_could_not_be_stored_is_refused(lone: Desk, text: str) -> None:
    lone.runtime.submit(A, "report-001")
    with pytest.raises(InvalidRequest, match=r"^text must "):
        lone.runtime.run(A, "report-001", lambda _given: text)
    assert lone.texts() == [""]


@pytest.mark.parametrize("seconds", [0, -1, 86_401, float("nan"), float("inf")])
def test_lease_of_no_length_or_without_end_is_refused(lone: Desk, seconds: float) -> None:
    lone.runtime.submit(A, "report-001")
    with pytest.raises(InvalidRequest, match=r"^lease_seconds must "):
        lone.runtime.run(A, "report-001", lease_seconds=seconds)


def test_key_that_names_no_current_fact_is_refused_and_not_repeated(lone: Desk) -> None:
    lone.tell("language", "en", expires=100)
    lone.at(100)
    with pytest.raises(InvalidRequest) as caught:
        lone.runtime.submit(A, "report-001", keys=["language"])
    assert "language" not in str(caught.value)
    assert lone.states() == []


def test_unconfirmed_and_expired_facts_are_not_used(lone: Desk) -> None:
    lone.tell("language", "en", expires=100)
    lone.tell("theme", "dark")
    lone.memory.store.put(A, "seat", "aisle", name_of(A, "turn-1"), confirmed=False)
    lone.at(100)
    assert lone.publish("report-001") == "Report\n\ntheme: dark"
