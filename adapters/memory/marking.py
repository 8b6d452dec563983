"""Which tombstones revocations set, made from what the store knows before a text is overwritten."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeAlias

import sqlalchemy as sa

from adapters.memory.batch import Build, Found, columns, look_up
from adapters.memory.due import Due
from adapters.memory.facts import scope_of
from adapters.memory.repoint import NOTHING, Standing, text_of
from adapters.memory.selection import Handle
from adapters.memory.tables import (
    USER_WIDE,
    accepted_sources,
    fact_candidates,
    facts,
    preference_events,
    source_ancestry,
)
from adapters.memory.texts import Elsewhere, elsewhere
from orchestrator import Gate, Scope, SelectorKind, Tombstone, distinctive_tokens

Source: TypeAlias = tuple[str, str]
"""Tenant and id."""
Key: TypeAlias = tuple[Scope, str]
TOLD: Final = frozenset({SelectorKind.KEY, SelectorKind.MEMORY, SelectorKind.EXPIRED})
"""Ways of asking under which the tokens of a fact are marked."""
_SOURCE: Final = columns(tenant=str, source_id=str)
_NUMBERED: Final = columns(number=int, tenant=str, user_id=str, project=str)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the tombstones of requests depend on, read once for all orders of a batch."""

    owners: Mapping[Source, str]  # users of named sources
    projects: Mapping[Scope, Collection[str]]  # in which a user has data or sources


@dataclass(frozen=True, kw_only=True)
class Told:
    """What the tombstones of facts depend on beside them: other sources that told them, and other texts."""

    ancestors: Mapping[Source, Sequence[str]]
    elsewhere: Elsewhere
    positions: Mapping[Source, int]  # of the sources of what has expired


def asked(connection: sa.Connection, due: Iterable[Due]) -> Asked:
    """Read what the tombstones of the requests depend on."""
    first = [each.order for each in due if each.is_first]
    sources = {(o.scope.tenant, str(o.selector.value)) for o in first if o.selector.kind is SelectorKind.SOURCE}
    everywhere = {o.scope for o in first if o.selector.kind is SelectorKind.KEY and o.scope.project is None}
    return Asked(owners=_owners(connection, sources), projects=_projects(connection, everywhere))


def told(
    connection: sa.Connection, rows: Collection[Found], doubtful: Collection[Handle], expired: Iterable[Found] = ()
) -> Told:
    """Read what the tombstones of these records depend on; `doubtful` are records that may leave with them.

    `expired` are those of them that go because their time is over.
    """
    return Told(
        ancestors=ancestors(connection, {(row.tenant, row.source) for row in rows}),
        elsewhere=elsewhere(connection, rows, doubtful),
        positions=positions(connection, {(row.tenant, row.source) for row in expired}),
    )


def of_request(gate: Gate, around: Asked, due: Due, keys: Iterable[Key]) -> Iterator[Tombstone]:
    """Make the tombstones of a request itself: they stand for what a hold covers as well.

    `keys` are those of a memory that is named; the sources of a subject have their own.
    """
    scope, value = due.order.scope, due.order.selector.value or ""
    match due.order.selector.kind:
        case SelectorKind.SUBJECT:
            yield gate.for_subject(scope, due.cut_off)
        case SelectorKind.SOURCE:
            # Nobody blocks another user's source; one that was not accepted yet is blocked in advance.
            if around.owners.get((scope.tenant, value), scope.user) == scope.user:
                yield gate.for_source(scope.tenant, value, due.cut_off)
        case SelectorKind.KEY:
            for place in _blocked(scope, around):
                yield gate.for_key(place, value, due.cut_off)
        case SelectorKind.MEMORY:
            for place, key in keys:
                yield gate.for_key(place, key, due.cut_off)


def of_sources(gate: Gate, due: Due, sources: Iterable[str]) -> Iterator[Tombstone]:
    """Make the tombstones of a subject's sources."""
    for source in sources:
        yield gate.for_source(due.order.scope.tenant, source, due.cut_off)


def of_records(
    gate: Gate,
    around: Told,
    due: Due,
    live: Iterable[Found],
    leaving: Collection[Handle],
    stays: Standing = NOTHING,
) -> Iterator[Tombstone]:
    """Make the tombstones of records whose text is still there; `leaving` are all that leave by then.

    A text that `stays` by another source is not marked where a source is forgotten.
    """
    kind, staying = due.order.selector.kind, dict[Scope, frozenset[str]]()
    if kind is SelectorKind.SUBJECT:
        return
    for row in live:
        scope = scope_of(row.tenant, row.user_id, row.project)
        # What has expired may be told again by a new message, in the same words: its cut-off is its own source's.
        cut_off = around.positions[row.tenant, row.source] if kind is SelectorKind.EXPIRED else due.cut_off
        of_source = kind is SelectorKind.SOURCE
        if kind is not SelectorKind.EXPIRED and not (of_source and text_of(row) in stays):
            yield gate.for_text(scope, row.key, row.value, cut_off)
        if kind not in TOLD:
            continue
        if scope not in staying:
            staying[scope] = around.elsewhere.of(scope, leaving)
        tokens = distinctive_tokens(row.value, staying[scope].intersection)
        # The sources behind this one have told the same fact.
        for source in (row.source, *around.ancestors.get((row.tenant, row.source), ())):
            yield from gate.for_tokens(scope, source, tokens, cut_off)


def of_expired(gate: Gate, keys: Mapping[Key, int]) -> Iterator[Tombstone]:
    """Make the tombstones of keys whose facts have expired, each up to the position of their latest source."""
    for (place, key), position in keys.items():
        yield gate.for_key(place, key, position)


def sources_of(
    connection: sa.Connection, scopes: Collection[Scope], limit: int
) -> Mapping[Scope, Sequence[str]] | None:
    """Read the sources of subjects; None where they are more than `limit`."""
    found = _by_scope(connection, scopes, _some_sources(limit + 1))
    return found if sum(map(len, found.values())) <= limit else None


def _blocked(scope: Scope, around: Asked) -> Sequence[Scope]:
    """Give the scopes in which a key is blocked: all that the user has data or sources in, if no project is named."""
    if scope.project is not None:
        return [scope]
    return [scope_of(scope.tenant, scope.user, name) for name in {USER_WIDE, *around.projects.get(scope, ())}]


def _projects(connection: sa.Connection, scopes: Collection[Scope]) -> Mapping[Scope, Collection[str]]:
    used = _by_scope(connection, scopes, _projects_in_use)
    return {scope: set(used.get(scope, ())) for scope in scopes}


def _projects_in_use(given: sa.FromClause) -> sa.CompoundSelect[Any]:
    o = given.c
    parts = []
    for table in (facts, preference_events, fact_candidates, accepted_sources):
        here = (table.c.tenant == o.tenant) & (table.c.user_id == o.user_id)
        parts.append(sa.select(o.number, table.c.project).select_from(given.join(table, here)))
    return sa.union(*parts)


@cache
def _some_sources(limit: int) -> Build:
    def build(given: sa.FromClause) -> sa.Select[Any]:
        s, o = accepted_sources.c, given.c
        here = (s.tenant == o.tenant) & (s.user_id == o.user_id) & (o.project.is_(None) | (s.project == o.project))
        return sa.select(o.number, s.source_id).select_from(given.join(accepted_sources, here)).limit(limit)

    return build


def _by_scope(connection: sa.Connection, scopes: Collection[Scope], build: Build) -> Mapping[Scope, Sequence[str]]:
    """Read one text column for each scope; no project is every project."""
    numbered, found = list(scopes), defaultdict[Scope, list[str]](list)
    rows = [(n, scope.tenant, scope.user, scope.project) for n, scope in enumerate(numbered)]
    for number, text in look_up(connection, _NUMBERED, rows, build):
        found[numbered[number]].append(text)
    return found


def _owners(connection: sa.Connection, sources: Collection[Source]) -> dict[Source, str]:
    rows = look_up(connection, _SOURCE, list(sources), _accepted)
    return {(row.tenant, row.source_id): row.user_id for row in rows}


def positions(connection: sa.Connection, sources: Collection[Source]) -> Mapping[Source, int]:
    """Give the position at which each source was accepted."""
    rows = look_up(connection, _SOURCE, list(sources), _accepted)
    return {(row.tenant, row.source_id): row.position for row in rows}


def _accepted(given: sa.FromClause) -> sa.Select[Any]:
    s, o = accepted_sources.c, given.c
    same = (s.tenant == o.tenant) & (s.source_id == o.source_id)
    return sa.select(s.tenant, s.source_id, s.user_id, s.position).select_from(given.join(accepted_sources, same))


def ancestors(connection: sa.Connection, sources: Collection[Source]) -> Mapping[Source, Sequence[str]]:
    """Name the sources that each of these was derived from, transitively."""
    found = defaultdict[Source, list[str]](list)
    for tenant, source, ancestor in look_up(connection, _SOURCE, list(sources), _ancestry_of_sources):
        found[tenant, source].append(ancestor)
    return found


def _ancestry_of_sources(given: sa.FromClause) -> sa.Select[Any]:
    a, o = source_ancestry.c, given.c
    same = (a.tenant == o.tenant) & (a.source_id == o.source_id)
    return sa.select(a.tenant, a.source_id, a.ancestor_id).select_from(given.join(source_ancestry, same))
