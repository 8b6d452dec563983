"""Which tokens of what goes stand in texts that stay as well: those tell nothing of what was forgotten."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import sqlalchemy as sa

from adapters.memory.batch import Found, as_table, in_parts, read_in_parts
from adapters.memory.facts import SCOPE, place_of, scope_of
from adapters.memory.selection import Handle, handle_of
from adapters.memory.tables import facts, preference_events
from orchestrator import Scope, candidate_tokens


@dataclass(frozen=True, kw_only=True)
class Elsewhere:
    """Tokens of active texts by scope: of those that stay for certain, and of those that some order may take."""

    staying: defaultdict[Scope, set[str]] = field(default_factory=lambda: defaultdict(set))
    doubtful: defaultdict[Scope, list[tuple[Handle, set[str]]]] = field(default_factory=lambda: defaultdict(list))

    def of(self, scope: Scope, leaving: Collection[Handle]) -> frozenset[str]:
        """Give the tokens that stay in a scope when these records have left."""
        more = (tokens for handle, tokens in self.doubtful[scope] if handle not in leaving)
        return frozenset(self.staying[scope]).union(*more)


def elsewhere(connection: sa.Connection, told: Collection[Found], doubtful: Collection[Handle]) -> Elsewhere:
    """Read the active texts beside those of `told`, some at a time; only tokens of `told` are kept of them."""
    wanted: defaultdict[Scope, set[str]] = defaultdict(set)
    for row in told:
        wanted[scope_of(row.tenant, row.user_id, row.project)].update(candidate_tokens(row.value))
    found = Elsewhere()
    if wanted:
        statement = _active_texts(as_table(connection.dialect.name, SCOPE))
        rows = [tuple(place_of(scope).values()) for scope in wanted]
        for part in read_in_parts(connection, statement, SCOPE, rows):
            for row in part:
                _note(found, row, wanted, doubtful)
    return found


def staying(
    connection: sa.Connection, tokens: Mapping[Scope, set[str]], *beside: sa.Executable
) -> dict[Scope, frozenset[str]]:
    """Give those of the tokens of each scope that stand there in facts and events that stay.

    `beside` read other texts (`value`) that stay, of the scope that `HERE` is.
    """
    found = {scope: set[str]() for scope in tokens}
    for scope, wanted in tokens.items():
        for query in (_LASTING, *beside):
            for part in read_of(connection, query, scope):
                found[scope].update(*(wanted.intersection(candidate_tokens(row.value)) for row in part))
    return {scope: frozenset(some) for scope, some in found.items()}


def read_of(connection: sa.Connection, query: sa.Executable, scope: Scope) -> Iterator[Sequence[Found]]:
    """Read what stands in the scope that `HERE` is in a query, some rows at a time."""
    return in_parts(connection, query, {f"of_{name}": value for name, value in place_of(scope).items()})


def texts_of(table: sa.Table, stays: sa.ColumnElement[bool]) -> sa.Select[Any]:
    """Give the query for key and text of what stays of a table in the scope that `HERE` is."""
    c = table.c
    here = sa.tuple_(c.tenant, c.user_id, c.project) == sa.tuple_(*HERE)
    return sa.select(c.key, c.value).where(here, stays, c.value.is_not(None))


HERE: Final = [sa.bindparam(f"of_{name}", type_=sa.Text()) for name in ("tenant", "user_id", "project")]
"""Tenant, user and project of the scope that `read_of` is asked for."""
STATED: Final = texts_of(preference_events, preference_events.c.state == "live")
"""What users prefer: the events that are live."""
_LASTING: Final = sa.union_all(texts_of(facts, facts.c.active == 1), STATED)


def _note(found: Elsewhere, row: Found, wanted: defaultdict[Scope, set[str]], doubtful: Collection[Handle]) -> None:
    scope = scope_of(row.tenant, row.user_id, row.project)
    if not (tokens := wanted[scope].intersection(candidate_tokens(row.value))):
        return
    if handle_of(row) in doubtful:
        found.doubtful[scope].append((handle_of(row), tokens))
    else:
        found.staying[scope] |= tokens


def _active_texts(given: sa.FromClause) -> sa.CompoundSelect[Any]:
    """Read the active facts of scopes, and the events that are live: what leaves among those is marked by then."""
    f, e, o = facts.c, preference_events.c, given.c
    here = (f.tenant == o.tenant) & (f.user_id == o.user_id) & (f.project == o.project) & (f.active == 1)
    columns = (f.tenant, f.user_id, f.project, f.fact_id, f.version, f.value)
    stated = (e.tenant == o.tenant) & (e.user_id == o.user_id) & (e.project == o.project)
    live = stated & (e.state == "live") & e.value.is_not(None)
    return sa.union_all(
        sa.select(*columns).select_from(given.join(facts, here)),
        sa.select(e.tenant, e.user_id, e.project, e.handle, e.sequence, e.value).select_from(
            given.join(preference_events, live)
        ),
    )
