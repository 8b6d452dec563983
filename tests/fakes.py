"""An engine over a real control database, with stores in memory."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import structlog

from orchestrator import (
    Gate,
    Keyring,
    Reason,
    Role,
    Scope,
    Selector,
    SelectorKind,
    StorageAdapter,
)
from orchestrator.crash import never
from orchestrator.domain.job import JobView, Store
from orchestrator.domain.ports import Budgets, Crash
from orchestrator.domain.retry import RetryPolicy
from orchestrator.domain.unit import Claimed, Phase
from orchestrator.gate.fingerprint import keyed_hash
from orchestrator.ids import uuid7
from orchestrator.service.accept import Acceptance, Request, accept, one_month_later
from orchestrator.service.drain import drain
from orchestrator.service.run_batch import Engine
from orchestrator.store.advance import Rules
from orchestrator.store.engine import open_database
from orchestrator.store.ledger import SqlLedger
from orchestrator.store.migrate import upgrade
from tests.fake_stores import FakeCopies, FakeSource

ANNA = Scope(tenant="tenant-a", user="anna", project="trips")


@dataclass
class FakeClock:
    """A clock that a test sets."""

    at: datetime = field(default_factory=lambda: datetime.now(UTC))

    def now(self) -> datetime:
        """Give the set time."""
        return self.at


@dataclass
class Bench:
    """An engine over a control database in a folder, with one fake source and one fake derived store."""

    engine: Engine
    ledger: SqlLedger
    acceptance: Acceptance
    source: FakeSource
    copies: FakeCopies
    clock: FakeClock
    gate: Gate

    def file(self, value: str | None = "passport", **changes: object) -> str:
        """File a request of Anna's for a key (None: for everything)."""
        kind = SelectorKind.SUBJECT if value is None else SelectorKind.KEY
        asked: dict[str, object] = {
            "scope": ANNA,
            "selector": Selector(kind=kind, value=value),
            "reason": Reason.USER_REQUEST,
            "requested_by": "tester",
        }
        job, _ = accept(Request(**{**asked, **changes}), self.acceptance)  # type: ignore[arg-type]
        return str(job)

    def run(self) -> int:
        """Work off all that is due now."""
        total = 0
        while due := self.ledger.due(list(self.engine.adapters)):
            claimed = drain(self.engine, *due[0])
            if not claimed:  # the store is left alone for a while
                break
            total += claimed
        self.ledger.sweep()
        return total

    def take(self, adapter: str, phase: Phase, owner: str, limit: int = 9) -> list[Claimed]:
        """Claim units as a worker does that dies before it calls."""
        return list(self.ledger.load(owner, self.ledger.claim(adapter, phase, owner=owner, limit=limit)))

    def skip_pauses(self) -> None:
        """Make every waiting unit due now, as if its pause were over."""
        with self.ledger.engine.begin() as connection:
            connection.exec_driver_sql(
                "UPDATE deletion_units SET next_attempt_at_us = 0 "
                " WHERE status = 'pending' AND next_attempt_at_us < 4000000000000000"
            )

    def end_leases(self) -> None:
        """Let every lease end, as if its worker had died."""
        with self.ledger.engine.begin() as connection:
            connection.exec_driver_sql("UPDATE deletion_units SET lease_until_us = 1 WHERE status = 'running'")

    def view(self, job: str) -> JobView:
        """Read a job."""
        return self.ledger.job(job)

    def rows(self, query: str) -> list[tuple[object, ...]]:
        """Read the control database."""
        with self.ledger.engine.begin() as connection:
            return [tuple(row) for row in connection.exec_driver_sql(query)]


def bench(
    folder: Path,
    *,
    url: str | None = None,
    crash: Crash = never,
    max_attempts: int = 5,
    lease: float = 15,
    cap: int = 2,
) -> Bench:
    """Build an engine over fakes, on a SQLite file or the database of a URL; the caller disposes `ledger.engine`."""
    database = open_database(url or f"sqlite:///{folder / 'control.db'}")
    upgrade(database)
    gate = Gate(Keyring.create())
    clock = FakeClock()
    source, copies = FakeSource(gate, clock), FakeCopies()
    budgets = Budgets(unit=timedelta(seconds=120), lease=timedelta(seconds=lease))
    stores = [Store(name="source", role=Role.SOURCE), Store(name="copies", role=Role.DERIVED)]
    rules = Rules(stores=stores, quiet_time=timedelta(0), worker="test")
    ledger = SqlLedger(
        engine=database,
        clock=clock,
        rules=rules,
        budgets=budgets,
        cap=cap,
        max_attempts=max_attempts,
        crash=crash,
    )
    acceptance = Acceptance(
        ledger=ledger,
        clock=clock,
        new_id=uuid7,
        ref=partial(keyed_hash, b"reference-key-of-a-test"),
        due=one_month_later,
        crash=crash,
    )
    adapters: dict[str, StorageAdapter] = {"source": source, "copies": copies}
    engine = Engine(
        ledger=ledger,
        acceptance=acceptance,
        adapters=adapters,
        clock=clock,
        new_id=uuid7,
        budgets=budgets,
        policy=RetryPolicy(max_attempts=max_attempts),
        batch=50,
        crash=crash,
        log=structlog.get_logger(),
    )
    return Bench(
        engine=engine,
        ledger=ledger,
        acceptance=acceptance,
        source=source,
        copies=copies,
        clock=clock,
        gate=gate,
    )


def fill(stage: Bench, key: str = "passport", count: int = 1, scope: Scope = ANNA) -> None:
    """Give a user facts under a key, with two copies of each."""
    for n in range(count):
        fact = f"{scope.user}-{key}-{n:06}"
        stage.source.records.add((scope.tenant, scope.user, key, fact))
        stage.copies.records |= {(scope.tenant, scope.user, fact, f"{fact}-copy-{c}") for c in range(2)}


def together(*calls: Callable[[], object]) -> None:
    """Run calls in threads of their own, begun at the same moment."""
    start = threading.Barrier(len(calls))

    def run(call: Callable[[], object]) -> None:
        start.wait()
        call()

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
