"""Accepting a request: what a reference may say, and what is logged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from orchestrator import InvalidRequest, Selector, SelectorKind
from orchestrator.service.accept import check_reference
from tests.fakes import Bench, bench

PASSPORT = Selector(kind=SelectorKind.KEY, value="passport")
TURN = Selector(kind=SelectorKind.SOURCE, value="trip-planning/turn-6")


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Bench]:
    made = bench(tmp_path)
    yield made
    made.ledger.engine.dispose()


@pytest.mark.req("R135")
@pytest.mark.parametrize(
    ("reference", "user", "selector"),
    [
        ("p1234567", "anna", Selector(kind=SelectorKind.KEY, value="P1234567")),
        ("case/p1234567", "anna", Selector(kind=SelectorKind.MEMORY, value="fact P1234567")),
        ("passport-4", "anna", PASSPORT),
        ("re-passport", "anna", Selector(kind=SelectorKind.KEY, value="Passport Number")),
        ("trip-planning/turn-6", "anna", TURN),
        ("re/trip-planning/turn-6/b", "anna", TURN),
        ("turn-6", "anna", Selector(kind=SelectorKind.SOURCE, value="turn-6")),
        ("letter-of-meier", "anna", Selector(kind=SelectorKind.SOURCE, value="inbox/mail-meier")),
        ("theme", "anna", Selector(kind=SelectorKind.KEY, value="theme")),
        ("key", "anna", Selector(kind=SelectorKind.KEY, value="key")),
        ("case-meier", "meier@example.org", PASSPORT),
        ("case-anna-1", "Anna", PASSPORT),
        ("case-meier", "meier@example.org", None),
    ],
)
def test_reference_that_repeats_what_is_forgotten_is_refused(
    reference: str, user: str, selector: Selector | None
) -> None:
    with pytest.raises(InvalidRequest, match="case number") as caught:
        check_reference(reference, user, selector)
    assert reference not in str(caught.value)


@pytest.mark.req("R135")
@pytest.mark.parametrize(
    ("reference", "user", "selector"),
    [
        ("trip-planning/turn-20", "anna", PASSPORT),
        ("trip-planning/turn-20", "anna", TURN),
        ("case-2026-17", "user-2026", PASSPORT),
        ("case-6", "anna", TURN),
        ("case-7", "anna", Selector(kind=SelectorKind.KEY, value="case")),
        ("ticket/12", "anna", Selector(kind=SelectorKind.SUBJECT)),
        ("key-4", "anna", Selector(kind=SelectorKind.KEY, value="a key of the user")),
        (None, "anna", PASSPORT),
    ],
)
def test_reference_that_says_where_it_was_asked_is_kept(
    reference: str | None, user: str, selector: Selector | None
) -> None:
    check_reference(reference, user, selector)


def test_accepting_logs_the_id_of_a_new_job_and_nothing_personal(stage: Bench) -> None:
    with capture_logs() as logs:
        job = stage.file("P1234567", idempotency_key="case-1")
        assert stage.file("P1234567", idempotency_key="case-1") == job
    assert logs == [{"event": "job.accepted", "job_id": job, "purpose": "erase", "log_level": "info"}]
