"""A database in which an earlier release drafted is brought up to this one by whoever opens it; what it holds stays."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import sqlalchemy as sa

from adapters.drafts.schema import open_in
from adapters.drafts.tables import VERSION, metadata
from tests.integration.drafts_harness import SUBJECT, A, Desk, desk, lone, published

__all__ = ["desk", "lone"]

FIRST = {"draft_jobs", "drafts", "draft_used", "draft_schema"}


def first_version(desk: Desk) -> None:
    """Have two reports in a database as version 1 made it."""
    published(desk, A)
    take_down(desk)


def take_down(desk: Desk) -> None:
    """Take away what this version came with."""
    for table in sorted(metadata.tables.keys() - FIRST):
        desk.execute(f"DROP TABLE {table}")
    desk.execute("UPDATE draft_schema SET version = 1")


def tables(desk: Desk) -> set[str]:
    return metadata.tables.keys() & set(sa.inspect(desk.memory.store._engine).get_table_names())


CALLS: dict[str, Callable[[Desk], object]] = {
    "runtime": lambda desk: open_in(desk.drafts._engine),
    "find": lambda desk: desk.drafts.find([desk.order(SUBJECT)]),
    "erase": lambda desk: desk.drafts.erase([desk.order(SUBJECT)]),
    "verify": lambda desk: desk.drafts.verify([desk.order(SUBJECT)]),
    "live values": lambda desk: list(desk.drafts.live_values()),
    "masters": lambda desk: desk.drafts.masters.active(A, []),
}


def test_new_tables_are_those_that_this_version_came_with() -> None:
    assert VERSION == 2
    assert metadata.tables.keys() - FIRST == {"approvals", "step_dependencies"}


@pytest.mark.parametrize("call", CALLS)
def test_every_call_finds_the_tables_of_the_release_before_and_brings_them_up(lone: Desk, call: str) -> None:
    first_version(lone)
    held = [lone.rows(f"SELECT * FROM {table} ORDER BY 1, 2") for table in ("draft_jobs", "drafts", "draft_used")]  # noqa: S608
    assert tables(lone) == FIRST
    for _ in range(2):
        CALLS[call](lone)
        assert tables(lone) == metadata.tables.keys()
        assert lone.rows("SELECT version FROM draft_schema") == [(2,)]
    now = [lone.rows(f"SELECT * FROM {table} ORDER BY 1, 2") for table in ("draft_jobs", "drafts", "draft_used")]  # noqa: S608
    assert now == held


def test_deletion_job_reaches_what_the_release_before_has_made(desk: Desk) -> None:
    first_version(desk)
    order = desk.revoke(desk.order(SUBJECT))
    targets = desk.find(order)
    assert len(targets) == 6
    done, seen = desk.clean_up(replace(order, targets=targets))
    assert (done.erased, seen.remaining) == (6, 0)


def test_columns_are_those_of_a_database_that_was_made_anew(lone: Desk) -> None:
    published(lone, A)
    schema = "SELECT name, sql FROM sqlite_master WHERE tbl_name IN ('approvals', 'step_dependencies') ORDER BY name"
    anew = lone.rows(schema)
    take_down(lone)
    assert lone.rows(schema) == []
    _ = lone.drafts.masters
    assert lone.rows(schema) == anew != []


def test_of_many_that_open_it_at_once_one_brings_it_up(desk: Desk) -> None:
    first_version(desk)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _n: open_in(desk.drafts._engine), range(8)))
    assert desk.rows("SELECT version FROM draft_schema") == [(2,)]
    assert tables(desk) == metadata.tables.keys()
