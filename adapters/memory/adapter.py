"""The memory store under the adapter contract: it revokes first, and is erased with the other stores.

Principles: no call begins or commits after an order's deadline; one transaction a batch, so
that either all of it is done or nothing; log lines carry ids and counts, never the URL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Final
from uuid import UUID

from pydantic import Field, SecretStr

from adapters.memory import erase as erasing
from adapters.memory import expired as expiring
from adapters.memory import find as finding
from adapters.memory import restore as restoring
from adapters.memory import revoke as revoking
from adapters.memory import verify as verifying
from adapters.memory.calls import deciding, wait_ms
from adapters.memory.candidates import Candidates
from adapters.memory.chains import SourceChains, WallClock, open_in
from adapters.memory.engine import checkpoint, database_of, open_engine, parse, reading
from adapters.memory.epoch import Epoch
from adapters.memory.holding import nobody_holds
from adapters.memory.instant import micros
from adapters.memory.masters import MemoryMasters
from adapters.memory.physical import SourceFiles
from adapters.memory.preferences import PreferenceLog
from adapters.memory.statements import Statements
from adapters.memory.store import MemoryStore
from orchestrator import (
    AdapterContext,
    Erased,
    EraseOrder,
    Expired,
    Holding,
    InFiles,
    InvalidRequest,
    Replayed,
    Revocation,
    Role,
    Seen,
    Target,
    Tombstone,
)
from orchestrator.options import AdapterOptions

NAME: Final = "memory"


class Options(AdapterOptions):
    """What an operator may set for this adapter."""

    url: SecretStr = Field(
        default=SecretStr("sqlite:///memory.db"), description="SQLite file or PostgreSQL URL of the source database"
    )


class MemoryAdapter(InFiles):
    """The source of facts, preferences and memories.

    `store`, `preferences`, `candidates`, `statements` and `chains` are the libraries that applications work with.
    """

    name = NAME
    role = Role.SOURCE
    max_batch = 200

    def __init__(self, context: AdapterContext, **options: object) -> None:
        """Check the options; the database is opened by the first call."""
        self._context = context
        self._url = parse(Options.read(NAME, options).url.get_secret_value(), context.state_dir)
        self._residuals = database_of(self._url).RESIDUALS
        known = context.epoch
        self._engine = open_engine(self._url, None if known is None else Epoch(partial(known, NAME)))
        holds = context.holds or nobody_holds
        self.store = MemoryStore(self._engine, context.gate, context.clock, holds)
        self.preferences = PreferenceLog(self._engine, context.gate, context.clock)
        self.candidates = Candidates(self._engine, context.gate, context.clock, holds=holds)
        self.statements = Statements(self._engine, context.gate, context.clock)
        self._files = SourceFiles(self._engine, context)

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
        with deciding(self._engine, self._context, orders) as connection:
            now = self._context.clock.now()
            answers = revoking.revoke(connection, self._context.gate, orders, at=now, by=self._context.fingerprinter)
        for order, answer in zip(orders, answers, strict=True):
            facts = {"targets": len(answer.targets), "left": len(answer.left)}
            self._context.log.info("source.revoked", job_id=str(order.job), **facts)
        self._empty_log(answers)
        return answers

    def find(self, orders: Sequence[EraseOrder]) -> Sequence[Holding]:
        """List what each order names; reads only."""
        with reading(self._engine, wait_ms=wait_ms(self._context, orders)) as connection:
            return finding.find(connection, orders)

    def erase(self, orders: Sequence[EraseOrder]) -> Sequence[Erased]:
        """Delete exactly the targets of each order, all orders in one transaction."""
        with deciding(self._engine, self._context, orders) as connection:
            answers = erasing.erase(connection, self._context.gate, self._context.clock, orders, self._residuals)
        for order, answer in zip(orders, answers, strict=True):
            self._context.log.info("facts.erased", job_id=str(order.job), erased=answer.erased)
        self._empty_log(answers)
        return answers

    def verify(self, orders: Sequence[EraseOrder]) -> Sequence[Seen]:
        """Count what remains, by hand-written SQL on a connection of its own."""
        return verifying.verify(self._url, orders, wait_ms=wait_ms(self._context, orders))

    def expired(self) -> Iterable[Expired]:
        """Name the scopes in which facts or memories have expired that no job has taken yet; reads only."""
        with reading(self._engine) as connection:
            return expiring.scopes(connection, micros(self._context.clock.now()))

    def restore(
        self,
        copy: Path | None,
        tombstones: Iterable[tuple[str, UUID, Tombstone]],
        epoch: Callable[[], int],
        targets: Iterable[tuple[UUID, Target]] = (),
        kept: Iterable[tuple[UUID, str]] = (),
    ) -> Replayed:
        """Put a copy in the place of the database, up to date; PostgreSQL is put back by its own means first."""
        gate = self._context.gate
        if copy is None:
            return restoring.in_place(self._engine, gate, tombstones, epoch, targets, kept)
        if self._url.get_backend_name() != "sqlite":
            message = "put the PostgreSQL database back by its own means, then name no copy"
            raise InvalidRequest(message, field="copy")
        live, known = Path(str(self._url.database)), self._context.epoch
        at = None if known is None else known(NAME)
        return restoring.from_copy(live, copy, gate, tombstones, epoch, targets, kept, known=at)

    def close(self) -> None:
        """Give back connections."""
        self._engine.dispose()

    def _empty_log(self, answers: Sequence[object]) -> None:
        if answers and not checkpoint(self._engine):
            self._context.log.warning("store.log_kept", orders=len(answers))
