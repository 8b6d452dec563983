"""The engine's tests: an engine over fakes on a control database of its own, and the hands of a test on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from orchestrator import EraseOrder, StoreUnreachable
from orchestrator.domain.unit import Phase
from orchestrator.service.run_batch import run_batch
from orchestrator.store.clock import read_now
from tests.fakes import Bench, bench

_US = timedelta(microseconds=1)
_MIDNIGHT = 2_470_000.5  # a Julian day: whole days have no rounding


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Bench]:
    made = bench(tmp_path)
    yield made
    made.ledger.engine.dispose()


def with_rules(stage: Bench, **rules: Any) -> None:  # noqa: ANN401 - each rule has a type of its own
    """Let the engine follow other rules."""
    stage.ledger = replace(stage.ledger, rules=replace(stage.ledger.rules, **rules))
    stage.engine = replace(stage.engine, ledger=stage.ledger)
    stage.acceptance = replace(stage.acceptance, ledger=stage.ledger)


def execute(stage: Bench, statement: str) -> None:
    """Change the control database by hand."""
    with stage.ledger.engine.begin() as connection:
        connection.exec_driver_sql(statement)


def database_now(stage: Bench) -> int:
    """Read the database's clock."""
    with stage.ledger.engine.begin() as connection:
        return read_now(connection)


def stop_the_database_clock(stage: Bench) -> int:
    """Let the database's clock stand still from here on; give where it stands."""

    def stop(connection: Any, _record: object) -> None:  # noqa: ANN401 - the driver's own connection
        connection.create_function("julianday", -1, lambda *_: _MIDNIGHT)

    sa.event.listen(stage.ledger.engine, "connect", stop)
    stage.ledger.engine.dispose()
    assert database_now(stage) == database_now(stage)
    return database_now(stage)


def let_time_pass(stage: Bench, time: timedelta) -> None:
    """Bring everything that the control database waits for nearer by so much."""
    execute(stage, f"UPDATE deletion_units SET next_attempt_at_us = next_attempt_at_us - {time // _US}")  # noqa: S608
    execute(stage, f"UPDATE adapter_health SET open_until_us = open_until_us - {time // _US}")  # noqa: S608


def fail_in(*phases: Phase, error: type[Exception] = StoreUnreachable) -> Callable[[str, Sequence[EraseOrder]], None]:
    """Give what a fake does before each call: it raises in these phases."""

    def fail(phase: str, _orders: Sequence[EraseOrder]) -> None:
        if phase in phases:
            raise error

    return fail


def run_until(stage: Bench, adapter: str, phase: Phase) -> None:
    """Work off what is due until an adapter has a unit of this phase; that one is left."""
    while (adapter, phase) not in (due := stage.ledger.due(list(stage.engine.adapters))):
        assert run_batch(stage.engine, *due[0])
