"""Which scopes a change concerns: what holds in general is read in every project of its user."""

from __future__ import annotations

import sqlalchemy as sa

from adapters.memory.facts import raise_revision, scope_of
from adapters.memory.tables import fact_revisions
from orchestrator import Scope


def raise_revisions(connection: sa.Connection, scope: Scope) -> int:
    """Raise the revision of each scope whose readings change to one number above all of theirs, and give it."""
    return raise_revision(connection, concerned(connection, scope))


def concerned(connection: sa.Connection, scope: Scope) -> set[Scope]:
    """Give the scopes that read what is said in one: of what is said in general, all that have a revision.

    A project that has none yet is read under that of the user in general, which is among them.
    """
    return {scope, *(() if scope.project is not None else _of_user(connection, scope))}


def _of_user(connection: sa.Connection, scope: Scope) -> list[Scope]:
    r = fact_revisions.c
    query = sa.select(r.tenant, r.user_id, r.project).where(r.tenant == scope.tenant, r.user_id == scope.user)
    return [scope_of(*place) for place in connection.execute(query)]
