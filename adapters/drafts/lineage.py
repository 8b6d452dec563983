"""What drafts were made from, written down with them: records and other drafts by kind, id and version.

Principle: it is closed. What a draft was made from is copied to whatever is made from the
draft, so each names the records behind it itself, however many drafts lie between.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final

import sqlalchemy as sa

from adapters.drafts.tables import draft_used
from adapters.memory.batch import change, columns, insert_new, look_up
from orchestrator import Target

HANDLE: Final = columns(tenant=str, handle=str)


def write(connection: sa.Connection, tenant: str, handle: str, used: Iterable[Target]) -> None:
    """Note what a job or a draft was made from."""
    insert_new(connection, draft_used, [(tenant, handle, t.kind, t.id, t.version) for t in used])


def read(connection: sa.Connection, tenant: str, handles: Iterable[str]) -> Mapping[str, list[Target]]:
    """Give what each job or draft was made from, in a fixed order."""
    found = defaultdict[str, list[Target]](list)
    for row in look_up(connection, HANDLE, [(tenant, handle) for handle in sorted(set(handles))], _used):
        found[row.handle].append(Target(kind=row.kind, id=row.id, version=row.version))
    return {handle: sorted(used, key=lambda t: (t.kind, t.id, t.version)) for handle, used in found.items()}


def drop(connection: sa.Connection, handles: Iterable[tuple[str, str]]) -> None:
    """Take away what is known of drafts that are erased, each named by tenant and handle."""
    # Named one by one, whatever the database does by itself for rows that refer to others.
    change(connection, HANDLE, list(handles), _no_longer)


def _used(given: sa.FromClause) -> sa.Select[Any]:
    u, g = draft_used.c, given.c
    return sa.select(draft_used).select_from(given.join(draft_used, (u.tenant == g.tenant) & (u.handle == g.handle)))


def _no_longer(given: sa.FromClause) -> sa.Delete:
    u = draft_used.c
    return draft_used.delete().where(sa.tuple_(u.tenant, u.handle).in_(sa.select(given)))
