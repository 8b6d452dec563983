"""Candidates that are accepted and rejected: by whose word, once, and as a whole or not at all, on each database."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

import pytest
import sqlalchemy as sa

from adapters.memory import Fact, VersionConflict
from adapters.memory.candidates import (
    Candidate,
    CandidateClosed,
    Candidates,
    CandidateState,
    NotConfirmed,
    Rule,
    RuleDeclined,
)

__all__ = ["place", "shared_url", "url"]
from orchestrator import GateRefused, InvalidRequest, Refusal, SelectorKind
from tests.integration.candidates_harness import GATE, NOW, USER_2, YES, A, Place, asked, place, shared_url, url


def unrivalled(current: Fact | None, candidate: Candidate) -> bool:
    return current is None or current.source == candidate.source


def always(_current: Fact | None, _candidate: Candidate) -> bool:
    return True


def truthy(_current: Fact | None, _candidate: Candidate) -> bool:
    return "no"  # type: ignore[return-value]  # what a rule may do that forgot its comparison


@pytest.fixture
def rules() -> Mapping[str, Rule]:
    return {"unrivalled": unrivalled, "always": always, "truthy": truthy}


@contextmanager
def unchanged(place: Place) -> Iterator[None]:
    """See that nothing of facts, candidates, revisions and confirmations changes."""
    tables = ("facts", "fact_candidates", "fact_revisions", "confirmations")
    before = [sorted(place.rows(f"SELECT * FROM {table}"), key=str) for table in tables]  # noqa: S608 - ours
    yield
    assert [sorted(place.rows(f"SELECT * FROM {table}"), key=str) for table in tables] == before  # noqa: S608


@pytest.mark.req("R24")
def test_message_that_confirms_is_the_source_of_the_new_version_and_stands_in_the_candidate(place: Place) -> None:
    candidate = asked(place)
    place.clock.at += timedelta(minutes=1)
    assert place.candidates.accept(A, candidate.id, source="user-message-43", expected_version=1) == 2
    (fact,) = place.store.current(A)
    assert (fact.version, fact.value, fact.source) == (2, "en", "user-message-43")
    assert place.store.revision(A) == 2
    told = place.candidates.inspect(A, candidate.id)
    assert (told.state, told.value, told.version) == (CandidateState.ACCEPTED, None, 2)
    assert (told.decided_by, told.decided_in) == ("confirmation", "user-message-43")
    at = round((NOW + timedelta(minutes=1)).timestamp() * 1_000_000)
    assert place.rows("SELECT value, state, decided_at_us FROM fact_candidates") == [(None, "accepted", at)]
    assert list(place.candidates.pending(A)) == []


@pytest.mark.req("R24")
def test_named_rule_decides_and_stands_in_the_candidate(place: Place) -> None:
    first = place.propose(expires=2e9)
    assert place.candidates.accept(A, first.id, rule="unrivalled", expected_version=0) == 1
    (fact,) = place.store.current(A)
    assert (fact.value, fact.source, fact.expires) == ("en", "user-message-42", 2e9)
    told = place.candidates.inspect(A, first.id)
    assert (told.decided_by, told.decided_in, told.version) == ("unrivalled", None, 1)
    rival = place.propose(value="de", source="user-message-44")
    with unchanged(place), pytest.raises(RuleDeclined) as caught:
        place.candidates.accept(A, rival.id, rule="unrivalled", expected_version=1)
    assert caught.value.facts == {"rule": "unrivalled"}
    assert place.candidates.accept(A, rival.id, rule="always", expected_version=1) == 2
    assert place.values() == {"language": "de"}


def test_rule_sees_what_is_current_and_nothing_that_is_not(place: Place) -> None:
    seen: list[tuple[Fact | None, Candidate]] = []

    def watching(current: Fact | None, candidate: Candidate) -> bool:
        seen.append((current, candidate))
        return False

    candidates = place.candidates.under({"watching": watching})
    place.tell(A, "theme", "dark", "user-message-41")
    place.tell(USER_2, "language", "fr", "theirs")
    place.hear(A, YES)
    place.store.put(A, "language", "it", YES, NOW.timestamp())
    candidate = place.propose()
    with pytest.raises(RuleDeclined):
        candidates.accept(A, candidate.id, rule="watching", expected_version=1)
    place.tell(A, "language", "zh-CN", YES)
    with pytest.raises(RuleDeclined):
        candidates.accept(A, candidate.id, rule="watching", expected_version=2)
    (fact,) = [fact for fact in place.store.current(A) if fact.key == "language"]
    assert seen == [(None, candidate), (fact, candidate)]


def test_only_true_is_a_yes_of_a_rule_and_one_that_fails_decides_nothing(place: Place) -> None:
    def failing(_current: Fact | None, _candidate: Candidate) -> bool:
        raise ZeroDivisionError

    candidate = asked(place)
    with unchanged(place), pytest.raises(RuleDeclined):
        place.candidates.accept(A, candidate.id, rule="truthy", expected_version=1)
    with unchanged(place), pytest.raises(ZeroDivisionError):
        place.candidates.under({"failing": failing}).accept(A, candidate.id, rule="failing", expected_version=1)


@pytest.mark.req("R24")
def test_acceptance_names_a_confirmation_or_a_rule_and_not_both_or_none(place: Place) -> None:
    candidate = asked(place)
    for named in ({}, {"source": YES, "rule": "always"}, {"rule": "made-up"}):
        with unchanged(place), pytest.raises(InvalidRequest):
            place.candidates.accept(A, candidate.id, expected_version=1, **named)
    for version in (-1, True, None):
        with unchanged(place), pytest.raises(InvalidRequest):
            place.candidates.accept(A, candidate.id, source=YES, expected_version=version)  # type: ignore[arg-type]
    for name in ("", "Not A Name", "confirmation"):
        with pytest.raises(InvalidRequest):
            Candidates(place.engine, GATE, place.clock, {name: always})


@pytest.mark.req("R24")
def test_only_a_message_of_the_user_in_this_scope_confirms(place: Place) -> None:
    candidate = asked(place)
    place.hear(A, "a-document", "document")
    place.hear(A, "a-summary", "model")
    place.hear(USER_2, "theirs")
    place.hear(replace(A, project="project-B"), "elsewhere")
    place.hear(replace(A, project=None), "in-general")
    for source in ("a-document", "a-summary", "theirs", "elsewhere", "in-general", "nobodys"):
        with unchanged(place), pytest.raises(NotConfirmed) as caught:
            place.candidates.accept(A, candidate.id, source=source, expected_version=1)
        assert source not in f"{caught.value}{caught.value.facts}"
    assert place.candidates.accept(A, candidate.id, source=YES, expected_version=1) == 2


@pytest.mark.req("R19")
def test_fact_that_was_corrected_meanwhile_is_a_conflict_and_the_candidate_waits_on(place: Place) -> None:
    candidate = asked(place)
    place.tell(A, "language", "de", "user-message-44")
    with unchanged(place), pytest.raises(VersionConflict) as caught:
        place.candidates.accept(A, candidate.id, source=YES, expected_version=1)
    assert caught.value.version == 2
    assert place.candidates.accept(A, candidate.id, source=YES, expected_version=2) == 3


def test_same_acceptance_again_tells_the_same_version_and_writes_nothing(place: Place) -> None:
    one, other = asked(place), place.propose(key="theme", value="dark")
    for _ in range(2):
        assert place.candidates.accept(A, one.id, source=YES, expected_version=1) == 2
        assert place.candidates.accept(A, other.id, rule="always", expected_version=0) == 1
        assert place.store.revision(A) == 3
    place.tell(A, "language", "de", "user-message-44")
    with unchanged(place):
        assert place.candidates.accept(A, one.id, source=YES, expected_version=1) == 2
        for named in ({"rule": "always"}, {"source": "user-message-44"}):
            with pytest.raises(CandidateClosed) as caught:
                place.candidates.accept(A, one.id, expected_version=3, **named)
            assert caught.value.facts == {"state": CandidateState.ACCEPTED}
        with pytest.raises(CandidateClosed):
            place.candidates.reject(A, one.id)


def test_rejected_candidate_has_no_value_and_is_accepted_by_nothing(place: Place) -> None:
    candidate = asked(place)
    for _ in range(2):
        place.candidates.reject(A, candidate.id)
        assert place.rows("SELECT state, value, version FROM fact_candidates") == [("rejected", None, None)]
    with unchanged(place):
        for named in ({"source": YES}, {"rule": "always"}):
            with pytest.raises(CandidateClosed) as caught:
                place.candidates.accept(A, candidate.id, expected_version=1, **named)
            assert caught.value.facts == {"state": CandidateState.REJECTED}
    assert (place.values(), place.store.revision(A)) == ({"language": "zh-CN"}, 1)


def test_rejecting_one_leaves_the_others(place: Place) -> None:
    mine, theirs = place.propose(), place.propose(USER_2)
    other = place.propose(key="theme", value="dark")
    place.candidates.reject(A, mine.id)
    assert [each.id for each in place.candidates.pending(A)] == [other.id]
    assert [each.value for each in place.candidates.pending(USER_2)] == [theirs.value]


def test_blocked_candidate_is_accepted_by_nothing(place: Place) -> None:
    candidate = asked(place)
    place.execute("UPDATE fact_candidates SET state = 'blocked', value = NULL")
    with unchanged(place):
        for named in ({"source": YES}, {"rule": "always"}):
            with pytest.raises(CandidateClosed) as caught:
                place.candidates.accept(A, candidate.id, expected_version=1, **named)
            assert caught.value.facts == {"state": CandidateState.BLOCKED}
        with pytest.raises(CandidateClosed):
            place.candidates.reject(A, candidate.id)


def test_candidate_that_has_expired_is_accepted_by_nothing_and_may_be_blanked(place: Place) -> None:
    place.hear(A, YES)
    candidate = place.propose(expires=NOW.timestamp() + 60)
    place.clock.at += timedelta(seconds=60)
    with unchanged(place), pytest.raises(CandidateClosed) as caught:
        place.candidates.accept(A, candidate.id, source=YES, expected_version=0)
    assert caught.value.facts == {"state": CandidateState.EXPIRED}
    place.candidates.reject(A, candidate.id)
    assert place.rows("SELECT value FROM fact_candidates") == [(None,)]


@pytest.mark.req("R150")
@pytest.mark.case(26)
@pytest.mark.parametrize("named", [{"source": YES}, {"rule": "always"}], ids=["confirmed", "rule"])
@pytest.mark.parametrize(
    ("kind", "value", "refusal"),
    [
        (SelectorKind.KEY, "language", Refusal.KEY_TOMBSTONED),
        (SelectorKind.SOURCE, "user-message-42", Refusal.SOURCE_TOMBSTONED),
        (SelectorKind.SUBJECT, None, Refusal.SOURCE_TOMBSTONED),
    ],
)
def test_what_was_forgotten_is_not_taken_by_a_late_yes(
    place: Place, kind: SelectorKind, value: str | None, refusal: Refusal, named: dict[str, str]
) -> None:
    candidate = asked(place)
    place.tell(A, "language", "en", "user-message-42")
    proposed = place.rows("SELECT * FROM fact_candidates")
    place.forget(kind, value)
    # As it stands under a hold, or in a database that was put back: the candidate is still there.
    with sa.create_engine(place.url, poolclass=sa.NullPool).begin() as connection:
        connection.exec_driver_sql("DELETE FROM fact_candidates")
        table = sa.Table("fact_candidates", sa.MetaData(), autoload_with=connection)
        connection.execute(table.insert().values(proposed[0]))
    with unchanged(place), pytest.raises(GateRefused) as caught:
        place.candidates.accept(A, candidate.id, expected_version=0, **named)
    assert caught.value.refusal is refusal
    assert place.values() == {}


def test_yes_that_was_forgotten_confirms_nothing(place: Place) -> None:
    candidate = asked(place)
    place.forget(SelectorKind.SOURCE, YES)
    with unchanged(place), pytest.raises(GateRefused) as caught:
        place.candidates.accept(A, candidate.id, source=YES, expected_version=1)
    assert caught.value.refusal is Refusal.SOURCE_TOMBSTONED
    assert place.candidates.inspect(A, candidate.id).state is CandidateState.PENDING
