"""Requests that come in at the same moment: under one idempotency key one of them is filed, and all are answered."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from uuid import UUID

import pytest

from orchestrator import Reason, Selector, SelectorKind
from orchestrator.domain.errors import IdempotencyConflict
from orchestrator.ids import uuid7
from orchestrator.service.accept import Request, _job, accept_all
from orchestrator.store.jobs import accept
from tests.fakes import ANNA, Bench, bench, together

CALLERS, KEYS = 6, 12


@pytest.fixture(params=["sqlite", "postgresql"])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    url = request.getfixturevalue("postgres_url") if request.param == "postgresql" else None
    made = bench(tmp_path, url=url)
    yield made
    made.ledger.engine.dispose()


@pytest.mark.req("R122")
def test_one_new_key_that_many_file_at_once_is_one_job_and_nobody_is_turned_away(stage: Bench) -> None:
    answers: list[tuple[str, UUID, bool]] = []

    def file(key: str) -> None:
        [(job, new)] = accept_all([request_of(key)], stage.acceptance)
        answers.append((key, job, new))

    for key in keys():
        together(*[partial(file, key)] * CALLERS)
    assert len(answers) == CALLERS * KEYS
    for key in keys():
        mine = [(job, new) for of_key, job, new in answers if of_key == key]
        assert (len({job for job, _ in mine}), sum(new for _, new in mine)) == (1, 1)
    assert_filed_once(stage)


@pytest.mark.parametrize("stage", ["postgresql"], indirect=True)  # on SQLite no writer waits in the middle
def test_batches_that_share_their_keys_in_another_order_do_not_stop_each_other(stage: Bench) -> None:
    """One transaction has the first key and wants the second; another one comes with both, the second one first."""
    jobs = [_job(request_of(key), stage.acceptance) for key in ("case-1", "case-2")]
    first, second = sorted(jobs, key=lambda job: str(job.idempotency_ref))
    answers: list[tuple[UUID, bool]] = []

    def file_both() -> None:
        answers.extend(stage.ledger.accept([replace(second, id=uuid7()), replace(first, id=uuid7())]))

    other = threading.Thread(target=file_both)
    with stage.ledger.engine.begin() as connection:
        assert accept(connection, [first], stage.ledger.rules.stores, "test") == [(first.id, True)]
        other.start()
        while stage.rows("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'") == [(0,)]:
            time.sleep(0.01)
        assert accept(connection, [second], stage.ledger.rules.stores, "test") == [(second.id, True)]
    other.join()
    assert answers == [(second.id, False), (first.id, False)]


def test_key_that_another_request_takes_at_the_same_moment_is_a_conflict(stage: Bench) -> None:
    told: list[str] = []

    def file(request: Request) -> None:
        try:
            [(_, new)] = accept_all([request], stage.acceptance)
            told.append("filed" if new else "known")
        except IdempotencyConflict:
            told.append("conflict")

    for key in keys():
        asked = [request_of(key), replace(request_of(key), reference="case-8")]
        together(*[partial(file, request) for request in asked])
    assert sorted(told) == ["conflict"] * KEYS + ["filed"] * KEYS
    assert_filed_once(stage)


def test_key_twice_in_one_batch_is_one_job(stage: Bench) -> None:
    asked = [request_of("case-1"), request_of("case-2"), request_of("case-1")]
    (first, new), (second, _), (again, anew) = accept_all(asked, stage.acceptance)
    assert (again, new, anew, first == second) == (first, True, False, False)


def keys() -> list[str]:
    return [f"case-{number}" for number in range(KEYS)]


def request_of(key: str) -> Request:
    selector = Selector(kind=SelectorKind.KEY, value="passport")
    return Request(
        scope=ANNA, selector=selector, reason=Reason.USER_REQUEST, requested_by="tester", idempotency_key=key
    )


def assert_filed_once(stage: Bench) -> None:
    """Each key has one job, with one first unit and one first move."""
    for table in ("deletion_jobs", "deletion_units", "job_transitions"):
        assert stage.rows(f"SELECT count(*) FROM {table}") == [(KEYS,)], table  # noqa: S608 - of this file
