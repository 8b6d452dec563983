"""Calls on a SQL database that are over by their deadlines: one transaction a batch, all of it or nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

import sqlalchemy as sa

from adapters.memory.engine import BUSY_MS, writing
from orchestrator import AdapterContext, EraseOrder


@contextmanager
def deciding(engine: sa.Engine, context: AdapterContext, orders: Collection[EraseOrder]) -> Iterator[sa.Connection]:
    """Open a transaction that writes for these orders; it neither begins nor commits after the first deadline."""
    left_ms = _left_ms(context, orders)
    tenants = {order.scope.tenant for order in orders}
    with writing(engine, tenants, wait_ms=min(left_ms, BUSY_MS), call_ms=left_ms) as connection:
        context.in_time(orders)
        yield connection
        context.in_time(orders)


def wait_ms(context: AdapterContext, orders: Collection[EraseOrder]) -> int:
    """Give how long a lock may be waited for, in milliseconds: no longer than the first deadline allows."""
    return min(_left_ms(context, orders), BUSY_MS)


def _left_ms(context: AdapterContext, orders: Collection[EraseOrder]) -> int:
    return int(context.left(orders).total_seconds() * 1000)
