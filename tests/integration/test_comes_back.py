"""What was erased comes back when its store is started again: the last look comes later, and sees it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
import redis

from adapters.backup.manifest import Policy
from adapters.memory.chains import TaskScope
from orchestrator.domain.job import Result
from orchestrator.domain.states import JobState
from orchestrator.domain.unit import Phase
from orchestrator.service.drain import drain
from orchestrator.service.run_batch import run_batch
from tests.integration.five_stores import ANNA, BERTA, SECRET, STORES, TURN_6, Five, five_in
from tests.integration.write_paths_harness import closed, opened_again
from tests.servers import RedisServer, redis_server

ERASED = (JobState.COMPLETED, Result.ERASED)
ALL = ["memory", "vector", "cache", "drafts"]
TABLES: Final[Mapping[str, tuple[str, Sequence[str]]]] = {
    "facts": ("memory.db", ("facts",)),
    "memories": ("memory.db", ("memories", "memory_tenants")),
    "drafts": ("memory.db", ("drafts", "draft_used")),
    "vector": ("vectors.db", ("vector_points",)),
}
"""The rows by which a store that is a table of a file holds something."""


@dataclass
class Restarting:
    """Five stores, an hour of quiet time, and a Redis that can be started again from its snapshot."""

    five: Five
    server: RedisServer

    @property
    def state(self) -> Path:
        return self.five.control.settings.state_dir

    def start_again(self, meanwhile: Callable[[], object]) -> None:
        """Let every process of ours end, and start again after something has happened."""
        closed(self.five)
        meanwhile()
        self.five = opened_again(self.state, self.five.clock)

    def work(self) -> None:
        """Work off what is due, and wait for nothing."""
        while due := self.five.control.ledger.due(STORES):
            drain(self.five.engine, *due[0])

    def let_time_pass(self) -> None:
        with self.five.control.database.begin() as connection:
            connection.exec_driver_sql(
                "UPDATE deletion_units SET next_attempt_at_us = next_attempt_at_us - 3600000000 WHERE phase = 'verify'"
            )

    def looks(self, job: str) -> dict[str, str]:
        told = self.five.control.ledger.receipts(job)
        return {r.adapter: r.outcome for r in told if r.phase == "verify"}


@pytest.fixture
def restarting(tmp_path: Path) -> Iterator[Restarting]:
    with redis_server(tmp_path) as server, five_in(tmp_path / "state", server.url) as first, ExitStack() as at_end:
        file = tmp_path / "state" / "expunge.toml"
        file.write_text(file.read_text().replace('quiet_time = "0s"', 'quiet_time = "1h"'))
        made = Restarting(opened_again(tmp_path / "state", first.clock), server)
        at_end.callback(lambda: closed(made.five))
        yield made


def put_back(stage: Restarting, what: str) -> Callable[[], object]:
    """Note what a store holds, and give what puts it back as it was while nobody has it open."""
    match what:
        case "cache":
            with redis.Redis.from_url(stage.server.url) as client:
                client.save()

            def start_again() -> None:
                stage.server.stop()
                stage.server.start()

            return start_again
        case "backup":
            return partial(copy_of(stage).write_bytes, copy_of(stage).read_bytes())
        case _:
            name, tables = TABLES[what]
            with closing(sqlite3.connect(stage.state / name)) as database:
                rows = {table: database.execute(f"SELECT * FROM {table}").fetchall() for table in tables}  # noqa: S608 - ours
            return partial(insert, stage.state / name, rows)


def copy_of(stage: Restarting) -> Path:
    (copy,) = (stage.state / "backups").glob("*-memory.db")
    return copy


def insert(file: Path, rows: Mapping[str, Sequence[tuple[Any, ...]]]) -> None:
    with closing(sqlite3.connect(file)) as database, database:
        for table, of_table in rows.items():
            marks = ", ".join("?" * len(of_table[0]))
            database.executemany(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", of_table)  # noqa: S608 - as above


@pytest.mark.case(96)
@pytest.mark.parametrize("what", [*TABLES, "cache", "backup"])
def test_what_comes_back_with_a_restart_is_seen_by_the_look_after_the_quiet_time(
    restarting: Restarting, what: str
) -> None:
    stage, store = restarting, "memory" if what in {"facts", "memories"} else what
    for scope in (ANNA, BERTA):
        stage.five.learn(scope)
        stage.five.memory.chains.remember(
            TaskScope(scope.user, "trips", "acme"), "task", SECRET, f"{scope.user}/{TURN_6}"
        )
    stage.five.backup.take(Policy.REWRITE, None)
    comes_back = put_back(stage, what)
    job = stage.five.request()
    stage.work()
    assert stage.five.erases(job).keys() == set(STORES)
    assert stage.looks(job) == {}, "the last look waits for the quiet time"
    assert stage.five.readable(ANNA) == []
    stage.start_again(comes_back)
    stage.let_time_pass()
    for name in STORES:
        assert run_batch(stage.five.engine, name, Phase.VERIFY) == 1
    assert stage.looks(job) == {**dict.fromkeys(STORES, "absent"), store: "present"}
    view = stage.five.view(job)
    assert (view.state, view.round) == (JobState.DERIVED_CLEANUP, 2), "it goes on with a new round"
    stage.work()
    stage.let_time_pass()
    stage.work()
    if store == "backup":  # a file with other bytes than the manifest names is never edited: a person has to look
        stage.five.run()
        view = stage.five.view(job)
        assert (view.state, view.waits_for_a_person, view.last_error) == (
            JobState.DERIVED_CLEANUP,
            True,
            "store_refused",
        )
        copy_of(stage).unlink()
        stage.five.control.ledger.retry(job)
        stage.five.run()
    assert ended(stage, job) == ERASED
    assert stage.five.readable(ANNA) == []
    assert stage.five.readable(BERTA) == ALL


@pytest.mark.case(96)
def test_restart_alone_brings_nothing_back(restarting: Restarting) -> None:
    stage = restarting
    for scope in (ANNA, BERTA):
        stage.five.learn(scope)
    job = stage.five.request()
    stage.work()
    stage.start_again(lambda: None)
    stage.let_time_pass()
    stage.work()
    assert set(stage.looks(job).values()) == {"absent"}
    assert (*ended(stage, job), stage.five.view(job).round) == (*ERASED, 1)
    assert stage.five.readable(BERTA) == ALL


def ended(stage: Restarting, job: str) -> tuple[JobState, Result | None]:
    return stage.five.view(job).state, stage.five.view(job).result
