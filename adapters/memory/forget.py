"""Forgetting a key in this store: revocation, and no claim beyond it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa

from adapters.memory.facts import raise_revision, revision, scope_of
from adapters.memory.holding import HoldsOn, check_free
from adapters.memory.selection import named_by
from adapters.memory.tables import facts
from orchestrator import Scope, Selector, SelectorKind

REVOKED: Final[Mapping[str, str | int]] = {"value": "[deleted]", "active": 0, "state": "revoked"}
OUTSTANDING: Final = ("vectors", "drafts", "caches", "backups")


@dataclass(frozen=True, kw_only=True, slots=True)
class Forgotten:
    """What forgetting came to: `outcome` is revoked or nothing_found, never more than that."""

    outcome: str
    versions: int
    revision: int
    outstanding: tuple[str, ...] = OUTSTANDING


def forget(connection: sa.Connection, holds: HoldsOn, scope: Scope, key: str) -> Forgotten:
    """Blank every version of a key; the revision rises only if one changed.

    Raises `RuleRefused`, and changes nothing, where a hold covers any of them.
    """
    condition = named_by(scope, Selector(kind=SelectorKind.KEY, value=key))
    there = sa.select(facts.c.fact_id).distinct().where(condition, facts.c.state != "revoked")
    check_free(holds(scope), connection.execute(there).scalars())
    changed = blank(connection, condition)
    rev = raise_revision(connection, {scope, *changed}) if changed else revision(connection, scope)
    return Forgotten(outcome="revoked" if changed else "nothing_found", versions=len(changed), revision=rev)


def blank(connection: sa.Connection, condition: sa.ColumnElement[bool]) -> Sequence[Scope]:
    """Overwrite and deactivate what is not yet revoked; give the scope of each version that changed."""
    f = facts.c
    query = (
        facts.update().where(condition, f.state != "revoked").values(REVOKED).returning(f.tenant, f.user_id, f.project)
    )
    return [scope_of(tenant, user, project) for tenant, user, project in connection.execute(query)]
