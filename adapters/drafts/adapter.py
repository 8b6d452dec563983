"""Drafts under the adapter contract: checkpoints, reports and what waits for approval, in the source's own database.

Principles: no call begins or commits after an order's deadline; one transaction a batch, so
that either all of it is done or nothing; log lines carry ids and counts, never the URL.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from typing import Final

from pydantic import Field, SecretStr

from adapters.drafts import erase as erasing
from adapters.drafts import find as finding
from adapters.drafts import verify as verifying
from adapters.drafts.approvals.gateway import Gateway, Tool
from adapters.drafts.approvals.library import Approvals
from adapters.drafts.approvals.validity import IsMember
from adapters.drafts.masters import DraftMasters
from adapters.drafts.runtime import DraftRuntime
from adapters.drafts.schema import bring_up, is_here
from adapters.memory.adapter import NAME as SOURCE
from adapters.memory.calls import deciding, wait_ms
from adapters.memory.engine import checkpoint, database_of, open_engine, parse, reading
from adapters.memory.epoch import Epoch
from adapters.memory.physical import SourceFiles
from orchestrator import (
    AdapterContext,
    Erased,
    EraseOrder,
    Holding,
    InFiles,
    Role,
    Seen,
)
from orchestrator.options import AdapterOptions

NAME: Final = "drafts"


class Options(AdapterOptions):
    """What an operator may set for this adapter."""

    url: SecretStr = Field(
        default=SecretStr("sqlite:///memory.db"), description="the source database: what [adapters.memory] url says"
    )


class DraftsAdapter(InFiles):
    """What draft jobs and approvals hold. `runtime`, `approvals` and `gateway` are what applications work with."""

    name = NAME
    role = Role.DERIVED
    max_batch = 200

    def __init__(self, context: AdapterContext, **options: object) -> None:
        """Check the options; the database is opened by the first call."""
        self._context = context
        self._url = parse(Options.read(NAME, options).url.get_secret_value(), context.state_dir)
        self._residuals = database_of(self._url).RESIDUALS
        known = context.epoch
        self._engine = open_engine(self._url, None if known is None else Epoch(partial(known, SOURCE)))
        # The files are the source's, and bear its name: one scrub of them runs at a time and serves both adapters.
        self._files = SourceFiles(self._engine, context)

    @cached_property
    def runtime(self) -> DraftRuntime:
        """The draft jobs; their tables are made where there are none."""
        return DraftRuntime(self._engine, self._context)

    def approvals(self, is_member: IsMember) -> Approvals:
        """Give the actions that wait for approval; `is_member` tells who may still work in a scope."""
        return Approvals(self._engine, self._context, is_member)

    def gateway(self, tool: Tool, is_member: IsMember) -> Gateway:
        """Give the way of approved actions to a tool; `is_member` as above."""
        return Gateway(self._engine, self._context, tool, is_member)

    @cached_property
    def masters(self) -> DraftMasters:
        """Current reports, for a store that holds what was made from them."""
        bring_up(self._engine)
        return DraftMasters(self._engine, self._context.clock)

    def find(self, orders: Sequence[EraseOrder]) -> Sequence[Holding]:
        """List the drafts made from what is known, or all of the scope for a subject; reads only."""
        bring_up(self._engine, wait_ms=wait_ms(self._context, orders))
        with reading(self._engine, wait_ms=wait_ms(self._context, orders)) as connection:
            return finding.find(connection, orders)

    def erase(self, orders: Sequence[EraseOrder]) -> Sequence[Erased]:
        """Delete exactly the targets of each order, all orders in one transaction."""
        bring_up(self._engine, wait_ms=wait_ms(self._context, orders))
        with deciding(self._engine, self._context, orders) as connection:
            answers = erasing.erase(connection, orders, self._residuals)
        for order, answer in zip(orders, answers, strict=True):
            self._context.log.info("drafts.erased", job_id=str(order.job), erased=answer.erased)
        if any(answer.erased for answer in answers) and not checkpoint(self._engine):
            self._context.log.warning("store.log_kept", orders=len(answers))
        return answers

    def verify(self, orders: Sequence[EraseOrder]) -> Sequence[Seen]:
        """Count what remains, by hand-written SQL on a connection of its own."""
        bring_up(self._engine, wait_ms=wait_ms(self._context, orders))
        return verifying.verify(self._url, orders, wait_ms=wait_ms(self._context, orders))

    def live_values(self) -> Iterator[bytes]:
        """Give the texts that live in the same files: of the source, and of all drafts."""
        bring_up(self._engine)
        with reading(self._engine) as connection:
            is_here(connection)  # of another version, they would not be told as what they are
        yield from self._files.live_values()

    def close(self) -> None:
        """Give back connections."""
        self._engine.dispose()
