"""Decisions that break off or come together: each is done as a whole, once, or not at all, on each database."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
import sqlalchemy as sa

from adapters.memory.candidates import (
    Candidate,
    CandidateClosed,
    CandidateState,
    CandidateUnknown,
    Rule,
)
from orchestrator import GateRefused, Refused, SelectorKind
from tests.integration.candidates_harness import YES, A, Place, asked, opened, place, shared_url, url

__all__ = ["place", "shared_url", "url"]


@pytest.fixture
def rules() -> Mapping[str, Rule]:
    return {"always": lambda _current, _candidate: True}


def broken_off(place: Place, call: Callable[[], int]) -> Iterator[int]:
    """Break a call off before each of its statements and before its commit, until it is through."""

    class Broken(Exception):
        pass

    number, passed = 0, 0

    def strike(*_: object) -> None:
        nonlocal passed
        passed += 1
        if passed == number:
            raise Broken

    for name in ("before_cursor_execute", "commit"):
        sa.event.listen(place.engine, name, strike)
    try:
        while True:
            number, passed = number + 1, 0
            try:
                call()
            except Broken:
                yield number
            else:
                return
    finally:
        for name in ("before_cursor_execute", "commit"):
            sa.event.remove(place.engine, name, strike)


@pytest.mark.req("R24")
@pytest.mark.parametrize("named", [{"source": YES}, {"rule": "always"}], ids=["confirmed", "rule"])
def test_fault_anywhere_in_an_acceptance_leaves_the_candidate_pending(place: Place, named: dict[str, str]) -> None:
    candidate = asked(place)
    candidates, faults = place.candidates, 0
    before = [place.rows("SELECT * FROM facts"), place.rows("SELECT * FROM fact_revisions")]

    def accept() -> int:
        return candidates.accept(A, candidate.id, expected_version=1, **named)

    for _ in broken_off(place, accept):
        faults += 1
        assert place.rows("SELECT state, value, version FROM fact_candidates") == [("pending", "en", None)]
        assert [place.rows("SELECT * FROM facts"), place.rows("SELECT * FROM fact_revisions")] == before
    assert faults > 8, "at least a read, the gate, two writes of facts, the revision, the candidate and the commit"
    assert place.rows("SELECT state, value, version FROM fact_candidates") == [("accepted", None, 2)]
    assert (place.values(), place.store.revision(A)) == ({"language": "en"}, 2)


@pytest.mark.req("R24")
def test_fault_anywhere_in_a_rejection_leaves_the_candidate_pending(place: Place) -> None:
    candidate, candidates = asked(place), place.candidates

    def reject() -> int:
        candidates.reject(A, candidate.id)
        return 0

    for _ in broken_off(place, reject):
        (row,) = place.rows("SELECT state, value FROM fact_candidates")
        # The log is emptied after the commit: a rejection whose emptying fails is one.
        assert row in {("pending", "en"), ("rejected", None)}
    assert place.rows("SELECT state, value FROM fact_candidates") == [("rejected", None)]


def test_decisions_at_once_are_one_decision(place: Place) -> None:
    place.hear(A, YES)
    for number in range(12):
        candidate = place.propose(key=f"key-{number}")
        barrier = Barrier(2)

        def decide(call: Callable[[], object], barrier: Barrier = barrier) -> object:
            barrier.wait(20)
            try:
                return call()
            except Refused as error:
                return type(error)

        calls: list[Callable[[], object]] = [
            lambda: place.candidates.accept(A, candidate.id, source=YES, expected_version=0),  # noqa: B023
            lambda: place.candidates.reject(A, candidate.id),  # noqa: B023
        ]
        with ThreadPoolExecutor(2) as pool:
            answers = list(pool.map(decide, calls))
        state = place.candidates.inspect(A, candidate.id).state
        assert (state, answers) in [
            (CandidateState.ACCEPTED, [1, CandidateClosed]),
            (CandidateState.REJECTED, [CandidateClosed, None]),
        ]
        assert (f"key-{number}" in place.values()) == (state is CandidateState.ACCEPTED)


def test_two_acceptances_at_once_write_one_version(place: Place) -> None:
    place.hear(A, YES)
    for number in range(12):
        candidate = place.propose(key=f"key-{number}")
        calls = [lambda: place.candidates.accept(A, candidate.id, source=YES, expected_version=0)] * 4  # noqa: B023
        with ThreadPoolExecutor(4) as pool:
            assert set(pool.map(lambda call: call(), calls)) == {1}
    assert place.store.revision(A) == 12


@pytest.mark.req("R144")
def test_acceptance_beside_a_revocation_leaves_nothing_of_the_key(place: Place) -> None:
    place.hear(A, YES)
    seen = set()
    for number in range(12):
        key = f"key-{number}"
        candidate, barrier = place.propose(key=key, value=f"en-{number}"), Barrier(2)

        def accept(candidate: Candidate = candidate, barrier: Barrier = barrier) -> type[Exception] | None:
            barrier.wait(20)
            try:
                place.candidates.accept(A, candidate.id, source=YES, expected_version=0)
            except Refused as error:
                return type(error)
            return None

        with ThreadPoolExecutor(1) as pool:
            accepted = pool.submit(accept)
            barrier.wait(20)
            place.forget(SelectorKind.KEY, key)
            seen.add(accepted.result(20))
        assert key not in place.values()
        assert place.rows(f"SELECT count(*) FROM facts WHERE value = 'en-{number}'") == [(0,)]  # noqa: S608 - ours
        assert place.rows(f"SELECT count(*) FROM fact_candidates WHERE value = 'en-{number}'") == [(0,)]  # noqa: S608
    assert seen <= {None, GateRefused, CandidateClosed, CandidateUnknown}


def test_rejected_value_is_not_in_the_files(tmp_path: Path) -> None:
    with opened(f"sqlite:///{tmp_path / 'm.db'}") as place:
        candidate = place.propose(value="P1234567 is the passport number")

        def files() -> bytes:
            return b"".join(file.read_bytes() for file in sorted(tmp_path.glob("m.db*")))

        assert b"P1234567" in files()
        place.candidates.reject(A, candidate.id)
        assert b"P1234567" not in files()
        assert candidate.id.encode() in files(), "the look sees what is there"
