"""A control database of the first release is brought to this one while jobs are in flight, and none of them notices."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest
import sqlalchemy as sa
from alembic import command

from orchestrator.domain.job import Result
from orchestrator.domain.states import JobState
from orchestrator.store import migrate
from tests.fakes import ANNA, bench
from tests.integration.first_release import (
    PAGE,
    PHASES,
    STATEMENTS,
    FirstRelease,
    carry,
    content,
    database,
    stock,
    to,
    url,
)

__all__ = ["database", "url"]


@pytest.mark.parametrize("count", [2, 2500])
@pytest.mark.parametrize("phase", PHASES)
def test_job_in_flight_survives_the_migration_in_any_phase(
    database: sa.Engine, url: str, tmp_path: Path, phase: str, count: int
) -> None:
    """With several pages, the first of the phase is answered; a copy that came late has to be seen as well."""
    facts, answered = [f"fact-{n:06}" for n in range(count)], 0 if count < PAGE else 1
    with database.begin() as connection:
        old = FirstRelease(connection, facts, uuid4())
        carry(old, phase, answered)
    assert migrate.pending(database)
    stage = bench(tmp_path, url=url)
    assert not migrate.pending(database)
    gone = {"erase": answered * PAGE, "verify": count}.get(phase, 0)
    stock(stage, facts, gone)
    stage.copies.records.add((ANNA.tenant, ANNA.user, facts[-1], "late"))
    stage.run()
    view = stage.view(str(old.job))
    assert (view.state, view.result, view.parked) == (JobState.COMPLETED, Result.ERASED, ())
    assert {r[2] for r in stage.source.records} == {"theme"}
    assert {r[2] for r in stage.copies.records} == {"anna-theme-000000"}
    unlike = "SELECT u.id FROM deletion_units u LEFT JOIN deletion_receipts r ON r.unit_id = u.id WHERE "
    assert stage.rows(f"{unlike} u.status <> 'done' OR (u.phase <> 'find') <> (r.id IS NOT NULL)") == []
    receipts = stage.ledger.receipts(view.id)
    assert sum(r.erased for r in receipts) == 2 * count + 1
    first = [r for r in receipts if (r.phase, r.round) == ("erase", 1)]
    assert sum(r.expected for r in first) in {2 * count, 2 * count + 1}  # the late copy, where find was not over
    stage.ledger.engine.dispose()


def test_claim_of_a_worker_of_the_first_release_is_taken_back_after_the_migration(
    database: sa.Engine, url: str, tmp_path: Path
) -> None:
    with database.begin() as connection:
        old = FirstRelease(connection, ["fact-0"], uuid4())
        carry(old, "erase", 0)
        old.run("claim", old.unit("copies", "erase", 0))
    stage = bench(tmp_path, url=url)
    stock(stage, old.facts, 0)
    stage.run()
    assert stage.view(str(old.job)).state is JobState.DERIVED_CLEANUP
    stage.end_leases()
    assert stage.ledger.sweep().rescued == 1
    stage.run()
    assert stage.view(str(old.job)).state is JobState.COMPLETED
    assert {r[2] for r in stage.copies.records} == {"anna-theme-000000"}
    stage.ledger.engine.dispose()


def test_upgrading_twice_changes_nothing(database: sa.Engine) -> None:
    with database.begin() as connection:
        carry(FirstRelease(connection, ["fact-0", "fact-1"], uuid4()), "verify", 0)
    migrate.upgrade(database)
    once = content(database)
    migrate.upgrade(database)
    assert content(database) == once
    assert not migrate.pending(database)


def test_upgrade_loses_no_row_of_the_first_release(database: sa.Engine) -> None:
    with database.begin() as connection:
        carry(FirstRelease(connection, ["fact-0", "fact-1"], uuid4()), "verify", 1)
    before = content(database)
    migrate.upgrade(database)
    after = content(database)
    kept = before.keys() - {"alembic_version", "deletion_units"}
    assert {table: after[table] for table in kept} == {table: before[table] for table in kept}
    assert len(after["deletion_units"]) == len(before["deletion_units"])


def test_there_is_no_way_back_and_trying_it_changes_nothing(database: sa.Engine) -> None:
    migrate.upgrade(database)
    before = content(database)
    with pytest.raises(Exception, match="is not taken back"):
        to(database, "0001", command.downgrade)
    assert content(database) == before
    assert not migrate.pending(database)


def test_statements_of_the_first_release_run_on_the_new_schema(database: sa.Engine, url: str, tmp_path: Path) -> None:
    """A worker that was begun before the migration goes on: what was added to its tables may be left out."""
    migrate.upgrade(database)
    facts = [f"fact-{n:06}" for n in range(1500)]
    used = set[str]()
    with database.begin() as connection:
        sa.event.listen(connection, "before_cursor_execute", lambda *call: used.add(call[2]))
        old = FirstRelease(connection, facts, uuid4())
        carry(old, "verify", 2)
        other = FirstRelease(connection, facts[:1], uuid4())
        carry(other, "erase", 0)
        unit, parked = other.unit("copies", "erase", 0), other.unit("source", "erase", 0)
        for name in ("claim", "renew", "attempt", "again"):
            other.run(name, unit)
        for name in ("claim", "park"):
            other.run(name, parked)
        for name in ("carry", "round"):
            other.run(name)
        for name in ("announce", "announce", "heard"):
            other.run(name, {"adapter": "copies"})
    assert len(used) == len(STATEMENTS) + 1  # and the one that reads the clock
    stage = bench(tmp_path, url=url)
    done, failing = stage.view(str(old.job)), stage.view(str(other.job))
    assert (done.state, done.result) == (JobState.COMPLETED, Result.ERASED)
    assert (failing.state, failing.round) == (JobState.DERIVED_CLEANUP, 2)
    assert failing.parked == (("source", "erase", "permanent_error"),)
    added = "SELECT DISTINCT deadline_us, known_adapter FROM deletion_units"
    assert stage.rows(added) == [(None, None)]
    stage.ledger.engine.dispose()
