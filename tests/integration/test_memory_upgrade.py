"""A database of an earlier version is brought up to this one when it is opened, and keeps what it holds."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa
import structlog

from adapters.memory import MemoryAdapter
from orchestrator import AdapterContext, EraseOrder, Gate, Keyring, Permanent, Scope, Selector, SelectorKind
from tests.fakes import FakeClock

ANNA = Scope(tenant="tenant-a", user="anna", project="trips")
# What the versions brought, taken back.
TO_VERSION_4 = (
    "DROP TABLE preferences",
    "DROP TABLE erased_events",
    "DROP TABLE preference_events",
    "DROP TABLE fact_candidates",
    "DROP TABLE source_reaches",
    "ALTER TABLE source_revocations DROP COLUMN repointed",
)
TO_VERSION_3 = (*TO_VERSION_4, "DROP INDEX facts_expiring", "DROP TABLE source_epoch")
TO_VERSION_2 = (*TO_VERSION_3, "DROP TABLE record_prints")
TO_VERSION_1 = (
    *TO_VERSION_2,
    "DROP TABLE revocation_left",
    "DROP INDEX facts_of_user",
    "DROP INDEX source_tombstones_of_job",
    "CREATE INDEX source_tombstones_job ON source_tombstones (job)",
)
SET = {"sqlite": "PRAGMA user_version = {}", "postgresql": "UPDATE memory_schema SET version = {}"}
KEYS = Keyring.create()


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgresql":
        return str(request.getfixturevalue("postgres_url"))
    return f"sqlite:///{tmp_path / 'm.db'}"


def open_adapter(folder: Path, url: str) -> MemoryAdapter:
    context = AdapterContext(clock=FakeClock(), gate=Gate(KEYS), log=structlog.get_logger(), state_dir=folder)
    return MemoryAdapter(context, url=url)


def execute(url: str, *statements: str) -> None:
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    with engine.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement.format(engine.dialect.name))


def schema(url: str) -> dict[str, Any]:
    inspector = sa.inspect(sa.create_engine(url, poolclass=sa.NullPool))
    return {
        table: (
            [(column["name"], str(column["type"])) for column in inspector.get_columns(table)],
            sorted((str(index["name"]), tuple(index["column_names"])) for index in inspector.get_indexes(table)),
        )
        for table in inspector.get_table_names()
    }


def order() -> EraseOrder:
    subject = Selector(kind=SelectorKind.SUBJECT)
    deadline = FakeClock().now() + timedelta(seconds=60)
    return EraseOrder(job=uuid4(), unit=uuid4(), key="k", scope=ANNA, selector=subject, deadline=deadline)


@pytest.mark.parametrize(
    ("version", "back"), [(1, TO_VERSION_1), (2, TO_VERSION_2), (3, TO_VERSION_3), (4, TO_VERSION_4)]
)
def test_database_of_an_earlier_version_is_brought_up_and_keeps_its_facts_and_answers(
    tmp_path: Path, url: str, version: int, back: Sequence[str]
) -> None:
    first = order()
    with closing(open_adapter(tmp_path, url)) as adapter:
        adapter.store.register_source(ANNA, "turn-1")
        adapter.store.put(ANNA, "seat", "I like the aisle", "turn-1")
        (before,) = adapter.revoke([first])
        fresh = schema(url)
    execute(url, *back, SET[sa.make_url(url).get_backend_name()].format(version))
    assert schema(url) != fresh
    with closing(open_adapter(tmp_path, url)) as adapter:
        assert adapter.revoke([first]) == [before]
        assert schema(url) == fresh
        adapter.store.register_source(ANNA, "turn-2")
        adapter.store.put(ANNA, "hat", "A straw one", "turn-2")
        (item,) = [fact.id for fact in adapter.store.current(ANNA)]
        (answer,) = adapter.revoke([replace(order(), held=frozenset({item}))])
    assert (answer.left, len(answer.targets)) == (frozenset({item}), 1)


def test_database_of_a_later_version_is_refused(tmp_path: Path, url: str) -> None:
    with closing(open_adapter(tmp_path, url)) as adapter:
        adapter.store.revision(ANNA)
    execute(url, SET[sa.make_url(url).get_backend_name()].format(99))
    with closing(open_adapter(tmp_path, url)) as adapter, pytest.raises(Permanent, match="another version"):
        adapter.store.revision(ANNA)
