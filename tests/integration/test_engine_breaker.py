"""A store that is down: after five failed calls in a row it is left alone, then asked with one unit."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from orchestrator import Permanent, StoreUnreachable
from orchestrator.domain.unit import Phase
from orchestrator.service.run_batch import run_batch
from tests.fakes import Bench
from tests.integration.engine_harness import database_now, fail_in, let_time_pass

PAUSE = timedelta(seconds=30)


def call(stage: Bench, batch: int = 1) -> int:
    """Let a worker run one batch of revoke; give how many units it claimed."""
    return run_batch(replace(stage.engine, batch=batch), "source", Phase.REVOKE)


def claim(stage: Bench, owner: str = "w") -> int:
    return len(stage.ledger.claim("source", Phase.REVOKE, owner=owner, limit=9))


def breaker(stage: Bench) -> list[tuple[object, ...]]:
    return stage.rows("SELECT breaker, failures FROM adapter_health WHERE adapter = 'source'")


def work(_phase: str, _orders: object) -> None:
    """Let a call pass."""


def take_down(stage: Bench) -> tuple[str, str]:
    """Let the source fail with five of ten requests, each alone; give one that failed and one that was not tried."""
    for n in range(10):
        stage.file(f"key-{n}")
    stage.source.before = fail_in(Phase.REVOKE)
    assert [call(stage) for _ in range(5)] == [1] * 5
    (failed, *others), (untried, *_) = (
        [str(row[0]) for row in stage.rows(f"SELECT job_id FROM deletion_units WHERE attempts = {n}")]  # noqa: S608
        for n in (1, 0)
    )
    assert len(others) == 4
    return failed, untried


def test_four_failures_in_a_row_leave_a_store_open_for_work(stage: Bench) -> None:
    for n in range(10):
        stage.file(f"key-{n}")
    for _ in range(2):
        stage.source.before = fail_in(Phase.REVOKE)
        assert [call(stage) for _ in range(4)] == [1] * 4
        assert breaker(stage) == [("closed", 4)]
        stage.source.before = work
        assert call(stage) == 1
        assert breaker(stage) == [("closed", 0)]


def test_five_failures_in_a_row_keep_every_unit_unclaimed_until_the_pause_is_over(stage: Bench) -> None:
    earliest = database_now(stage)
    take_down(stage)
    latest = database_now(stage)
    assert breaker(stage) == [("open", 5)]
    ((until,),) = stage.rows("SELECT open_until_us - 30000000 FROM adapter_health")
    assert earliest <= until <= latest  # type: ignore[operator]
    stage.source.before = work
    for passed in (timedelta(0), PAUSE - timedelta(seconds=5)):
        let_time_pass(stage, passed)
        assert ("source", Phase.REVOKE) in stage.ledger.due(["source"])
        assert (claim(stage), stage.ledger.announce()) == (0, [])
    let_time_pass(stage, timedelta(seconds=5))
    assert stage.ledger.announce() == [("source", Phase.REVOKE)]
    assert claim(stage) == 1


def test_one_unit_alone_is_the_probe(stage: Bench) -> None:
    take_down(stage)
    let_time_pass(stage, PAUSE)
    assert [claim(stage, "a"), claim(stage, "b")] == [1, 0]
    stage.end_leases()  # a probe that has died makes room for another
    stage.ledger.sweep()
    assert [claim(stage, "c"), claim(stage, "d")] == [1, 0]


def test_probe_that_succeeds_lets_batches_run_again(stage: Bench) -> None:
    take_down(stage)
    let_time_pass(stage, PAUSE)
    stage.source.before = work
    assert call(stage, batch=9) == 1
    assert breaker(stage) == [("closed", 0)]
    assert call(stage, batch=9) == 4  # those that were never tried


def test_probe_that_fails_begins_the_pause_anew(stage: Bench) -> None:
    take_down(stage)
    let_time_pass(stage, PAUSE)
    assert call(stage, batch=9) == 1
    assert breaker(stage) == [("open", 6)]
    assert claim(stage) == 0
    let_time_pass(stage, PAUSE - timedelta(seconds=5))
    assert claim(stage) == 0
    let_time_pass(stage, timedelta(seconds=5))
    assert claim(stage) == 1


def test_retry_makes_the_next_claim_a_probe(stage: Bench) -> None:
    failed, _ = take_down(stage)
    assert claim(stage) == 0
    assert stage.ledger.retry(failed) == 1
    stage.source.before = work
    assert call(stage, batch=9) == 1
    assert breaker(stage) == [("closed", 0)]


def test_retry_of_a_job_of_which_nothing_has_failed_is_no_probe(stage: Bench) -> None:
    _, untried = take_down(stage)
    assert stage.ledger.retry(untried) == 0
    assert claim(stage) == 0


@pytest.mark.parametrize(("error", "state"), [(Permanent, "closed"), (StoreUnreachable, "open"), (ValueError, "open")])
def test_order_that_is_refused_does_not_make_a_store_one_that_is_down(
    stage: Bench, error: type[Exception], state: str
) -> None:
    for n in range(6):
        stage.file(f"key-{n}")
    stage.source.before = fail_in(Phase.REVOKE, error=error)
    assert [call(stage) for _ in range(5)] == [1] * 5
    assert breaker(stage)[0][0] == state
    assert claim(stage) == (1 if state == "closed" else 0)
