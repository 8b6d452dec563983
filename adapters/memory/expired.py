"""What has expired and still lies in the store: hidden from every read, and nobody has asked for it to go.

Principles: the newest version decides, of a fact as of a chain of memories; reads only.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

import sqlalchemy as sa

from adapters.memory.batch import Found
from adapters.memory.chains.named import any_here
from adapters.memory.chains.tables import memories
from adapters.memory.chains.visible import CORRECTED_BY, readable
from adapters.memory.facts import scope_of
from adapters.memory.instant import InstantUs
from adapters.memory.tables import EXPIRES, facts
from orchestrator import Expired, Scope

_BY: Final = sa.bindparam("at_us", type_=sa.BigInteger())
_f: Final = facts.c
_newer: Final = facts.alias("newer")
_FACTS: Final = sa.select(_f.tenant, _f.user_id, _f.project, _f.fact_id.label("id")).where(
    EXPIRES,
    _f.expires <= sa.cast(_BY, sa.Double()) / 1e6,
    _f.state != "revoked",
    ~sa.exists().where(_newer.c.tenant == _f.tenant, _newer.c.fact_id == _f.fact_id, _newer.c.version > _f.version),
)
_MEMORIES: Final = (
    readable()
    .with_only_columns(sa.column("tenant"), memories.c.user_id, memories.c.task_id.label("project"), memories.c.id)
    .where(memories.c.expires_at.is_not(None), InstantUs(memories.c.expires_at) <= _BY, CORRECTED_BY.is_(None))
)


def scopes(connection: sa.Connection, at_us: int) -> list[Expired]:
    """Name each scope once; one of all projects of a user stands for those of single projects as well."""
    due = defaultdict[Scope, list[str]](list)
    for row in _rows(connection, at_us):
        due[scope_of(row.tenant, row.user_id, row.project or "")].append(str(row.id))
    whole = {(scope.tenant, scope.user) for scope in due if scope.project is None}
    found = defaultdict[Scope, list[str]](list)
    for scope, ids in due.items():
        user = Scope(tenant=scope.tenant, user=scope.user)
        found[user if (scope.tenant, scope.user) in whole else scope] += ids
    return [Expired(scope=scope, mark=_mark(ids)) for scope, ids in found.items()]


def _rows(connection: sa.Connection, at_us: int) -> Iterator[Found]:
    yield from connection.execute(_FACTS, {"at_us": at_us})
    if any_here(connection):
        yield from connection.execute(_MEMORIES, {"at_us": at_us})


def _mark(ids: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(sorted(ids)).encode()).hexdigest()
