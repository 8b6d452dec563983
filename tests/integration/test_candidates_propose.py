"""What a program proposes: a candidate that no fact, no revision and nobody else sees, on each database."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
import structlog

from adapters.memory import SourceKind
from adapters.memory.candidates import CandidateState, CandidateUnknown
from orchestrator import GateRefused, InvalidRequest, Refusal, SelectorKind
from tests.integration.candidates_harness import (
    EXTRACTOR,
    NOW,
    TENANT_B,
    USER_2,
    A,
    Place,
    place,
    rules,
    shared_url,
    url,
)

__all__ = ["place", "rules", "shared_url", "url"]

FOREVER = float("inf")


@pytest.mark.req("R23")
def test_candidate_is_in_no_fact_and_leaves_the_revision_alone(place: Place) -> None:
    place.tell(A, "language", "zh-CN")
    before = [place.store.current(A), place.store.revision(A), place.store.revision_for_answers(A)]
    candidate = place.propose()
    assert [place.store.current(A), place.store.revision(A), place.store.revision_for_answers(A)] == before
    assert place.rows("SELECT version, value FROM facts") == [(1, "zh-CN")]
    assert (candidate.key, candidate.value, candidate.source) == ("language", "en", "user-message-42")
    assert (candidate.state, candidate.expires, candidate.version) == (CandidateState.PENDING, FOREVER, None)
    assert (candidate.proposed_by, candidate.proposed_at) == (EXTRACTOR, NOW)
    assert list(place.candidates.pending(A)) == [candidate]
    assert place.candidates.inspect(A, candidate.id) == candidate


@pytest.mark.req("R17")
def test_extraction_hides_no_confirmed_fact_where_the_low_level_put_would(place: Place) -> None:
    place.tell(A, "language", "zh-CN")
    place.propose()
    assert place.values() == {"language": "zh-CN"}
    place.store.put(A, "language", "en", "user-message-42", confirmed=False)
    assert place.values() == {}


def test_same_proposal_from_the_same_source_is_the_same_candidate(place: Place) -> None:
    first = place.propose()
    place.clock.at += timedelta(hours=1)
    assert place.propose() == first
    assert place.propose(by="extractor-8") == first
    others = [place.propose(value="de"), place.propose(source="user-message-43"), place.propose(key="tone")]
    others.append(place.propose(expires=2e9))
    assert len({first.id, *(candidate.id for candidate in others)}) == 5
    assert len(place.candidates.pending(A)) == 5


def test_one_message_may_propose_the_same_for_a_project_and_in_general(place: Place) -> None:
    mine = place.propose()
    general = replace(A, project=None)
    other = place.candidates.propose(general, "language", "en", "user-message-42", proposed_by=EXTRACTOR)
    assert mine.id != other.id
    place.candidates.reject(A, mine.id)
    assert list(place.candidates.pending(general)) == [other]


def test_rejected_proposal_does_not_come_back_by_reading_the_source_again(place: Place) -> None:
    candidate = place.propose()
    place.candidates.reject(A, candidate.id)
    again = place.propose()
    assert again == replace(candidate, state=CandidateState.REJECTED, value=None)
    assert list(place.candidates.pending(A)) == []


def test_id_says_nothing_without_the_keyring(place: Place) -> None:
    ids = {place.propose(scope).id for scope in (A, USER_2, TENANT_B)}
    assert len(ids) == 3
    assert all(len(each) == 32 and set(each) <= set("0123456789abcdef") for each in ids)


@pytest.mark.req("R4")
@pytest.mark.case(63)
def test_candidate_of_another_user_project_or_tenant_looks_like_none(place: Place) -> None:
    candidate = place.propose()
    place.hear(A, "user-message-43")
    answers = set()
    for scope in (USER_2, TENANT_B, replace(A, project=None), replace(A, project="agent-research-2")):
        assert list(place.candidates.pending(scope)) == []
        for call in (
            lambda: place.candidates.inspect(scope, candidate.id),  # noqa: B023 - called within the round
            lambda: place.candidates.reject(scope, candidate.id),  # noqa: B023
            lambda: place.candidates.accept(scope, candidate.id, source="user-message-43", expected_version=0),  # noqa: B023
        ):
            with pytest.raises(CandidateUnknown) as caught:
                call()
            answers.add((str(caught.value), str(caught.value.facts)))
    with pytest.raises(CandidateUnknown) as caught:
        place.candidates.inspect(A, "0" * 32)
    answers.add((str(caught.value), str(caught.value.facts)))
    assert answers == {("There is no such candidate.", "{}")}
    assert place.candidates.inspect(A, candidate.id) == candidate


def test_what_waits_is_told_in_pages_and_decided_ones_are_not(place: Place) -> None:
    ids = sorted(place.propose(key=f"key-{n}").id for n in range(7))
    gone = ids.pop(3)
    place.candidates.reject(A, gone)
    pages, after = [], None
    while page := place.candidates.pending(A, limit=4, after=after):
        pages.append([candidate.id for candidate in page])
        after = page[-1].id
    assert pages == [ids[:4], ids[4:]]
    for limit in (0, 1001, True, 2.0):
        with pytest.raises(InvalidRequest, match="limit must be"):
            place.candidates.pending(A, limit=limit)  # type: ignore[arg-type]
    assert len(place.candidates.pending(A, limit=1)) == 1
    assert len(place.candidates.pending(A, limit=1000)) == 6


def test_candidate_that_expires_now_has_expired(place: Place) -> None:
    candidate = place.propose(expires=NOW.timestamp() + 60)
    place.clock.at += timedelta(seconds=59)
    assert [each.value for each in place.candidates.pending(A)] == ["en"]
    place.clock.at += timedelta(seconds=1)
    assert list(place.candidates.pending(A)) == []
    told = place.candidates.inspect(A, candidate.id)
    assert (told.state, told.value) == (CandidateState.EXPIRED, None)


@pytest.mark.parametrize("by", ["", "Extractor", "an extractor", "user@example.org", "x" * 65, "extractor-7\n", None])
def test_proposer_that_is_no_name_of_a_program_is_refused(place: Place, by: object) -> None:
    with pytest.raises(InvalidRequest, match="proposed_by must be a name"):
        place.propose(by=by)  # type: ignore[arg-type]
    assert place.propose(by="x" * 64).proposed_by == "x" * 64
    assert len(place.candidates.pending(A)) == 1


def test_what_is_no_fact_is_no_candidate(place: Place) -> None:
    for wrong in ({"key": " "}, {"value": ""}, {"value": "x" * 2001}, {"value": "\ud800"}, {"expires": float("nan")}):
        with pytest.raises(InvalidRequest) as caught:
            place.propose(**wrong)
        assert str(wrong.get("value") or "?") not in str(caught.value)
    with pytest.raises(InvalidRequest):
        place.candidates.propose(A, "language", "en", "", proposed_by=EXTRACTOR)
    assert place.rows("SELECT count(*) FROM fact_candidates") == [(0,)]


def test_source_that_was_never_accepted_proposes_nothing(place: Place) -> None:
    place.hear(USER_2, "theirs")
    for source in ("nobodys", "theirs"):
        with pytest.raises(GateRefused) as caught:
            place.candidates.propose(A, "language", "en", source, proposed_by=EXTRACTOR)
        assert caught.value.refusal is Refusal.UNKNOWN_SOURCE
    assert place.rows("SELECT count(*) FROM fact_candidates") == [(0,)]


@pytest.mark.req("R150")
@pytest.mark.case(26)
@pytest.mark.parametrize(
    ("kind", "value", "refusal"),
    [
        (SelectorKind.KEY, "language", Refusal.KEY_TOMBSTONED),
        (SelectorKind.SOURCE, "user-message-42", Refusal.SOURCE_TOMBSTONED),
        (SelectorKind.SUBJECT, None, Refusal.SOURCE_TOMBSTONED),
    ],
)
def test_what_was_forgotten_is_not_proposed_again(
    place: Place, kind: SelectorKind, value: str | None, refusal: Refusal
) -> None:
    place.tell(A, "language", "en")
    place.tell(USER_2, "language", "en", "theirs")
    place.forget(kind, value)
    candidates = place.candidates
    with structlog.testing.capture_logs() as logs, pytest.raises(GateRefused) as caught:
        candidates.propose(A, "language", "en", "user-message-42", proposed_by=EXTRACTOR)
    assert (caught.value.refusal, candidates.refused[refusal]) == (refusal, 1)
    assert logs == [{"event": "gate.refused", "code": refusal.value, "log_level": "info"}]
    assert place.rows("SELECT count(*) FROM fact_candidates") == [(0,)]
    neighbour = candidates.propose(USER_2, "language", "en", "theirs", proposed_by=EXTRACTOR)
    assert neighbour.state is CandidateState.PENDING


def test_forgotten_text_is_not_proposed_by_a_new_message_either(place: Place) -> None:
    place.tell(A, "passport", "P1234567")
    place.forget(SelectorKind.KEY, "passport")
    with pytest.raises(GateRefused) as caught:
        place.propose(key="passport", value="P1234567", source="user-message-43")
    assert caught.value.refusal is Refusal.TEXT_TOMBSTONED
    assert place.propose(key="passport", value="P7654321", source="user-message-43").state is CandidateState.PENDING


def test_document_and_model_propose_as_well(place: Place) -> None:
    for kind in (SourceKind.DOCUMENT, SourceKind.MODEL):
        place.hear(A, f"a-{kind}", kind)
        assert place.propose(source=f"a-{kind}").state is CandidateState.PENDING


def test_nothing_that_is_shown_repeats_a_value(place: Place) -> None:
    candidate = place.propose(value="P1234567")
    assert (candidate.value, "P1234567" in repr(candidate)) == ("P1234567", False)
