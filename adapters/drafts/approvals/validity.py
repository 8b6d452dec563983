"""Whether an action may still be decided on, or sent: asked in the transaction that does so.

Principles: the revision is that of the request, nothing has expired (at equality it has), whoever
it is about is a member now, and the payload is there, word for word. What fails once is void for
good, and so is never sent because it holds again.
"""

from __future__ import annotations

from collections.abc import Callable
from hmac import compare_digest
from typing import TypeAlias

import sqlalchemy as sa

from adapters.drafts.approvals.description import digest
from adapters.drafts.step import APPROVAL
from adapters.drafts.tables import drafts
from adapters.drafts.validity import is_current
from adapters.memory.batch import Found
from adapters.memory.facts import revision
from orchestrator import Gate, Scope

IsMember: TypeAlias = Callable[[Scope], bool]
"""Tells whether whoever a scope is about may work in it now, by the application's own books. It is asked inside a
transaction, so it answers at once, and does not write to the source database."""


def admits(is_member: IsMember, scope: Scope) -> bool:
    """Tell whether whoever a scope is about may work in it.

    Only True is a yes: what a forgotten `await` gives is none.
    """
    return is_member(scope) is True


def payload_of(
    connection: sa.Connection, gate: Gate, scope: Scope, row: Found, *, now: float, is_member: IsMember
) -> str | None:
    """Give the payload of an approval of this scope while it holds; `now` is in seconds since 1970."""
    if not admits(is_member, scope) or not is_current(row, revision(connection, scope), now):
        return None
    d = drafts.c
    here = (d.tenant == row.tenant) & (d.job == row.handle) & (d.step == APPROVAL)
    text: str | None = connection.scalar(sa.select(d.text).where(here))
    if text is None:
        return None
    rests_on = {"memory_rev": row.memory_rev, "memory_expires": row.memory_expires}
    described = digest(gate, scope, row.name, row.action, text, **rests_on)
    return text if compare_digest(described, row.payload_mac) else None
