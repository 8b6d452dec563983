"""Fresh confirmation: a message in which the authenticated user of a scope states something, used once for each."""

from __future__ import annotations

from typing import TypeAlias

import sqlalchemy as sa

from adapters.memory.batch import insert_new
from adapters.memory.sources import SourceKind, row_of
from adapters.memory.tables import USER_WIDE, confirmations
from orchestrator import Gate, Scope

Confirmation: TypeAlias = tuple[str, str, str]
"""Tenant, source, and a mac over what the source confirms."""


def confirmation(gate: Gate, scope: Scope, source: str, *about: str | None) -> Confirmation:
    """Name what a source may confirm, without saying it."""
    return scope.tenant, source, gate.handle(scope.tenant, "confirmation", scope.canonical(), *about)


def said_in(connection: sa.Connection, scope: Scope, source: str) -> bool:
    """Tell whether a source is a message of exactly this scope."""
    row = row_of(connection, scope.tenant, source)
    here = (scope.user, scope.project or USER_WIDE, SourceKind.USER_MESSAGE)
    return row is not None and (row.user_id, row.project, row.kind) == here


def is_used(connection: sa.Connection, named: Confirmation) -> bool:
    """Tell whether the source has confirmed this before."""
    c = confirmations.c
    query = sa.select(sa.literal(1)).where(sa.tuple_(c.tenant, c.source_id, c.key_mac) == sa.tuple_(*named))
    return connection.scalar(query) is not None


def use(connection: sa.Connection, named: Confirmation) -> None:
    """Write down that the source has confirmed this."""
    insert_new(connection, confirmations, [named])
