"""A step of the schema that widens what a column may hold: the rows stay, and who is connected sees it at once."""

from __future__ import annotations

from uuid import uuid4

import pytest
import sqlalchemy as sa

from orchestrator.store import migrate
from orchestrator.store.engine import open_database
from tests.integration.first_release import FirstRelease, carry, content, database, to, url

__all__ = ["database", "url"]
CHANGES = [("units", "find_pass"), ("targets", "find_pass"), ("jobs", "round")]


@pytest.fixture
def before(database: sa.Engine) -> sa.Engine:
    """Give a database one step before, with a job in it."""
    with database.begin() as connection:
        carry(FirstRelease(connection, ["fact-0", "fact-1"], uuid4()), "verify", 1)
    to(database, "0003")
    return database


def refused(database: sa.Engine, number: int) -> list[bool]:
    """Tell of each column whether the database refuses a number in it; nothing is committed."""
    told = []
    for table, column in CHANGES:
        with database.connect() as connection:
            try:
                connection.execute(sa.text(f"UPDATE deletion_{table} SET {column} = :number"), {"number": number})  # noqa: S608
                told.append(False)
            except sa.exc.IntegrityError:
                told.append(True)
    return told


def test_passes_and_rounds_have_no_last_one_and_no_row_has_changed(before: sa.Engine, url: str) -> None:
    held = content(before)
    other = open_database(url)
    with other.connect() as connected:
        connected.exec_driver_sql("SELECT count(*) FROM deletion_units").scalar_one()
        connected.rollback()
        assert refused(before, 6) == [True, True, True]
        migrate.upgrade(before)
        assert refused(before, 6) == [False, False, False]
        assert refused(before, -1) == [True, True, True]
        # Whoever was connected before reads the new text as well.
        connected.exec_driver_sql("UPDATE deletion_targets SET find_pass = 9")
        connected.rollback()
    other.dispose()
    assert {name: rows for name, rows in content(before).items() if name != "alembic_version"} == {
        name: rows for name, rows in held.items() if name != "alembic_version"
    }
    if before.dialect.name == "sqlite":
        with before.connect() as connection:
            assert connection.exec_driver_sql("PRAGMA integrity_check").scalar_one() == "ok"
            with pytest.raises(sa.exc.OperationalError, match="may not be modified"):
                connection.exec_driver_sql("UPDATE sqlite_master SET sql = sql")


def test_tables_of_another_shape_are_left_as_they_are(before: sa.Engine) -> None:
    with before.begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql("ALTER TABLE deletion_units DROP CONSTRAINT deletion_units_find_pass_check")
        else:
            connection.exec_driver_sql("ALTER TABLE deletion_units RENAME TO other")
    held = content(before)
    with pytest.raises((RuntimeError, sa.exc.ProgrammingError)):
        migrate.upgrade(before)
    assert content(before) == held
    assert migrate.pending(before)
