"""Which tombstones a batch of revocations sets, made from what the store knows before a text is overwritten."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import sqlalchemy as sa

from adapters.memory.batch import Build, Found, columns, look_up
from adapters.memory.facts import SCOPE, place_of, scope_of
from adapters.memory.selection import Handle
from adapters.memory.tables import USER_WIDE, accepted_sources, facts, source_ancestry, tenant_positions
from orchestrator import (
    EraseOrder,
    Gate,
    Scope,
    SelectorKind,
    Tombstone,
    candidate_tokens,
    distinctive_tokens,
)

Rows: TypeAlias = Sequence[Found]
Source: TypeAlias = tuple[str, str]
"""Tenant and id."""
_TENANT: Final = columns(tenant=str)
_SOURCE: Final = columns(tenant=str, source_id=str)
_NUMBERED: Final = columns(number=int, tenant=str, user_id=str, project=str)


@dataclass(frozen=True, kw_only=True)
class Going:
    """One order of a batch: all records that its selector names, and those whose text is still there."""

    order: EraseOrder
    rows: Rows
    live: Rows

    @property
    def places(self) -> Mapping[Scope, None]:
        """Scopes of the records that change, each once."""
        return dict.fromkeys(scope_of(row.tenant, row.user_id, row.project) for row in self.live)


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What the tombstones of a batch depend on beside its records, read once for all of its orders."""

    positions: Mapping[str, int]  # of each tenant's latest source
    owned: Mapping[Scope, Sequence[str]]  # sources of a subject
    owners: Mapping[Source, str]  # users of named sources
    projects: Mapping[Scope, Collection[str]]  # in which a user has data or sources
    ancestors: Mapping[Source, Sequence[str]]
    texts: Mapping[Scope, Sequence[tuple[Handle, str]]]  # active ones


def handle_of(row: Found) -> Handle:
    """Give what names a record."""
    return row.tenant, row.fact_id, row.version


def surroundings(connection: sa.Connection, batch: Sequence[tuple[EraseOrder, Rows]]) -> Surroundings:
    """Read what the tombstones of these orders depend on."""
    by_kind: defaultdict[SelectorKind, list[EraseOrder]] = defaultdict(list)
    told: list[Found] = []  # whose tokens are marked
    for order, rows in batch:
        by_kind[order.selector.kind].append(order)
        if order.selector.kind in {SelectorKind.KEY, SelectorKind.MEMORY}:
            told += (row for row in rows if row.state != "revoked")
    return Surroundings(
        positions=_positions(connection, {order.scope.tenant for order, _ in batch}),
        owned=_by_scope(connection, {o.scope for o in by_kind[SelectorKind.SUBJECT]}, _sources_of_subjects),
        owners=_owners(connection, {(o.scope.tenant, str(o.selector.value)) for o in by_kind[SelectorKind.SOURCE]}),
        projects=_projects(connection, {o.scope for o in by_kind[SelectorKind.KEY] if o.scope.project is None}),
        ancestors=_ancestors(connection, {(row.tenant, row.source) for row in told}),
        texts=_texts(connection, {scope_of(row.tenant, row.user_id, row.project) for row in told}),
    )


def tombstones(gate: Gate, around: Surroundings, going: Going, gone: Collection[Handle]) -> Iterator[Tombstone]:
    """Make the tombstones of one order; `gone` are records that an earlier order of the batch revokes.

    A version that is blank already has no text left to mark.
    """
    scope, value = going.order.scope, going.order.selector.value or ""
    cut_off = around.positions.get(scope.tenant, 0)
    match going.order.selector.kind:
        case SelectorKind.SUBJECT:
            yield gate.for_subject(scope, cut_off)
            for source in around.owned.get(scope, ()):
                yield gate.for_source(scope.tenant, source, cut_off)
        case SelectorKind.SOURCE:
            # Nobody blocks another user's source; one that was not accepted yet is blocked in advance.
            if around.owners.get((scope.tenant, value), scope.user) == scope.user:
                yield gate.for_source(scope.tenant, value, cut_off)
            for row in going.live:
                yield gate.for_text(scope_of(row.tenant, row.user_id, row.project), row.key, row.value, cut_off)
        case SelectorKind.KEY:
            for place in _blocked(scope, around):
                yield gate.for_key(place, value, cut_off)
            yield from _of_facts(gate, around, going, gone, cut_off)
        case SelectorKind.MEMORY:
            for place, key in {(scope_of(r.tenant, r.user_id, r.project), r.key) for r in going.rows}:
                yield gate.for_key(place, key, cut_off)
            yield from _of_facts(gate, around, going, gone, cut_off)


def _of_facts(
    gate: Gate, around: Surroundings, going: Going, gone: Collection[Handle], cut_off: int
) -> Iterator[Tombstone]:
    leaving = {handle_of(row) for row in going.rows}.union(gone)
    staying: dict[Scope, frozenset[str]] = {}
    for row in going.live:
        scope = scope_of(row.tenant, row.user_id, row.project)
        yield gate.for_text(scope, row.key, row.value, cut_off)
        if scope not in staying:
            stays = (text for handle, text in around.texts.get(scope, ()) if handle not in leaving)
            staying[scope] = frozenset().union(*map(candidate_tokens, stays))
        tokens = distinctive_tokens(row.value, staying[scope].intersection)
        # The sources behind this one have told the same fact.
        for source in (row.source, *around.ancestors.get((row.tenant, row.source), ())):
            yield from gate.for_tokens(scope, source, tokens, cut_off)


def _blocked(scope: Scope, around: Surroundings) -> Sequence[Scope]:
    """Give the scopes in which a key is blocked: all that the user has data or sources in, if no project is named."""
    if scope.project is not None:
        return [scope]
    return [scope_of(scope.tenant, scope.user, name) for name in {USER_WIDE, *around.projects.get(scope, ())}]


def _positions(connection: sa.Connection, tenants: Collection[str]) -> dict[str, int]:
    rows = look_up(connection, _TENANT, [(tenant,) for tenant in tenants], _latest)
    return {row.tenant: row.position for row in rows}


def _latest(given: sa.FromClause) -> sa.Select[Any]:
    p = tenant_positions
    return sa.select(p).select_from(given.join(p, p.c.tenant == given.c.tenant))


def _projects(connection: sa.Connection, scopes: Collection[Scope]) -> Mapping[Scope, Collection[str]]:
    told, heard = (_by_scope(connection, scopes, build) for build in (_projects_of_facts, _projects_of_sources))
    return {scope: {*told.get(scope, ()), *heard.get(scope, ())} for scope in scopes}


def _projects_of_facts(given: sa.FromClause) -> sa.Select[Any]:
    f, o = facts.c, given.c
    here = (f.tenant == o.tenant) & (f.user_id == o.user_id)
    return sa.select(o.number, f.project).select_from(given.join(facts, here)).distinct()


def _projects_of_sources(given: sa.FromClause) -> sa.Select[Any]:
    s, o = accepted_sources.c, given.c
    here = (s.tenant == o.tenant) & (s.user_id == o.user_id)
    return sa.select(o.number, s.project).select_from(given.join(accepted_sources, here)).distinct()


def _sources_of_subjects(given: sa.FromClause) -> sa.Select[Any]:
    s, o = accepted_sources.c, given.c
    here = (s.tenant == o.tenant) & (s.user_id == o.user_id) & (o.project.is_(None) | (s.project == o.project))
    return sa.select(o.number, s.source_id).select_from(given.join(accepted_sources, here))


def _by_scope(connection: sa.Connection, scopes: Collection[Scope], build: Build) -> Mapping[Scope, Sequence[str]]:
    """Read one text column for each scope; no project is every project."""
    numbered, found = list(scopes), defaultdict[Scope, list[str]](list)
    rows = [(n, scope.tenant, scope.user, scope.project) for n, scope in enumerate(numbered)]
    for number, text in look_up(connection, _NUMBERED, rows, build):
        found[numbered[number]].append(text)
    return found


def _owners(connection: sa.Connection, sources: Collection[Source]) -> dict[Source, str]:
    rows = look_up(connection, _SOURCE, list(sources), _users_of_sources)
    return {(row.tenant, row.source_id): row.user_id for row in rows}


def _users_of_sources(given: sa.FromClause) -> sa.Select[Any]:
    s, o = accepted_sources.c, given.c
    same = (s.tenant == o.tenant) & (s.source_id == o.source_id)
    return sa.select(s.tenant, s.source_id, s.user_id).select_from(given.join(accepted_sources, same))


def _ancestors(connection: sa.Connection, sources: Collection[Source]) -> Mapping[Source, Sequence[str]]:
    found = defaultdict[Source, list[str]](list)
    for tenant, source, ancestor in look_up(connection, _SOURCE, list(sources), _ancestry_of_sources):
        found[tenant, source].append(ancestor)
    return found


def _ancestry_of_sources(given: sa.FromClause) -> sa.Select[Any]:
    a, o = source_ancestry.c, given.c
    same = (a.tenant == o.tenant) & (a.source_id == o.source_id)
    return sa.select(a.tenant, a.source_id, a.ancestor_id).select_from(given.join(source_ancestry, same))


def _texts(connection: sa.Connection, scopes: Collection[Scope]) -> Mapping[Scope, Sequence[tuple[Handle, str]]]:
    found = defaultdict[Scope, list[tuple[Handle, str]]](list)
    for row in look_up(connection, SCOPE, [tuple(place_of(scope).values()) for scope in scopes], _active_texts):
        found[scope_of(row.tenant, row.user_id, row.project)].append((handle_of(row), row.value))
    return found


def _active_texts(given: sa.FromClause) -> sa.Select[Any]:
    f, o = facts.c, given.c
    here = (f.tenant == o.tenant) & (f.user_id == o.user_id) & (f.project == o.project) & (f.active == 1)
    columns = (f.tenant, f.user_id, f.project, f.fact_id, f.version, f.value)
    return sa.select(*columns).select_from(given.join(facts, here))
