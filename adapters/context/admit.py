"""The gate before an input: what has been forgotten goes in no more, though a hold still keeps its record.

A record passed the gate when it was stored, perhaps by a fresh confirmation of its text. So the
gate is asked for its source, its key and its owner; its text is not asked for again.
"""

from __future__ import annotations

import sqlalchemy as sa

from adapters.context.record import Record
from adapters.memory.sources import ancestors_of, row_of
from adapters.memory.tombstones import LocalTombstones
from orchestrator import Gate, GateRefused, Origin, Refusal, Write


def position(connection: sa.Connection, record: Record) -> int:
    """Give the accepted position of a record's source, 0 where it was never accepted."""
    row = row_of(connection, record.scope.tenant, record.source)
    return 0 if row is None else int(row.position)


def is_admitted(connection: sa.Connection, gate: Gate, record: Record) -> bool:
    """Tell whether the gate lets a record through; raises `GateRefused` where it cannot tell of any."""
    tenant = record.scope.tenant
    ancestors = ancestors_of(connection, tenant, record.source)
    origin = Origin(id=record.source, position=position(connection, record), ancestors=ancestors)
    refusal = gate.decide(
        Write(scope=record.scope, key=record.key, text="", origin=origin), LocalTombstones(connection)
    )
    if refusal is Refusal.KEYRING_INCOMPLETE:
        raise GateRefused(refusal)
    return refusal is None
