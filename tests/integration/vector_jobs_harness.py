"""An engine whose stores are a memory store and its index, and the hands of a test on its jobs."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final, cast

import pytest
import structlog

from orchestrator import PhysicalStore, Reason, Role, Scope, Selector, StorageAdapter
from orchestrator.domain.codes import CrashPoint
from orchestrator.domain.job import JobView, Result, Store
from orchestrator.domain.ports import Budgets
from orchestrator.domain.retry import RetryPolicy
from orchestrator.domain.states import JobState
from orchestrator.gate.fingerprint import keyed_hash
from orchestrator.ids import uuid7
from orchestrator.scan.keys import Keys
from orchestrator.scan.process import ProcessScanner
from orchestrator.service.accept import Acceptance, Request, accept, one_month_later
from orchestrator.service.drain import drain
from orchestrator.service.look import Bytes
from orchestrator.service.run_batch import Engine
from orchestrator.store.advance import Rules
from orchestrator.store.engine import open_database
from orchestrator.store.ledger import SqlLedger
from orchestrator.store.migrate import upgrade
from tests.integration.vector_harness import ANNA, RING, Shelf

ERASED: Final = (JobState.COMPLETED, Result.ERASED)
NAMES: Final = ("memory", "vector")


class Died(BaseException):
    """The process has died."""


@dataclass
class Stage:
    """An engine whose stores are a memory store and its index."""

    shelf: Shelf
    engine: Engine
    ledger: SqlLedger
    acceptance: Acceptance

    def file(self, selector: Selector, scope: Scope = ANNA) -> str:
        asked = Request(scope=scope, selector=selector, reason=Reason.USER_REQUEST, requested_by="tester")
        return str(accept(asked, self.acceptance)[0])

    def run(self) -> None:
        while due := self.ledger.due(NAMES):
            if not drain(self.engine, *due[0]):
                break
        self.ledger.sweep()

    def view(self, job: str) -> JobView:
        return self.ledger.job(job)

    def ended(self, job: str) -> tuple[JobState, Result | None]:
        return self.view(job).state, self.view(job).result

    def receipts(self, job: str, phase: str) -> list[tuple[str, int, int]]:
        told = [r for r in self.ledger.receipts(job) if (r.adapter, r.phase) == ("vector", phase)]
        return [(r.outcome, r.erased, r.already_absent) for r in told]

    def look_at_bytes(self) -> None:
        """Let the engine look at the bytes of the index."""
        scanner = ProcessScanner(Keys.derive(RING), timedelta(seconds=60))
        stores = {"vector": cast("PhysicalStore", self.shelf.adapter)}
        looks = Bytes(stores=stores, scanner=scanner, ledger=self.ledger, clock=self.shelf.clock)
        self.engine = replace(self.engine, bytes=looks)

    def take_over(self) -> None:
        """Let every lease end, and every pause be over."""
        self.change("UPDATE deletion_units SET lease_until_us = 1 WHERE status = 'running'")
        self.ledger.sweep()
        self.change("UPDATE deletion_units SET next_attempt_at_us = 0 WHERE status = 'pending'")

    def change(self, statement: str) -> None:
        with self.ledger.engine.begin() as connection:
            connection.exec_driver_sql(statement)

    def die_once(self, at: str) -> None:
        """Let the process die once when an adapter has done its work and nobody has written it down."""
        left = [at]

        def crash(point: CrashPoint, where: str) -> None:
            if point is CrashPoint.AFTER_EFFECT and where in left:
                left.remove(where)
                raise Died

        self.engine = replace(self.engine, crash=crash)


@pytest.fixture
def stage(shelf: Shelf, tmp_path: Path) -> Iterator[Stage]:
    made = open_stage(shelf, tmp_path)
    yield made
    made.ledger.engine.dispose()


def open_stage(shelf: Shelf, folder: Path) -> Stage:
    database = open_database(f"sqlite:///{folder / 'control.db'}")
    upgrade(database)
    budgets = Budgets(unit=timedelta(seconds=60), lease=timedelta(seconds=15))
    stores = [Store(name="memory", role=Role.SOURCE), Store(name="vector", role=Role.DERIVED)]
    rules = Rules(stores=stores, quiet_time=timedelta(0), worker="test")
    clock, never = shelf.clock, lambda _point, _where: None
    ledger = SqlLedger(engine=database, clock=clock, rules=rules, budgets=budgets, cap=2, max_attempts=5, crash=never)
    acceptance = Acceptance(
        ledger=ledger,
        clock=clock,
        new_id=uuid7,
        ref=partial(keyed_hash, secrets.token_bytes(32)),
        due=one_month_later,
        crash=never,
    )
    adapters: dict[str, StorageAdapter] = {"memory": shelf.memory, "vector": shelf.adapter}
    engine = Engine(
        ledger=ledger,
        acceptance=acceptance,
        adapters=adapters,
        clock=clock,
        new_id=uuid7,
        budgets=budgets,
        policy=RetryPolicy(max_attempts=5),
        batch=50,
        crash=never,
        log=structlog.get_logger(),
    )
    return Stage(shelf, engine, ledger, acceptance)
