"""The vector index under the adapter contract.

Principles: no call begins or commits after an order's deadline; one transaction a batch, so that
either all of it is done or nothing; a look begins when every writer that was let in before it
is through; log lines carry ids and counts, never the URL.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import sqlalchemy as sa

from adapters.memory.batch import change
from adapters.memory.calls import deciding, wait_ms
from adapters.memory.engine import checkpoint, database_of, parse, reading
from adapters.vector import erase as erasing
from adapters.vector import find as finding
from adapters.vector import options as settings
from adapters.vector import verify as verifying
from adapters.vector.engine import open_engine
from adapters.vector.index import VectorIndex
from adapters.vector.physical import IndexFiles
from adapters.vector.tables import probes
from orchestrator import AdapterContext, Erased, EraseOrder, Holding, InFiles, Masters, Role, Seen


class VectorAdapter(InFiles):
    """Points that were made from records. `index` gives the library that applications fill and ask."""

    name = settings.NAME
    role = Role.DERIVED
    max_batch = 200

    def __init__(self, context: AdapterContext, **options: object) -> None:
        """Check the options; the database is opened by the first call."""
        chosen = settings.read(options)
        self._context = context
        self._dimensions = chosen.dimensions
        self._url = parse(chosen.url.get_secret_value(), context.state_dir)
        self._residuals = database_of(self._url).RESIDUALS
        self._engine = open_engine(self._url, chosen.dimensions)
        self._files = IndexFiles(self._engine, context)

    def index(self, *masters: Masters) -> VectorIndex:
        """Give the index for writers and readers; `masters` are the sources of what points are made from."""
        context = self._context
        return VectorIndex(self._engine, context.gate, masters, dimensions=self._dimensions, log=context.log)

    def find(self, orders: Sequence[EraseOrder]) -> Sequence[Holding]:
        """List what was made from what is known, or all of the scope for a subject; reads only."""
        with reading(self._engine, wait_ms=wait_ms(self._context, orders)) as connection:
            return finding.find(connection, self._context, orders, partial(self._context.in_time, orders))

    def erase(self, orders: Sequence[EraseOrder]) -> Sequence[Erased]:
        """Delete exactly the targets of each order, all orders in one transaction."""
        with deciding(self._engine, self._context, orders) as connection:
            answers = erasing.erase(connection, self._context.gate, orders, self._residuals)
        for order, answer in zip(orders, answers, strict=True):
            self._context.log.info("points.erased", job_id=str(order.job), erased=answer.erased)
        if answers and not checkpoint(self._engine):
            self._context.log.warning("store.log_kept", orders=len(answers))
        return answers

    def verify(self, orders: Sequence[EraseOrder]) -> Sequence[Seen]:
        """Count what remains, by hand-written SQL and by the neighbourhood of what was erased."""
        with deciding(self._engine, self._context, orders):
            pass  # A writer that the guard let in before the source revoked holds this lock until it has committed.
        seen = verifying.verify(
            self._url,
            self._context.gate,
            orders,
            dimensions=self._dimensions,
            wait_ms=wait_ms(self._context, orders),
            in_time=partial(self._context.in_time, orders),
        )
        self._forget_probes([order for order, answer in zip(orders, seen, strict=True) if answer == Seen()])
        return seen

    def close(self) -> None:
        """Give back connections."""
        self._engine.dispose()

    def _forget_probes(self, orders: Sequence[EraseOrder]) -> None:
        """Take the sketches away of what was seen to be gone: a repeat of this look goes without them."""
        rows = sorted({(order.scope.tenant, target.id) for order in orders for target in order.targets})
        if rows:
            with deciding(self._engine, self._context, orders) as connection:
                change(connection, erasing.HANDLE, rows, _no_longer)


def _no_longer(given: sa.FromClause) -> sa.Delete:
    these = sa.tuple_(probes.c.tenant, probes.c.id).in_(sa.select(given))
    return probes.delete().where(these)
