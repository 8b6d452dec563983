"""Accepting sources: every message, document or event is registered before a fact may name it."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import Any

import sqlalchemy as sa

from adapters.memory.batch import insert_new, insert_or_set
from adapters.memory.tables import USER_WIDE, accepted_sources, source_ancestry, tenant_positions
from adapters.memory.tombstones import LocalTombstones
from orchestrator import Gate, GateRefused, InvalidRequest, Origin, Refusal, Refused, Scope, Selector, SelectorKind


class SourceKind(StrEnum):
    """What a source is."""

    USER_MESSAGE = "user_message"
    DOCUMENT = "document"
    EVENT = "event"
    MODEL = "model"


def register(
    connection: sa.Connection,
    gate: Gate,
    scope: Scope,
    source: str,
    *,
    kind: str,
    derived_from: Collection[str],
    at_us: int,
) -> int:
    """Accept a source at the tenant's next position, or give the position that it has."""
    for name in (source, *derived_from):
        Selector(kind=SelectorKind.SOURCE, value=name)  # what no selector could name is never stored
    if kind not in set(SourceKind):
        raise InvalidRequest(f"kind must be one of {', '.join(SourceKind)}", field="kind")
    if source in derived_from:
        message = "a source cannot be derived from itself"
        raise InvalidRequest(message, field="derived_from")
    ancestors = _closure(connection, scope.tenant, derived_from)
    refusal = gate.source_refused(scope.tenant, {source, *ancestors}, LocalTombstones(connection))
    if refusal is not None:
        raise GateRefused(refusal)
    if _unknown(connection, scope.tenant, derived_from):
        raise GateRefused(Refusal.UNKNOWN_SOURCE)
    owner = {"user_id": scope.user, "project": scope.project or USER_WIDE, "kind": kind}
    known = row_of(connection, scope.tenant, source)
    if known is not None:
        same = all(known._mapping[name] == value for name, value in owner.items())  # noqa: SLF001 - public in SQLAlchemy
        if not same or ancestors != ancestors_of(connection, scope.tenant, source):
            # One answer for both: whose it is stays unsaid.
            message = (
                "This source id was accepted with other data before. Ids of sources belong to the whole tenant: "
                "let each say whose conversation it is of."
            )
            raise Refused(message)
        return int(known.position)
    position = next_position(connection, scope.tenant)
    place = {"tenant": scope.tenant, "source_id": source}
    connection.execute(accepted_sources.insert().values(**place, **owner, position=position, accepted_at_us=at_us))
    insert_new(connection, source_ancestry, [(scope.tenant, source, ancestor) for ancestor in sorted(ancestors)])
    return position


def row_of(connection: sa.Connection, tenant: str, source: str) -> sa.Row[Any, Any, Any, Any] | None:
    """Give owner, kind and position of an accepted source."""
    s = accepted_sources.c
    query = sa.select(s.user_id, s.project, s.kind, s.position).where(s.tenant == tenant, s.source_id == source)
    return connection.execute(query).one_or_none()


def origin_of(connection: sa.Connection, scope: Scope, source: str) -> Origin | None:
    """Give a source of this user as the gate wants it; another user's is as unknown as none."""
    row = row_of(connection, scope.tenant, source)
    if row is None or row.user_id != scope.user:
        return None
    return Origin(id=source, position=row.position, ancestors=ancestors_of(connection, scope.tenant, source))


def ancestors_of(connection: sa.Connection, tenant: str, source: str) -> frozenset[str]:
    """Name all sources that one was derived from, transitively."""
    a = source_ancestry.c
    query = sa.select(a.ancestor_id).where(a.tenant == tenant, a.source_id == source)
    return frozenset(connection.scalars(query))


def position_of(connection: sa.Connection, tenant: str) -> int:
    """Give the position that the tenant has reached, 0 before the first source."""
    query = sa.select(tenant_positions.c.position).where(tenant_positions.c.tenant == tenant)
    return connection.scalar(query) or 0


def next_position(connection: sa.Connection, tenant: str) -> int:
    """Take the tenant's next position: whatever is accepted gets one, each its own."""
    p = tenant_positions
    row = insert_or_set(connection, p, {"tenant": tenant, "position": 1}, {"position": p.c.position + 1})
    return int(row.position)


def _closure(connection: sa.Connection, tenant: str, derived_from: Collection[str]) -> frozenset[str]:
    # Each parent's ancestry is closed already, so one step closes the child's.
    return frozenset(derived_from).union(*(ancestors_of(connection, tenant, parent) for parent in derived_from))


def _unknown(connection: sa.Connection, tenant: str, names: Collection[str]) -> bool:
    return any(row_of(connection, tenant, name) is None for name in names)
