"""What a report reads of the control database: one moment of it, on either database, and nobody else's job."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest
import sqlalchemy as sa

from orchestrator import StoreUnreachable
from orchestrator.cli import report as cli
from orchestrator.domain.codes import ErrorCode, HoldReason, Parked, WaiverReason
from orchestrator.domain.errors import JobNotFound
from orchestrator.domain.job import Waiver
from orchestrator.domain.retry import Park
from orchestrator.domain.states import JobState
from orchestrator.domain.unit import Failed, Phase
from orchestrator.service.hold import HoldRequest, place
from orchestrator.service.outstanding import Why
from orchestrator.service.report import Report, Standing, report
from orchestrator.store import report as reading
from orchestrator.store import tables as t
from tests.fakes import ANNA, Bench, bench, fill
from tests.integration.engine_harness import fail_in, run_until

both = pytest.mark.parametrize("stage", ["sqlite", "postgresql"], indirect=True)


@pytest.fixture
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    url = request.getfixturevalue("postgres_url") if getattr(request, "param", "") == "postgresql" else None
    made = bench(tmp_path, url=url)
    yield made
    made.ledger.engine.dispose()


def told(stage: Bench, job: str) -> Report:
    facts = reading.read(stage.ledger.engine, job)
    return report(facts, at=stage.clock.now(), enabled=("source", "copies"), installed=(), told=())


def standings(of: Report) -> dict[str, Standing]:
    return {store.name: store.standing for store in of.stores}


def test_report_grows_with_what_is_done(stage: Bench) -> None:
    fill(stage, count=3)
    job = stage.file()
    run_until(stage, "copies", Phase.ERASE)
    before = told(stage, job)
    assert standings(before) == {"source": Standing.OUTSTANDING, "copies": Standing.OUTSTANDING}
    assert {(o.adapter, o.phase, o.why) for o in before.outstanding} >= {("copies", Phase.ERASE, Why.WAITING)}
    assert before.stores[0].revoked == 3
    stage.run()
    after = told(stage, job)
    assert (after.headline, after.outstanding) == ("2 done", ())
    assert [(s.name, s.revoked, s.erased) for s in after.stores] == [("source", 3, 3), ("copies", None, 6)]


@both
def test_failing_store_is_told_with_its_error_and_its_next_attempt(stage: Bench) -> None:
    fill(stage)
    job = stage.file()
    stage.copies.before = fail_in(Phase.ERASE)
    run_until(stage, "copies", Phase.ERASE)
    stage.run()
    (left,) = [o for o in told(stage, job).outstanding if o.phase is Phase.ERASE]
    assert (left.why, left.last_error, left.units) == (Why.RETRIED, ErrorCode.STORE_UNREACHABLE, 1)
    query = "SELECT attempts, next_attempt_at_us FROM deletion_units WHERE last_error_code IS NOT NULL"
    ((attempts, due),) = stage.rows(query)
    assert left.next_attempt_at is not None
    assert left.attempts == attempts
    assert int(left.next_attempt_at.timestamp() * 1_000_000) // 1000 == int(str(due)) // 1000
    # A store that is left alone is asked for nothing before that is over.
    until = int(str(due)) + 60_000_000
    with stage.ledger.engine.begin() as connection:
        shut = t.health.update().where(t.health.c.adapter == "copies")
        connection.execute(shut.values(breaker="open", open_until_us=until))
    (later,) = [o for o in told(stage, job).outstanding if o.phase is Phase.ERASE]
    assert later.next_attempt_at == left.next_attempt_at + timedelta(minutes=1)


def test_parked_unit_is_told_with_what_a_person_can_do(stage: Bench) -> None:
    fill(stage)
    job = stage.file()
    (unit,) = stage.take("source", Phase.REVOKE, owner := str(uuid4()))
    failed = Failed(claimed=unit, code=ErrorCode.PERMANENT, then=Park(reason=Parked.PERMANENT_ERROR))
    assert [o.why for o in told(stage, job).outstanding] == [Why.RUNNING]
    stage.ledger.commit(owner, [failed], started_at=stage.clock.now())
    (left,) = told(stage, job).outstanding
    assert (left.why, left.parked, left.next_attempt_at) == (Why.PARKED, Parked.PERMANENT_ERROR, None)
    assert f"expunge retry {job}" in str(left.to_do)


def place_hold(stage: Bench, reason: HoldReason, *items: str) -> str:
    asked = HoldRequest(tenant=ANNA.tenant, user=ANNA.user, items=items, reason=reason, requested_by="tester")
    return str(place(asked, stage.acceptance)[0])


@both
def test_held_units_name_the_holds_that_cover_them_and_their_reasons(stage: Bench) -> None:
    fill(stage, count=2)
    job = stage.file()
    first = place_hold(stage, HoldReason.LITIGATION)
    foreign = place_hold(stage, HoldReason.DISPUTE)
    with stage.ledger.engine.begin() as connection:
        connection.execute(t.holds.update().where(t.holds.c.id == foreign).values(tenant="tenant-b"))
    released = place_hold(stage, HoldReason.INVESTIGATION)
    stage.ledger.release(released, by_ref="r" * 64)
    (left,) = told(stage, job).outstanding
    assert (left.why, left.next_attempt_at) == (Why.HELD, None)
    assert [(h.id, h.reason) for h in left.holds] == [(first, HoldReason.LITIGATION)]
    stage.ledger.release(first, by_ref="r" * 64)
    assert [o.why for o in told(stage, job).outstanding] == [Why.WAITING]


def test_hold_on_one_item_is_told_of_the_units_of_that_item_alone(stage: Bench) -> None:
    fill(stage, count=2)
    item = place_hold(stage, HoldReason.DISPUTE, "anna-passport-000001")
    job = stage.file()
    stage.run()
    said = told(stage, job)
    assert {(o.phase, o.why, tuple(h.id for h in o.holds)) for o in said.outstanding} >= {
        (Phase.REVOKE, Why.HELD, (item,))
    }
    assert standings(said)["source"] is Standing.OUTSTANDING
    assert said.stores[0].revoked == 1
    stage.ledger.release(item, by_ref="r" * 64)
    stage.run()
    after = told(stage, job)
    # The source has named the first record twice by now.
    assert (after.headline, after.stores[0].revoked, after.stores[0].erased) == ("2 done", 2, 2)


@both
def test_waived_store_is_named_with_the_reference_of_who_did_it(stage: Bench) -> None:
    fill(stage)
    job = stage.file()
    stage.copies.before = fail_in(Phase.ERASE)
    waiver = Waiver(adapter="copies", reason=WaiverReason.STORE_GONE, granted_by_ref="f" * 64)
    run_until(stage, "copies", Phase.ERASE)
    stage.ledger.waive(job, waiver)
    stage.run()
    said = told(stage, job)
    assert standings(said) == {"source": Standing.DONE, "copies": Standing.WAIVED}
    assert said.headline == "1 done, 1 waived (copies)"
    assert [(w.adapter, w.reason, w.granted_by_ref) for w in said.waived] == [
        ("copies", WaiverReason.STORE_GONE, "f" * 64)
    ]
    assert [(o.adapter, o.why, o.next_attempt_at) for o in said.outstanding] == [("copies", Why.LEFT_UNDONE, None)]
    text = "\n".join(cli._plain(said))
    assert ("f" * 64 in text, WaiverReason.STORE_GONE.sentence in text) == (True, True)


def test_copies_that_name_no_origin_are_not_covered(stage: Bench) -> None:
    fill(stage)
    job = stage.file()
    stage.run()
    with stage.ledger.engine.begin() as connection:
        connection.exec_driver_sql(
            "UPDATE deletion_units SET no_lineage = 4 WHERE phase = 'find' AND adapter = 'copies'"
        )
    said = told(stage, job)
    assert said.not_covered.no_lineage == {"copies": 4}
    assert "copies: 4 copies that name no origin" in "\n".join(cli._plain(said))


def test_unknown_job_and_another_tenants_are_told_apart_by_nobody(stage: Bench) -> None:
    job = stage.file()
    for ident, tenant in ((job, "tenant-b"), ("no-such-job", None)):
        with pytest.raises(JobNotFound):
            reading.read(stage.ledger.engine, ident, tenant=tenant)
        with pytest.raises(JobNotFound):
            reading.undone(stage.ledger.engine, ident, tenant=tenant)


def test_report_is_of_one_moment_though_a_worker_goes_on_meanwhile(postgres_url: str, tmp_path: Path) -> None:
    stage = bench(tmp_path, url=postgres_url)
    fill(stage)
    job = stage.file()
    engine = stage.ledger.engine
    left = [stage.run]

    @sa.event.listens_for(engine, "after_cursor_execute")
    def work(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if left and "deletion_jobs" in statement:
            left.pop()()

    facts = reading.read(engine, job)
    assert (left, stage.view(job).state) == ([], JobState.COMPLETED), "the worker has done it all meanwhile"
    assert (facts.job.state, facts.receipts, [u.phase for u in facts.undone]) == (
        JobState.REQUESTED,
        (),
        [Phase.REVOKE],
    )
    engine.dispose()


def test_store_that_fails_for_ever_is_never_told_as_done(stage: Bench) -> None:
    fill(stage)
    job = stage.file()
    stage.copies.before = fail_in(Phase.VERIFY, error=StoreUnreachable)
    for _ in range(7):
        stage.run()
        stage.skip_pauses()
    said = told(stage, job)
    assert standings(said) == {"source": Standing.DONE, "copies": Standing.OUTSTANDING}
    assert said.job.state is JobState.DERIVED_CLEANUP
