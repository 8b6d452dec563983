"""Copies of a source database, and putting them back in every way."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import typer
from typer.testing import CliRunner

from orchestrator import (
    Replayed,
    Selector,
)
from orchestrator.domain.job import Result
from orchestrator.domain.states import JobState
from tests.integration.jobs_harness import ANNA, BERTA, SUBJECT, Deployment, deployment
from workers.restore import restore

__all__ = ["deployment"]

ERASED = (JobState.COMPLETED, Result.ERASED)
PASSPORT = "The passport number is P1234567."


@dataclass
class Snapshots:
    """Copies of the source database: a file, or all of its rows on a server."""

    made: Deployment
    folder: Path
    rows: dict[str, list[tuple[str, list[Any]]]] = field(default_factory=dict)

    @property
    def is_file(self) -> bool:
        return self.made.memory._url.get_backend_name() == "sqlite"

    def take(self, name: str) -> None:
        if self.is_file:
            with (
                closing(sqlite3.connect(str(self.made.memory._url.database))) as source,
                closing(sqlite3.connect(self.folder / name)) as target,
            ):
                source.backup(target)
            return
        self.rows[name] = [(table, self.made.rows(f"SELECT * FROM {table}")) for table in TABLES]  # noqa: S608 - ours

    def put_back(self, name: str) -> Replayed:
        ledger = self.made.control.ledger
        begin = partial(ledger.raise_epoch, "memory")
        if self.is_file:
            copy = self.folder / name
        else:
            copy = None
            self.by_hand(name)
        named, kept = ledger.targets_of("memory"), ledger.kept_by("memory")
        return self.made.memory.restore(copy, ledger.tombstones(), begin, named, kept)

    def by_hand(self, name: str) -> None:
        """Put the copy in its place as somebody does who knows nothing of epochs and tombstones."""
        if self.is_file:
            with (
                closing(sqlite3.connect(self.folder / name)) as source,
                closing(sqlite3.connect(str(self.made.memory._url.database))) as target,
            ):
                source.backup(target)
            return
        with sa.create_engine(self.made.memory._url, poolclass=sa.NullPool).begin() as connection:
            for table, _ in reversed(self.rows[name]):
                connection.exec_driver_sql(f"DELETE FROM {table}")  # noqa: S608 - tables of ours
            for table, rows in self.rows[name]:
                for row in rows:
                    marks = ", ".join(["%s"] * len(row))
                    connection.exec_driver_sql(f"INSERT INTO {table} VALUES ({marks})", row)  # noqa: S608 - as above


TABLES = [
    *("source_epoch", "tenant_positions", "accepted_sources", "source_ancestry", "facts", "fact_revisions"),
    *("preference_events", "preferences", "erased_events", "fact_candidates"),
    *("fact_high_water", "source_tombstones", "source_revocations", "revocation_targets", "revocation_left"),
    *("record_prints", "confirmations", "memories", "memory_tenants", "deletions", "deletion_tenants"),
]


@pytest.fixture
def snapshots(deployment: Deployment, tmp_path: Path) -> Snapshots:
    deployment.tell(ANNA)
    deployment.tell(BERTA)
    return Snapshots(deployment, tmp_path)


def run(made: Deployment, selector: Selector = SUBJECT) -> str:
    job = made.file(selector)
    made.run()
    assert made.ended(job) == ERASED
    return job


def recalled(made: Deployment) -> list[str]:
    return [m.text for m in made.memory.chains.recall(ANNA, "passport number seat eats fish aisle", 20)]


def cli(made: Deployment, *words: str) -> tuple[int, str]:
    app = typer.Typer()
    app.command()(restore)
    done = CliRunner().invoke(app, [*words, "--dir", str(made.control.settings.state_dir)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.output
