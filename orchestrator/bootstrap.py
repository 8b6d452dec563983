"""The composition root: settings in, a wired engine out. The only place that knows every ring."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, cast

import sqlalchemy as sa
import structlog

from orchestrator import crash, logs, settings
from orchestrator.domain.abilities import PhysicalStore
from orchestrator.domain.contract import Scrubbed, StorageAdapter
from orchestrator.domain.errors import ExpungeError, InvalidRequest
from orchestrator.domain.job import Store
from orchestrator.domain.ports import Budgets, Clock
from orchestrator.domain.retry import RetryPolicy
from orchestrator.gate.decide import Gate
from orchestrator.gate.fingerprint import keyed_hash
from orchestrator.gate.keyring import Keyring
from orchestrator.ids import uuid7
from orchestrator.registry import AdapterContext, load_adapters, resolve
from orchestrator.scan import sqlite
from orchestrator.scan.fingerprints import Fingerprinter
from orchestrator.scan.keys import Keys
from orchestrator.scan.process import ProcessScanner
from orchestrator.service.accept import Acceptance, days_later, one_month_later, subject_ref
from orchestrator.service.look import Bytes
from orchestrator.service.run_batch import Engine
from orchestrator.state_directory import make_file
from orchestrator.store.advance import Rules
from orchestrator.store.engine import checkpoint, open_database
from orchestrator.store.ledger import SqlLedger

CCPA_DAYS = 45
REFERENCE_BYTES = 32
CONTROL_FILES = "control"
SCRUB_WAIT_MS = 2_000


class SystemClock:
    """The wall clock in UTC."""

    def now(self) -> datetime:
        """Give the time as an aware UTC datetime."""
        return datetime.now(UTC)


@dataclass(frozen=True, kw_only=True)
class Control:
    """What the orchestrator's own commands need: the control database alone, no data store."""

    settings: settings.Settings
    database: sa.Engine
    ledger: SqlLedger
    acceptance: Acceptance
    clock: Clock

    def empty_log(self) -> bool:
        """Empty the database's write-ahead log of what was overwritten; tell whether it is empty."""
        return checkpoint(self.database)

    def scrub(self) -> Scrubbed | None:
        """Rewrite the database's file without what was deleted; None where it is no file, or somebody is at it."""
        file = file_of(self.database.url)
        run = None if file is None else self.ledger.open_scrub(CONTROL_FILES, self.ledger.rules.worker)
        if file is None or run is None:
            return None
        outcome = Scrubbed.FAILED
        try:
            outcome = sqlite.scrub(file, wait_ms=SCRUB_WAIT_MS).outcome
        finally:
            self.ledger.close_scrub(run, outcome, control_found=False)
        return outcome

    def close(self) -> None:
        """Give the database's connections back."""
        self.database.dispose()


class DatabaseMissing(ExpungeError):
    """The control database is missing."""


def open_control(directory: Path, clock: Clock | None = None, *, create: bool = True, pooled: bool = True) -> Control:
    """Wire the control database of a state directory; without `create`, a missing file raises `DatabaseMissing`.

    Without `pooled`, nothing stays open between two transactions.
    """
    config = settings.read(directory)
    logs.configure(config.log_format)
    key = _reference_key(config)
    database = _database(config, create=create, pooled=pooled)
    clock = clock or SystemClock()
    crash_here = crash.crash_at(config.crash_at, config.state_dir)
    budgets = Budgets(
        unit=config.engine.unit_budget,
        lease=config.engine.lease,
        breaker=config.engine.breaker_pause,
        expiry=config.expiry.every,
    )
    rules = Rules(
        stores=_stores(config),
        quiet_time=config.engine.quiet_time,
        worker=f"{socket.gethostname()}-{os.getpid()}",
    )
    ledger = SqlLedger(
        engine=database,
        clock=clock,
        rules=rules,
        budgets=budgets,
        cap=config.engine.cap,
        max_attempts=config.engine.max_attempts,
        crash=crash_here,
    )
    acceptance = Acceptance(
        ledger=ledger,
        clock=clock,
        new_id=uuid7,
        ref=partial(keyed_hash, key),
        due=_deadline(config.deadline),
        crash=crash_here,
    )
    return Control(settings=config, database=database, ledger=ledger, acceptance=acceptance, clock=clock)


def open_engine(control: Control, names: list[str] | None = None) -> Engine:
    """Open the data stores of the named adapters (None: all enabled) and wire the engine over them."""
    config = control.settings
    wanted = {name: _options(config, name) for name in names or config.adapters}
    adapters: dict[str, StorageAdapter] = load_adapters(context(control), wanted)
    policy = RetryPolicy(
        base=config.engine.backoff_base, cap=config.engine.backoff_cap, max_attempts=config.engine.max_attempts
    )
    return Engine(
        ledger=control.ledger,
        acceptance=control.acceptance,
        adapters=adapters,
        clock=control.clock,
        new_id=uuid7,
        budgets=control.ledger.budgets,
        policy=policy,
        batch=config.engine.batch,
        crash=control.ledger.crash,
        log=structlog.get_logger(),
        bytes=_bytes(control, adapters),
    )


def _bytes(control: Control, adapters: Mapping[str, StorageAdapter]) -> Bytes | None:
    """Give what looking at bytes takes, where an open store is to be looked at so."""
    physical = {name: adapters[name] for name in _physical(control.settings) if name in adapters}
    for name, adapter in physical.items():
        if not isinstance(adapter, PhysicalStore):
            message = f'adapters.{name}.require = "physical": this store\'s files cannot be looked at; use "logical"'
            raise InvalidRequest(message, field=f"adapters.{name}.require")
    if not physical:
        return None
    scanner = ProcessScanner(Keys.derive(_keyring(control.settings)), control.settings.engine.unit_budget)
    stores = cast("Mapping[str, PhysicalStore]", physical)
    return Bytes(stores=stores, scanner=scanner, ledger=control.ledger, clock=control.clock)


def _physical(config: settings.Settings) -> list[str]:
    return [name for name, options in config.adapters.items() if settings.store(name, options).require == "physical"]


def _keyring(config: settings.Settings) -> Keyring:
    return Keyring.parse(settings.resolve_secret(config.keys.tombstone, config.state_dir))


def context(control: Control) -> AdapterContext:
    """Give what an adapter is built with."""
    config = control.settings
    ring = _keyring(config)
    log: Any = structlog.get_logger()
    return AdapterContext(
        clock=control.clock,
        gate=Gate(ring),
        log=log,
        state_dir=config.state_dir,
        call_timeout=config.engine.call_timeout,
        fingerprinter=Fingerprinter.of(ring) if _physical(config) else None,
        epoch=control.ledger.epoch,
        holds=lambda scope: control.ledger.holds_on(scope.tenant, subject_ref(control.acceptance.ref, scope)),
    )


def open_adapter(directory: Path | None, name: str) -> StorageAdapter:
    """Open one adapter by the configuration of a state directory: for commands that an adapter contributes."""
    # The adapter asks for its epoch long after this, and closes what is its own: nothing of ours may stay open.
    control = open_control(settings.state_dir(directory), pooled=False)
    return open_engine(control, [name]).adapters[name]


def _reference_key(config: settings.Settings) -> bytes:
    key = settings.resolve_secret(config.keys.reference, config.state_dir).strip().encode()
    if len(key) < REFERENCE_BYTES:
        message = f"the reference key is shorter than {REFERENCE_BYTES} bytes: restore it from your copy"
        raise InvalidRequest(message, field="keys.reference")
    return key


def _database(config: settings.Settings, *, create: bool, pooled: bool) -> sa.Engine:
    database = open_configured(config, pooled=pooled)
    file = file_of(database.url)
    if file is not None and not file.exists():
        if not create:
            message = (
                f"the control database {file} is missing: restore it from a backup. `expunge migrate` makes a new and "
                "empty one, which knows no job and no tombstone"
            )
            raise DatabaseMissing(message)
        with contextlib.suppress(OSError):  # told by the first use, in the words of the database
            make_file(file)
    return database


def open_configured(config: settings.Settings, *, pooled: bool = True) -> sa.Engine:
    """Give the engine of the configured control database; raises `InvalidRequest` for what is none."""
    url = settings.inside(config.database_url.get_secret_value(), config.state_dir)
    try:
        return open_database(url, pooled=pooled)
    except (sa.exc.ArgumentError, ImportError, ValueError):
        message = "database_url names no database that can be opened: sqlite:///FILE or postgresql+psycopg://HOST/NAME"
        raise InvalidRequest(message, field="database_url") from None


def file_of(url: sa.URL) -> Path | None:
    """Name the file of a SQLite URL."""
    if url.get_backend_name() != "sqlite" or url.database in {None, "", ":memory:"}:
        return None
    return Path(str(url.database))


def _stores(config: settings.Settings) -> list[Store]:
    classes = resolve(list(config.adapters))
    return [
        Store(
            name=name,
            role=classes[name].factory.role,
            required=settings.store(name, options).required,
            max_batch=classes[name].factory.max_batch,
        )
        for name, options in config.adapters.items()
    ]


def _options(config: settings.Settings, name: str) -> dict[str, object]:
    """Give an adapter's own options: what the engine reads of its section is left out."""
    if name not in config.adapters:
        message = f"[adapters.{name}] is not in the configuration: add it to use this store"
        raise InvalidRequest(message, field=f"adapters.{name}")
    options = {k: v for k, v in config.adapters[name].items() if k not in settings.StoreSettings.model_fields}
    if isinstance(url := options.get("url"), str):
        options["url"] = settings.inside(url, config.state_dir)
    return options


def _deadline(config: settings.DeadlineSettings) -> Any:  # noqa: ANN401 - a rule from a time to a time
    if config.regime == "gdpr":
        return one_month_later
    return days_later(CCPA_DAYS if config.days is None else config.days)
