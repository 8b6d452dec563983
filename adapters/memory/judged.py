"""Whether the gate would refuse a record that is there: it is asked as if the record were written now."""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa

from adapters.memory.batch import Found
from adapters.memory.confirmation import confirmation, is_used
from adapters.memory.facts import scope_of
from adapters.memory.sources import origin_of
from adapters.memory.tombstones import LocalTombstones
from orchestrator import Gate, Write


def is_forgotten(connection: sa.Connection, gate: Gate, row: Found, text: str, but: Collection[str] = ()) -> bool:
    """Tell whether the gate would refuse a text of the record's scope, key and source.

    `but` are the jobs whose tombstones do not count.
    """
    scope = scope_of(row.tenant, row.user_id, row.project)
    said = confirmation(gate, scope, row.source, row.key)
    origin = origin_of(connection, scope, row.source)
    confirmed = is_used(connection, said)
    write = Write(scope=scope, key=row.key, text=text, origin=origin, confirmed=confirmed)
    return gate.decide(write, LocalTombstones(connection, but)) is not None
