"""The memory store under the adapter contract: it revokes first, and is erased with the other stores.

Principles: no call begins or commits after an order's deadline; one transaction per job for
revoke, one per batch for erase; log lines carry ids and counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from adapters.memory import erase as erasing
from adapters.memory import find as finding
from adapters.memory import revoke as revoking
from adapters.memory import verify as verifying
from adapters.memory.engine import BUSY_MS, checkpoint, file_of, open_engine, reading, writing
from adapters.memory.store import MemoryStore
from orchestrator import (
    AdapterContext,
    DeadlinePassed,
    Erased,
    EraseOrder,
    Holding,
    InvalidRequest,
    Revocation,
    Role,
    Seen,
)

NAME: Final = "memory"


class Options(BaseModel):
    """What an operator may set for this adapter."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    url: str = Field(default="sqlite:///memory.db", description="SQLite file of the source database")


class MemoryAdapter:
    """The source of facts. `store` is the library that applications read and write through."""

    name = NAME
    role = Role.SOURCE
    max_batch = 200

    def __init__(self, context: AdapterContext, **options: object) -> None:
        """Check the options; the file is opened by the first call."""
        url = _options(options).url
        self._context = context
        self._file = file_of(url)
        self._engine = open_engine(url)
        self.store = MemoryStore(self._engine, context.gate, context.clock)

    def revoke(self, orders: Sequence[EraseOrder]) -> Sequence[Revocation]:
        """Find, blank, raise the revision and set tombstones, in one transaction per job."""
        answers = []
        for order in orders:
            with writing(self._engine, wait_ms=self._wait_ms([order])) as connection:
                self._in_time([order])
                answer = revoking.revoke(connection, self._context.gate, order)
                self._in_time([order])
            self._context.log.info("source.revoked", job_id=str(order.job), targets=len(answer.targets))
            answers.append(answer)
        self._empty_log(orders)
        return answers

    def find(self, orders: Sequence[EraseOrder]) -> Sequence[Holding]:
        """List what each order names; reads only."""
        with reading(self._engine, wait_ms=self._wait_ms(orders)) as connection:
            return [finding.find(connection, order) for order in orders]

    def erase(self, orders: Sequence[EraseOrder]) -> Sequence[Erased]:
        """Delete exactly the targets of each order, all orders in one transaction."""
        with writing(self._engine, wait_ms=self._wait_ms(orders)) as connection:
            self._in_time(orders)
            answers = erasing.erase(connection, self._context.gate, orders)
            self._in_time(orders)
        for order, answer in zip(orders, answers, strict=True):
            self._context.log.info("facts.erased", job_id=str(order.job), erased=answer.erased)
        self._empty_log(orders)
        return answers

    def verify(self, orders: Sequence[EraseOrder]) -> Sequence[Seen]:
        """Count what remains, by raw SQL on the file."""
        return verifying.verify(self._file, orders, wait=self._wait_ms(orders) / 1000)

    def close(self) -> None:
        """Give back connections."""
        self._engine.dispose()

    def _empty_log(self, orders: Sequence[EraseOrder]) -> None:
        if orders and not checkpoint(self._engine):
            self._context.log.warning("store.log_kept", orders=len(orders))

    def _wait_ms(self, orders: Sequence[EraseOrder]) -> int:
        """Give how long a lock may be waited for: no longer than the first deadline allows."""
        self._in_time(orders)
        now = self._context.clock.now()
        left = min((int((order.deadline - now).total_seconds() * 1000) for order in orders), default=BUSY_MS)
        return max(0, min(left, BUSY_MS))

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
