"""What a selector names: one condition that find, revoke and forget share."""

from __future__ import annotations

from typing import assert_never

import sqlalchemy as sa

from adapters.memory.tables import accepted_sources, facts, source_ancestry
from orchestrator import Scope, Selector, SelectorKind


def named(scope: Scope, selector: Selector) -> sa.ColumnElement[bool]:
    """Give the condition on `facts` for every version that a selector names, revoked ones included.

    A scope without a project is every project of the user. A source reaches into all of the
    user's projects, whatever project the scope has.
    """
    f = facts.c
    owner = (f.tenant == scope.tenant) & (f.user_id == scope.user)
    here = owner if scope.project is None else owner & (f.project == scope.project)
    match selector.kind:
        case SelectorKind.KEY:
            return here & (f.key == selector.value)
        case SelectorKind.MEMORY:
            return here & (f.fact_id == selector.value)
        case SelectorKind.SOURCE:
            a = source_ancestry.c
            derived = sa.select(a.source_id).where(a.tenant == scope.tenant, a.ancestor_id == selector.value)
            return owner & ((f.source == selector.value) | f.source.in_(derived))
        case SelectorKind.SUBJECT:
            return here
        case _:
            assert_never(selector.kind)


def accepted_until(cut_off: int) -> sa.ColumnElement[bool]:
    """Give the condition that leaves out what was stated afresh since a job's cut-off."""
    s = accepted_sources.c
    position = sa.select(s.position).where(s.tenant == facts.c.tenant, s.source_id == facts.c.source).scalar_subquery()
    return position <= cut_off
