"""What the control database refuses by itself, on SQLite and PostgreSQL, whoever asks: each guard alone.

Every statement breaks one guard and no other. It is shown twice: with the guard it is refused
in that guard's own words, and without the guard it passes, so nothing else would have held it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import psycopg
import pytest
import sqlalchemy as sa

from orchestrator.store.engine import open_database
from orchestrator.store.migrate import upgrade
from tests.integration.guards_harness import GUARDS, MOVES, OTHER, ROWS, Guard, job, move, receipt
from tests.postgres import new_database


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
