"""Any number of calls of the memory libraries, in any order, against plain lists: on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.properties.memory_machine import MemoryMachine


def url_of_file(folder: Path) -> str:
    return f"sqlite:///{folder / 'm.db'}"


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest) -> Callable[[Path], str]:
    if request.param == "sqlite":
        return url_of_file
    database = str(request.getfixturevalue("postgres_url"))

    def emptied(_folder: Path) -> str:
        engine = sa.create_engine(database, poolclass=sa.NullPool)
        with engine.begin() as connection:
            names = sa.inspect(connection).get_table_names()
            if "facts" in names:
                kept = {"memory_schema", "source_epoch"}
                connection.exec_driver_sql(f"TRUNCATE {', '.join(name for name in names if name not in kept)}")
        return database

    return emptied


def test_any_calls_of_the_libraries_come_to_what_plain_lists_come_to(url: Callable[[Path], str]) -> None:
    machine = type("Bound", (MemoryMachine,), {"url": staticmethod(url)})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=300,
            stateful_step_count=20,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        ),
    )
