"""Revoking: targets, blank values, revision and tombstones in one transaction per job.

Principles: the row in `source_revocations` is the proof that a job was here, and a repeat
answers from what was written then. Everything that needs a text happens before the text is
overwritten. Nothing is revoked after the order's deadline.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import sqlalchemy as sa

from adapters.memory.facts import raise_revision, revision, scope_of
from adapters.memory.forget import blank
from adapters.memory.selection import named
from adapters.memory.sources import ancestors_of, position_of, row_of
from adapters.memory.tables import (
    USER_WIDE,
    accepted_sources,
    facts,
    revocation_targets,
    source_revocations,
)
from adapters.memory.tombstones import keep, of_job
from orchestrator import (
    MAX_PAGE,
    EraseOrder,
    Gate,
    InvalidRequest,
    Revocation,
    Scope,
    SelectorKind,
    Target,
    Tombstone,
    Transient,
    candidate_tokens,
    distinctive_tokens,
)

KIND = "fact"


def revoke(connection: sa.Connection, gate: Gate, order: EraseOrder) -> Revocation:
    """Revoke once for a job, and give a page of what that came to: the same for every repeat."""
    job = str(order.job)
    if cut_off_of(connection, job) is None:
        _revoke_once(connection, gate, order, job)
    return _page(connection, job, order.cursor)


def cut_off_of(connection: sa.Connection, job: str) -> int | None:
    """Give the position up to which a job reaches, or None where it has revoked nothing yet."""
    query = sa.select(source_revocations.c.cut_off).where(source_revocations.c.job == job)
    return connection.scalar(query)


def _revoke_once(connection: sa.Connection, gate: Gate, order: EraseOrder, job: str) -> None:
    f, condition = facts.c, named(order.scope, order.selector)
    rows = connection.execute(sa.select(facts).where(condition).order_by(f.fact_id, f.version)).all()
    if order.held.intersection(i for r in rows for i in (r.fact_id, f"{KIND}:{r.fact_id}")):
        # Revoking destroys a value, so nothing of the job is done until the item is free.
        message = "An item of the selection is under a hold."
        raise Transient(message)
    cut_off = position_of(connection, order.scope.tenant)
    tombstones = list(_tombstones(connection, gate, order, rows, cut_off))
    changed = blank(connection, condition)
    scope = order.scope
    rev = raise_revision(connection, {scope, *changed}) if changed else revision(connection, scope)
    connection.execute(source_revocations.insert().values(job=job, cut_off=cut_off, revision=rev, targets=len(rows)))
    if rows:
        connection.execute(
            revocation_targets.insert(),
            [
                {"job": job, "ordinal": n, "kind": KIND, "handle": r.fact_id, "version": r.version}
                for n, r in enumerate(rows, 1)
            ],
        )
    keep(connection, scope.tenant, job, tombstones)


def _page(connection: sa.Connection, job: str, cursor: str | None) -> Revocation:
    after = _ordinal(cursor)
    made = connection.execute(sa.select(source_revocations).where(source_revocations.c.job == job)).one()
    t = revocation_targets.c
    query = (
        sa.select(t.kind, t.handle, t.version)
        .where(t.job == job, t.ordinal > after)
        .order_by(t.ordinal)
        .limit(MAX_PAGE)
    )
    targets = tuple(Target(kind=kind, id=handle, version=v) for kind, handle, v in connection.execute(query))
    last = after + len(targets)
    return Revocation(
        targets=targets,
        tombstones=() if after else tuple(of_job(connection, job)),  # all of them come with the first page
        revision=made.revision,
        cursor=str(last) if last < made.targets else None,
    )


def _ordinal(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdigit()):
        message = "the cursor is not one of this store's"
        raise InvalidRequest(message, field="cursor")
    return int(cursor)


def _tombstones(
    connection: sa.Connection, gate: Gate, order: EraseOrder, rows: Sequence[sa.Row[Any]], cut_off: int
) -> Iterator[Tombstone]:
    """Make the tombstones of a request; a version that is blank already has no text left to mark."""
    scope, value = order.scope, order.selector.value or ""
    match order.selector.kind:
        case SelectorKind.SUBJECT:
            yield gate.for_subject(scope, cut_off)
            for source in _owned(connection, scope):
                yield gate.for_source(scope.tenant, source, cut_off)
        case SelectorKind.SOURCE:
            owner = row_of(connection, scope.tenant, value)
            # Nobody blocks another user's source; one that was not accepted yet is blocked in advance.
            if owner is None or owner.user_id == scope.user:
                yield gate.for_source(scope.tenant, value, cut_off)
            for row in _with_text(rows):
                yield gate.for_text(scope_of(row.tenant, row.user_id, row.project), row.key, row.value, cut_off)
        case SelectorKind.KEY:
            for place in _places(connection, scope):
                yield gate.for_key(place, value, cut_off)
            yield from _of_facts(connection, gate, rows, cut_off)
        case SelectorKind.MEMORY:
            for place, key in {(scope_of(r.tenant, r.user_id, r.project), r.key) for r in rows}:
                yield gate.for_key(place, key, cut_off)
            yield from _of_facts(connection, gate, rows, cut_off)


def _of_facts(connection: sa.Connection, gate: Gate, rows: Sequence[sa.Row[Any]], cut_off: int) -> Iterator[Tombstone]:
    going = {(row.fact_id, row.version) for row in rows}
    live: dict[Scope, frozenset[str]] = {}
    for row in _with_text(rows):
        scope = scope_of(row.tenant, row.user_id, row.project)
        yield gate.for_text(scope, row.key, row.value, cut_off)
        if scope not in live:
            live[scope] = _live_tokens(connection, scope, going)
        tokens = distinctive_tokens(row.value, live[scope].intersection)
        # The sources behind this one have told the same fact.
        for source in (row.source, *sorted(ancestors_of(connection, row.tenant, row.source))):
            yield from gate.for_tokens(scope, source, tokens, cut_off)


def _with_text(rows: Sequence[sa.Row[Any]]) -> Iterator[sa.Row[Any]]:
    return (row for row in rows if row.state != "revoked")


def _live_tokens(connection: sa.Connection, scope: Scope, going: Collection[tuple[str, int]]) -> frozenset[str]:
    """Collect the tokens of the scope's active texts that stay."""
    f = facts.c
    query = sa.select(f.fact_id, f.version, f.value).where(
        f.tenant == scope.tenant, f.user_id == scope.user, f.project == (scope.project or USER_WIDE), f.active == 1
    )
    stays = (row.value for row in connection.execute(query) if (row.fact_id, row.version) not in going)
    return frozenset().union(*map(candidate_tokens, stays))


def _owned(connection: sa.Connection, scope: Scope) -> Sequence[str]:
    s = accepted_sources.c
    query = sa.select(s.source_id).where(s.tenant == scope.tenant, s.user_id == scope.user)
    if scope.project is not None:
        query = query.where(s.project == scope.project)
    return connection.scalars(query.order_by(s.position)).all()


def _places(connection: sa.Connection, scope: Scope) -> Sequence[Scope]:
    """Give the scopes in which a key is blocked: all that the user has data or sources in, if no project is named."""
    if scope.project is not None:
        return [scope]
    f, s = facts.c, accepted_sources.c
    query = sa.union(
        sa.select(f.project).where(f.tenant == scope.tenant, f.user_id == scope.user),
        sa.select(s.project).where(s.tenant == scope.tenant, s.user_id == scope.user),
        sa.select(sa.literal(USER_WIDE)),
    )
    return [scope_of(scope.tenant, scope.user, project) for project in sorted(connection.scalars(query))]
