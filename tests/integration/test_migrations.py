"""A step of the schema that widens what a column may hold: the rows stay, and who is connected sees it at once."""

from __future__ import annotations

from collections.abc import Callable
from uuid import uuid4

import pytest
import sqlalchemy as sa

from orchestrator.store import migrate
from orchestrator.store.engine import open_database
from tests.integration.first_release import FirstRelease, carry, content, database, to, url

__all__ = ["database", "url"]
OF_PASS = "UPDATE deletion_{} SET find_pass = :found"


@pytest.fixture
def before(database: sa.Engine) -> sa.Engine:
    """Give a database one step before, with a job in it."""
    with database.begin() as connection:
        carry(FirstRelease(connection, ["fact-0", "fact-1"], uuid4()), "verify", 1)
    to(database, "0003")
    return database


def refused(database: sa.Engine, table: str, found: int) -> bool:
    try:
        with database.connect() as connection:  # never committed
            connection.execute(sa.text(OF_PASS.format(table)), {"found": found})
    except sa.exc.IntegrityError:
        return True
    return False


def of_each(database: sa.Engine, of: Callable[[sa.Engine, str, int], bool], found: int) -> list[bool]:
    return [of(database, table, found) for table in ("units", "targets")]


def test_passes_have_no_last_one_and_no_row_has_changed(before: sa.Engine, url: str) -> None:
    held = content(before)
    other = open_database(url)
    with other.connect() as connected:
        connected.exec_driver_sql("SELECT count(*) FROM deletion_units").scalar_one()
        connected.rollback()
        assert of_each(before, refused, 3) == [True, True]
        migrate.upgrade(before)
        assert of_each(before, refused, 3) == [False, False]
        assert of_each(before, refused, -1) == [True, True]
        # Whoever was connected before reads the new text as well.
        connected.execute(sa.text(OF_PASS.format("targets")), {"found": 9})
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
