"""What the control database refuses by itself, on SQLite and PostgreSQL, whoever asks: each guard alone.

Every statement breaks one guard and no other. It is shown twice: with the guard it is refused
in that guard's own words, and without the guard it passes, so nothing else would have held it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import psycopg
import pytest
import sqlalchemy as sa

from orchestrator.store.engine import open_database
from orchestrator.store.migrate import upgrade
from tests.postgres import new_database

JOB, OTHER = "00000000-0000-7000-8000-000000000001", "00000000-0000-7000-8000-000000000002"


def job(ident: str, state: str, **changes: object) -> str:
    times = ["revoked_at_us", "cleanup_at_us", "verified_at_us", "completed_at_us"]
    states = ["requested", "source_revoked", "derived_cleanup", "verified", "completed"]
    passed = ["cancelled_at_us"] if state == "cancelled" else times[: states.index(state)]
    ended = state in {"verified", "completed", "cancelled"}
    row: dict[str, object] = {
        "id": ident,
        "tenant": "tenant-a",
        "user_id": None if ended else "anna",
        "project": None if ended else "trips",
        "selector_kind": "key",
        "selector_value": None if ended else "passport",
        "subject_ref": "s",
        "selector_ref": "v",
        "trigger_kind": "request",
        "reason_code": "user_request",
        "requested_by_ref": "r",
        "idempotency_ref": ident,
        "payload_sha256": "p",
        "state": state,
        "requested_at_us": 1,
        **dict.fromkeys(passed, 2),
    }
    return insert("deletion_jobs", row | changes)


def move(old: str | None, new: str) -> str:
    return insert("job_transitions", {"job_id": JOB, "from_state": old, "to_state": new, "at_us": 1, "worker": "w"})


def unit(ident: str, page: int, **changes: object) -> str:
    row: dict[str, object] = {"id": ident, "job_id": JOB, "adapter": "cache", "phase": "erase", "page": page}
    return insert("deletion_units", {**row, "status": "done", "next_attempt_at_us": 1, **changes})


def receipt(ident: str = "receipt-2", unit_id: str = "unit-2", page: int = 2, /, **changes: object) -> str:
    row: dict[str, object] = {"id": ident, "unit_id": unit_id, "job_id": JOB, "adapter": "cache", "page": page}
    said = {"phase": "erase", "outcome": "erased", "round": 1, "attempt": 1, "fence": 1, "body": "b", "salt": "s"}
    counts = {"expected": 2, "erased": 1, "already_absent": 1, "scheduled": 0, "extra": 0, "remaining": 0}
    return insert("deletion_receipts", row | said | counts | {"started_at_us": 1, "finished_at_us": 2} | changes)


def insert(table: str, row: dict[str, object]) -> str:
    values = ["NULL" if v is None else str(v) if isinstance(v, int) else f"'{v}'" for v in row.values()]
    return f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join(values)})"  # noqa: S608 - rows of this file


ROWS = [
    job(JOB, "derived_cleanup"),
    move(None, "requested"),
    move("requested", "source_revoked"),
    move("source_revoked", "derived_cleanup"),
    unit("unit-1", 1),
    unit("unit-2", 2),
    receipt("receipt-1", "unit-1", 1),
]


@dataclass(frozen=True, kw_only=True)
class Guard:
    """A rule of the schema, a statement that breaks it, and the words in which it is refused."""

    name: str
    breaks: str
    says: str
    trigger: tuple[str, str, str] | None = None  # table, name on SQLite, name on PostgreSQL
    index: str | None = None
    unique: tuple[str, tuple[str, ...]] | None = None  # table, and what is taken out of its text on SQLite


def append_only(table: str, short: str, verb: str, breaks: str) -> Guard:
    trigger = (table, f"{short}_no_{verb}", f"{short}_append_only")
    return Guard(name=f"{short} know no {verb}", breaks=breaks, says="append-only", trigger=trigger)


def ids_kept(state: str, **kept: object) -> Guard:
    return Guard(
        name=f"no {next(iter(kept))} in a job that is {state}",
        breaks=job(OTHER, state, **kept),
        says="user_id IS NULL AND project IS NULL AND selector_value IS NULL",
    )


def counts(name: str, says: str, **changes: object) -> Guard:
    return Guard(name=name, breaks=receipt(**changes), says=says)


MOVES = (
    "UPDATE deletion_jobs SET state = 'verified', verified_at_us = 3, "
    "user_id = NULL, project = NULL, selector_value = NULL WHERE state = 'derived_cleanup'"
)
REVOKED = {"phase": "revoke", "outcome": "revoked"}
NOTHING = {"outcome": "nothing_found", "erased": 0}
SCHEDULED = {"outcome": "scheduled", "scheduled": 1, "remaining": 1}
SEEN = {"phase": "verify", "erased": 0, "already_absent": 0}
GUARDS = [
    Guard(
        name="a job moves by a logged move",
        breaks=MOVES,
        says="illegal state move",
        trigger=("deletion_jobs", "job_state_needs_logged_move", "job_state_needs_logged_move"),
    ),
    append_only(
        "deletion_receipts", "receipts", "update", "UPDATE deletion_receipts SET erased = 2, already_absent = 0"
    ),
    append_only("deletion_receipts", "receipts", "delete", "DELETE FROM deletion_receipts"),
    append_only("job_transitions", "transitions", "update", "UPDATE job_transitions SET worker = 'another'"),
    append_only(
        "job_transitions", "transitions", "delete", "DELETE FROM job_transitions WHERE to_state = 'derived_cleanup'"
    ),
    Guard(
        name="no move but those of the table",
        breaks=move("derived_cleanup", "completed"),
        says="'source_revoked>derived_cleanup'",
    ),
    Guard(
        name="each state occurs once",
        breaks=move(None, "requested"),
        says="job_id, to_state",
        unique=(
            "job_transitions",
            (
                "PRIMARY KEY (job_id, to_state),",
                "FOREIGN KEY (job_id, from_state) REFERENCES job_transitions (job_id, to_state),",
            ),
        ),
    ),
    Guard(
        name="no state has two that follow it",
        breaks=move("requested", "cancelled"),
        says="job_id, from_state",
        index="ux_transitions_no_fork",
    ),
    Guard(
        name="one job for an idempotency key",
        breaks=job(OTHER, "requested", idempotency_ref=JOB),
        says="tenant, idempotency_ref",
        index="ux_jobs_idempotency",
    ),
    Guard(
        name="one unit in a place",
        breaks=unit("unit-3", 1),
        says="job_id, adapter, phase, page, round",
        unique=("deletion_units", ("UNIQUE (job_id, adapter, phase, page, round),",)),
    ),
    Guard(
        name="one receipt for a unit",
        breaks=receipt("receipt-2", "unit-1", 2),
        says="UNIQUE unit_id",
        unique=("deletion_receipts", ("UNIQUE REFERENCES deletion_units (id)",)),
    ),
    Guard(
        name="one receipt in a place",
        breaks=receipt("receipt-2", "unit-2", 1),
        says="job_id, adapter, phase, page, round",
        unique=("deletion_receipts", ("UNIQUE (job_id, adapter, phase, page, round),",)),
    ),
    *(
        ids_kept(state, **{column: "raw"})
        for state in ("verified", "completed", "cancelled")
        for column in ("user_id", "project", "selector_value")
    ),
    counts("erased adds up", "outcome <> 'erased'", erased=2),
    counts("erased adds up with what arrived", "outcome <> 'erased'", extra=1),
    counts("erased has erased something", "outcome <> 'erased'", erased=0, already_absent=2),
    counts("erased leaves nothing", "outcome <> 'erased'", remaining=1),
    counts("nothing found has erased nothing", "outcome <> 'nothing_found'", **NOTHING | {"erased": 1, "expected": 1}),
    counts("nothing found adds up", "outcome <> 'nothing_found'", **NOTHING),
    counts("nothing found leaves nothing", "outcome <> 'nothing_found'", **NOTHING, already_absent=2, remaining=1),
    counts("scheduled adds up", "outcome <> 'scheduled'", **SCHEDULED),
    counts("scheduled leaves what is scheduled", "outcome <> 'scheduled'", **SCHEDULED | {"remaining": 2}, expected=3),
    counts("scheduled names a copy", "outcome <> 'scheduled'", **SCHEDULED | {"scheduled": 0, "remaining": 0}),
    counts("only scheduled has copies that go later", "scheduled = 0", scheduled=1),
    counts("absent leaves nothing", "outcome <> 'absent'", **SEEN, outcome="absent", remaining=1),
    counts("present leaves something", "outcome <> 'present'", **SEEN, outcome="present"),
    counts("nothing below zero was expected", "expected >= 0", **REVOKED, expected=-1),
    counts("nothing below zero was erased", "erased >= 0", **REVOKED, erased=-1),
    counts("nothing below zero was absent", "already_absent >= 0", **REVOKED, already_absent=-1),
    counts("nothing below zero has arrived", "extra >= 0", **REVOKED, extra=-1),
    counts("nothing below zero remains", "remaining >= 0", **REVOKED, remaining=-1),
    counts("an outcome is one of its phase", "outcome = 'closed'", phase="revoke"),
    counts("a receipt ends after it began", "finished_at_us >= started_at_us", finished_at_us=0),
]


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[sa.Engine]:
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path_factory.mktemp('guards') / 'control.db'}"
    else:
        url = new_database(request.getfixturevalue("postgres_server"))
    engine = open_database(url)
    upgrade(engine)
    with engine.begin() as connection:
        for statement in ROWS:
            connection.exec_driver_sql(statement)
    yield engine
    engine.dispose()


@pytest.fixture
def connection(database: sa.Engine) -> Iterator[sa.Connection]:
    """Give a transaction that is taken back at the end; what was set on its connection goes too."""
    with database.connect() as connection, connection.begin() as transaction:
        yield connection
        transaction.rollback()
    database.dispose()


def refusal(connection: sa.Connection, statement: str) -> sa.exc.DBAPIError:
    with pytest.raises(sa.exc.DBAPIError) as caught, connection.begin_nested():
        connection.exec_driver_sql(statement)
    return caught.value


def constraint(error: sa.exc.DBAPIError) -> str | None:
    """Name the constraint or unique index that PostgreSQL has refused by."""
    return error.orig.diag.constraint_name if isinstance(error.orig, psycopg.Error) else None


def words(connection: sa.Connection, error: sa.exc.DBAPIError) -> str:
    """Give what was refused: the definition of a constraint, else the message."""
    name = constraint(error)
    if name is None:
        return str(error.orig)
    query = "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = %(name)s"
    index = "SELECT pg_get_indexdef(oid) FROM pg_class WHERE relname = %(name)s"
    found = connection.exec_driver_sql(query, {"name": name}).scalar()
    return str(found or connection.exec_driver_sql(index, {"name": name}).scalar_one())


def plain(text: str) -> str:
    """Leave out how a database spells it: spaces, brackets, casts and the table before a column."""
    text = re.sub(r"\b(deletion_receipts|deletion_units|deletion_jobs|job_transitions)\.", "", text)
    return re.sub(r"\s|[()]|::text|constraint failed:", "", text)


def remove(connection: sa.Connection, guard: Guard, error: sa.exc.DBAPIError) -> None:
    """Take this one guard out of the database."""
    run, lite = connection.exec_driver_sql, connection.dialect.name == "sqlite"
    name = constraint(error)
    if guard.trigger is not None:
        table, on_sqlite, on_postgresql = guard.trigger
        run(f"DROP TRIGGER {on_sqlite}" if lite else f"DROP TRIGGER {on_postgresql} ON {table}")
    elif guard.index is not None:
        run(f"DROP INDEX {guard.index}")
    elif not lite:
        table = connection.exec_driver_sql(
            "SELECT conrelid::regclass::text FROM pg_constraint WHERE conname = %(name)s", {"name": name}
        ).scalar_one()
        run(f"ALTER TABLE {table} DROP CONSTRAINT {name} CASCADE")
    elif guard.unique is None:
        run("PRAGMA ignore_check_constraints = ON")
    else:
        _make_again(connection, *guard.unique)


def _make_again(connection: sa.Connection, table: str, without: tuple[str, ...]) -> None:
    """Make a table again without parts of its text: SQLite cannot drop a constraint."""
    run = connection.exec_driver_sql
    text = str(run("SELECT sql FROM sqlite_master WHERE name = ?", (table,)).scalar_one())
    for part in without:
        assert part in text
        text = text.replace(part, "")
    run(f"ALTER TABLE {table} RENAME TO old")
    run(text)
    run(f"INSERT INTO {table} SELECT * FROM old")  # noqa: S608 - a table of this file


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_database_refuses_what_breaks_a_guard_in_its_own_words(connection: sa.Connection, guard: Guard) -> None:
    error = refusal(connection, guard.breaks)
    assert plain(guard.says) in plain(words(connection, error))


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_nothing_but_the_guard_refuses_it(connection: sa.Connection, guard: Guard) -> None:
    remove(connection, guard, refusal(connection, guard.breaks))
    assert connection.exec_driver_sql(guard.breaks).rowcount >= 1


def test_every_trigger_of_the_schema_is_shown(connection: sa.Connection) -> None:
    lite = connection.dialect.name == "sqlite"
    query = "SELECT name FROM sqlite_master WHERE type = 'trigger'"
    query = query if lite else "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal"
    shown = {guard.trigger[1 if lite else 2] for guard in GUARDS if guard.trigger is not None}
    shown |= set() if lite else {f"{short}_no_truncate" for short in APPEND_ONLY.values()}
    assert set(connection.exec_driver_sql(query).scalars()) == shown


def test_rows_that_break_no_guard_are_taken(connection: sa.Connection) -> None:
    for statement in (receipt(), job(OTHER, "requested"), move("derived_cleanup", "verified"), MOVES):
        assert connection.exec_driver_sql(statement).rowcount == 1


APPEND_ONLY = {"deletion_receipts": "receipts", "job_transitions": "transitions"}


@pytest.mark.parametrize("table", APPEND_ONLY)
def test_append_only_rows_cannot_be_emptied_or_replaced(connection: sa.Connection, table: str) -> None:
    """TRUNCATE and INSERT OR REPLACE go round the triggers of DELETE and UPDATE."""
    lite = connection.dialect.name == "sqlite"
    before = connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar()  # noqa: S608 - a name of this file
    way = f"INSERT OR REPLACE INTO {table} SELECT * FROM {table}" if lite else f"TRUNCATE {table}"  # noqa: S608
    with pytest.raises(sa.exc.DBAPIError, match="append-only"), connection.begin_nested():
        connection.exec_driver_sql(way)
    guard = f"{APPEND_ONLY[table]}_no_{'delete' if lite else 'truncate'}"
    connection.exec_driver_sql(f"DROP TRIGGER {guard}" + ("" if lite else f" ON {table}"))
    connection.exec_driver_sql(way)  # without the guard it passes
    after = connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar()  # noqa: S608
    assert after == (before if lite else 0)
