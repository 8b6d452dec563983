"""What an adapter can take now: its cap of running batches, its breaker, its announcement, its look at the clock.

Principle: a store that is down must not use up the attempts of every unit that waits for it.
After `FAILURES` failed calls in a row no unit is claimed for a pause; then one unit is the
probe, and its answer closes the breaker or opens it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import sqlalchemy as sa

from orchestrator.domain.unit import Phase
from orchestrator.store import bulk
from orchestrator.store import tables as t
from orchestrator.store.clock import read_now

FAILURES: Final = 5
_h, _u = t.health.c, t.units.c
_ROW = sa.select(t.health).where(_h.adapter == sa.bindparam("name")).with_for_update()
_RUNNING = sa.select(sa.func.count(_u.lease_owner.distinct())).where(
    _u.adapter == sa.bindparam("name"), _u.status == t.RUNNING
)


def room(connection: sa.Connection, adapter: str, *, cap: int, limit: int, now: int) -> int:
    """Give how many units may be claimed now, 0 for none; others that claim for the adapter wait for our commit.

    `cap` is in running batches, `now` in microseconds since 1970.
    """
    # Locking the row makes claims of one adapter take turns, so that the cap is exact on PostgreSQL as well.
    row = connection.execute(_ROW, {"name": adapter}).one_or_none()
    if row is None:
        bulk.insert(connection, t.health, [{"adapter": adapter}], conflict=bulk.KEEP)
        row = connection.execute(_ROW, {"name": adapter}).one()
    running = connection.execute(_RUNNING, {"name": adapter}).scalar_one()
    if running >= cap:
        return 0
    if row.breaker == "closed":
        return limit
    if row.breaker == "open":
        if row.open_until_us > now:
            return 0
        _set(connection, adapter, breaker="half_open", open_until_us=None)
    # A probe that died leaves no running unit behind once its lease has ended.
    return 1 if running == 0 else 0


def answered(connection: sa.Connection, adapter: str, *, failed: bool, pause_us: int) -> None:
    """Note whether a call of an adapter came back with an answer, and open or close its breaker by it."""
    row = connection.execute(_ROW, {"name": adapter}).one_or_none()
    if row is None or (not failed and row.breaker == "closed" and row.failures == 0):
        return
    if not failed:
        _set(connection, adapter, breaker="closed", failures=0, open_until_us=None)
    elif row.breaker == "half_open" or row.failures + 1 >= FAILURES:
        until = read_now(connection) + pause_us
        _set(connection, adapter, breaker="open", failures=row.failures + 1, open_until_us=until)
    else:
        _set(connection, adapter, failures=row.failures + 1)


def try_again(connection: sa.Connection, adapters: Sequence[str]) -> None:
    """Let the next claim of these adapters be a probe: somebody says that the store is back."""
    shut = t.health.update().where(_h.adapter.in_(list(adapters)), _h.breaker == "open")
    connection.execute(shut.values(breaker="half_open", open_until_us=None))


def announce(
    connection: sa.Connection, due: Sequence[tuple[str, Phase]], *, lease_us: int, cap: int
) -> list[tuple[str, Phase]]:
    """Note one announcement for each adapter that has due work, room for a batch (of `cap`) and none outstanding."""
    batches = sa.select(_u.adapter, sa.func.count(_u.lease_owner.distinct()).label("batches"))
    batches = batches.where(_u.status == t.RUNNING).group_by(_u.adapter)
    running = {row.adapter: row.batches for row in connection.execute(batches)}
    wanted = sorted({adapter for adapter, _ in due})
    bulk.insert(connection, t.health, [{"adapter": adapter} for adapter in wanted], conflict=bulk.KEEP)
    # Locked, so that of several dispatchers one notes and the others see its note.
    rows = sa.select(t.health).where(_h.adapter.in_(wanted)).order_by(_h.adapter).with_for_update()
    known = {row.adapter: row for row in connection.execute(rows)}
    now = read_now(connection)
    chosen: dict[str, Phase] = {}
    for adapter, phase in due:
        row = known[adapter]
        if running.get(adapter, 0) >= cap:
            continue
        if row.breaker == "open" and row.open_until_us > now:
            continue
        at = row.announced_at_us
        # A note older than a lease belongs to a message that the broker lost.
        if at is None or now - at > lease_us or at > now:
            chosen.setdefault(adapter, phase)
    bulk.update(connection, t.health, "adapter", [{"adapter": a, "announced_at_us": now} for a in chosen])
    return list(chosen.items())


def unlooked(connection: sa.Connection, sources: Sequence[str], *, pause_us: int) -> list[str]:
    """Name the sources that nobody has asked for so long what has expired in them."""
    since = read_now(connection) - pause_us
    looked = sa.select(_h.adapter).where(_h.adapter.in_(sources), _h.looked_at_us > since)
    recent = set(connection.execute(looked).scalars())
    return [name for name in sources if name not in recent]


def may_look(connection: sa.Connection, adapter: str, *, pause_us: int) -> bool:
    """Note that a source is asked now what has expired; False where somebody else has done so lately."""
    bulk.insert(connection, t.health, [{"adapter": adapter}], conflict=bulk.KEEP)
    now = read_now(connection)
    mine = t.health.update().where(
        _h.adapter == adapter, _h.looked_at_us.is_(None) | (_h.looked_at_us <= now - pause_us)
    )
    return connection.execute(mine.values(looked_at_us=now)).rowcount == 1


def heard(connection: sa.Connection, adapter: str) -> None:
    """Note that a worker has taken an adapter's announcement."""
    _set(connection, adapter, announced_at_us=None)


def _set(connection: sa.Connection, adapter: str, **values: object) -> None:
    connection.execute(t.health.update().where(_h.adapter == adapter).values(**values))
