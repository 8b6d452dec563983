"""What stays of an event that was erased: that there was one of its key, under a keyed hash.

So no older event answers in its place, and no late one is applied over it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

import sqlalchemy as sa

from adapters.memory.batch import columns, look_up
from adapters.memory.tables import erased_events
from orchestrator import Gate, Scope

LAST: Final = 2**63 - 1
"""No sequence is greater."""
_MAC: Final = columns(tenant=str, key_mac=str, as_of=int)


def key_mac(gate: Gate, scope: Scope, key: str) -> str:
    """Name a key of a scope without saying which."""
    return gate.handle(scope.tenant, "preference", scope.canonical(), key)


def newest(
    connection: sa.Connection, gate: Gate, scope: Scope, keys: Collection[str], as_of: int = LAST
) -> Mapping[str, int]:
    """Give the sequence of the last erased event of each of these keys that has one, up to a sequence."""
    macs = {key_mac(gate, scope, key): key for key in keys}
    rows = look_up(connection, _MAC, [(scope.tenant, mac, as_of) for mac in macs], _newest)
    return {macs[row.key_mac]: row.sequence for row in rows}


def _newest(given: sa.FromClause) -> sa.Select[Any]:
    m, g = erased_events.c, given.c
    here = (m.tenant == g.tenant) & (m.key_mac == g.key_mac) & (m.sequence <= g.as_of)
    found = sa.select(m.key_mac, sa.func.max(m.sequence).label("sequence")).select_from(given.join(erased_events, here))
    return found.group_by(m.key_mac)
