"""The memory store under the adapter contract: it revokes first, and is erased with the other stores.

Principles: no call begins or commits after an order's deadline; one transaction a batch, so
that either all of it is done or nothing; log lines carry ids and counts, never the URL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import Final
from uuid import UUID

import sqlalchemy as sa
from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from adapters.memory import erase as erasing
from adapters.memory import expired as expiring
from adapters.memory import find as finding
from adapters.memory import restore as restoring
from adapters.memory import revoke as revoking
from adapters.memory import verify as verifying
from adapters.memory.chains import SourceChains, WallClock, open_in
from adapters.memory.engine import BUSY_MS, checkpoint, database_of, open_engine, parse, reading, writing
from adapters.memory.epoch import Epoch
from adapters.memory.instant import micros
from adapters.memory.masters import MemoryMasters
from adapters.memory.physical import SourceFiles
from adapters.memory.store import MemoryStore
from orchestrator import (
    AdapterContext,
    DeadlinePassed,
    Erased,
    EraseOrder,
    Expired,
    Holding,
    InvalidRequest,
    Replayed,
    Revocation,
    Role,
    ScrubReport,
    Seen,
    Tombstone,
)

NAME: Final = "memory"


class Options(BaseModel):
    """What an operator may set for this adapter."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    url: SecretStr = Field(
        default=SecretStr("sqlite:///memory.db"), description="SQLite file or PostgreSQL URL of the source database"
    )


class MemoryAdapter:
    """The source of facts and memories: `store` and `chains` are the libraries that applications work with."""

    name = NAME
    role = Role.SOURCE
    max_batch = 200

    def __init__(self, context: AdapterContext, **options: object) -> None:
        """Check the options; the database is opened by the first call."""
        self._context = context
        self._url = parse(_options(options).url.get_secret_value())
        self._residuals = database_of(self._url).RESIDUALS
        known = context.epoch
        self._engine = open_engine(self._url, None if known is None else Epoch(partial(known, NAME)))
        self.store = MemoryStore(self._engine, context.gate, context.clock)
        self._files = SourceFiles(self._engine, context)
        self.file_group = self._files.file_group

    @cached_property
    def chains(self) -> SourceChains:
        """The memories with their corrections, in the same database; their tables are made where there are none."""
        return open_in(self._engine, WallClock(self._context.clock), self._context.gate)

    @property
    def masters(self) -> MemoryMasters:
        """Which records are handed out now, for a store of what is made from them."""
        return MemoryMasters(self._engine, self._context.clock)

    def revoke(self, orders: Sequence[EraseOrder]) -> Sequence[Revocation]:
        """Find, hide, raise revisions and set tombstones, all orders in one transaction; what is held stays."""
        with self._writing(orders) as connection:
            now = self._context.clock.now()
            answers = revoking.revoke(connection, self._context.gate, orders, at=now, by=self._context.fingerprinter)
        for order, answer in zip(orders, answers, strict=True):
            facts = {"targets": len(answer.targets), "left": len(answer.left)}
            self._context.log.info("source.revoked", job_id=str(order.job), **facts)
        self._empty_log(answers)
        return answers

    def find(self, orders: Sequence[EraseOrder]) -> Sequence[Holding]:
        """List what each order names; reads only."""
        with reading(self._engine, wait_ms=self._wait_ms(orders)) as connection:
            return finding.find(connection, orders)

    def erase(self, orders: Sequence[EraseOrder]) -> Sequence[Erased]:
        """Delete exactly the targets of each order, all orders in one transaction."""
        with self._writing(orders) as connection:
            answers = erasing.erase(connection, self._context.gate, self._context.clock, orders, self._residuals)
        for order, answer in zip(orders, answers, strict=True):
            self._context.log.info("facts.erased", job_id=str(order.job), erased=answer.erased)
        self._empty_log(answers)
        return answers

    def verify(self, orders: Sequence[EraseOrder]) -> Sequence[Seen]:
        """Count what remains, by hand-written SQL on a connection of its own."""
        return verifying.verify(self._url, orders, wait_ms=self._wait_ms(orders))

    def expired(self) -> Iterable[Expired]:
        """Name the scopes in which facts or memories have expired that no job has taken yet; reads only."""
        with reading(self._engine) as connection:
            return expiring.scopes(connection, micros(self._context.clock.now()))

    def restore(
        self, copy: Path | None, tombstones: Iterable[tuple[str, UUID, Tombstone]], epoch: Callable[[], int]
    ) -> Replayed:
        """Put a copy in the place of the database, up to date; PostgreSQL is put back by its own means first."""
        gate = self._context.gate
        if copy is None:
            return restoring.in_place(self._engine, gate, tombstones, epoch)
        if self._url.get_backend_name() != "sqlite":
            message = "put the PostgreSQL database back by its own means, then name no copy"
            raise InvalidRequest(message, field="copy")
        return restoring.from_copy(Path(str(self._url.database)), copy, gate, tombstones, epoch)

    def scrub(self) -> ScrubReport:
        """Rewrite the database's files without what was deleted."""
        return self._files.scrub()

    def live_files(self) -> AbstractContextManager[Sequence[Path]]:
        """Give the database's files, and keep them still meanwhile."""
        return self._files.live_files()

    def live_values(self) -> Iterable[bytes]:
        """Give the texts of all live records."""
        return self._files.live_values()

    def plant(self, marker: bytes) -> None:
        """Store a marker of a scan."""
        self._files.plant(marker)

    def uproot(self, marker: bytes) -> None:
        """Take a marker away."""
        self._files.uproot(marker)

    def close(self) -> None:
        """Give back connections."""
        self._engine.dispose()

    @contextmanager
    def _writing(self, orders: Sequence[EraseOrder]) -> Iterator[sa.Connection]:
        tenants = {order.scope.tenant for order in orders}
        left_ms = self._left_ms(orders)
        with writing(self._engine, tenants, wait_ms=min(left_ms, BUSY_MS), call_ms=left_ms) as connection:
            self._in_time(orders)
            yield connection
            self._in_time(orders)

    def _empty_log(self, answers: Sequence[object]) -> None:
        if answers and not checkpoint(self._engine):
            self._context.log.warning("store.log_kept", orders=len(answers))

    def _wait_ms(self, orders: Sequence[EraseOrder]) -> int:
        """Give how long a lock may be waited for: no longer than the first deadline allows."""
        return min(self._left_ms(orders), BUSY_MS)

    def _left_ms(self, orders: Sequence[EraseOrder]) -> int:
        """Give how long it is until the first deadline."""
        self._in_time(orders)
        now = self._context.clock.now()
        left = min((int((order.deadline - now).total_seconds() * 1000) for order in orders), default=BUSY_MS)
        return max(0, left)

    def _in_time(self, orders: Sequence[EraseOrder]) -> None:
        now = self._context.clock.now()
        if any(now > order.deadline for order in orders):
            raise DeadlinePassed


def _options(options: dict[str, object]) -> Options:
    try:
        return Options.model_validate(options)
    except ValidationError as error:
        wrong = ", ".join(sorted({".".join(map(str, e["loc"])) for e in error.errors(include_input=False)}))
        message = f"adapter {NAME}: option {wrong} is not valid (allowed: {', '.join(Options.model_fields)})"
        raise InvalidRequest(message, field=f"adapters.{NAME}.{wrong}") from None
