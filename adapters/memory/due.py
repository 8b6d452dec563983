"""What orders have to revoke: at first all that a selector names, later the items that a hold kept until now."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

import sqlalchemy as sa

from adapters.memory.batch import Found, Row, change, columns, look_up
from adapters.memory.selection import Query, accepted_at, look_up_named, named_by
from adapters.memory.tables import facts, revocation_left, source_revocations, tenant_positions
from orchestrator import EraseOrder, Scope, SelectorKind

ID: Final = columns(fact_id=str)
_JOB: Final = columns(job=str)
_TENANT: Final = columns(tenant=str)
_FREED: Final = columns(job=str, fact_id=str)


@dataclass(frozen=True, kw_only=True)
class Due:
    """What one job has to revoke.

    `before` is what it revoked already, None where it is here for the first time; `freed` are
    the items that it left then and may take now. What was accepted after `cut_off` stays.
    What has expired is told by `at_us`, the time of the revoke. `chained` are the targets that
    it has named among the chains by now, `keyed` those among events and candidates, and `changed`
    the scopes that have read any of them until then.
    """

    order: EraseOrder
    cut_off: int
    at_us: int
    before: Found | None = None
    freed: frozenset[str] = frozenset()
    chained: int = 0
    keyed: int = 0
    changed: frozenset[Scope] = frozenset()

    @property
    def job(self) -> str:
        """The job's id, as the tables have it."""
        return str(self.order.job)

    @property
    def is_first(self) -> bool:
        """Whether the job has revoked nothing yet."""
        return self.before is None

    @property
    def raises(self) -> bool:
        """Whether the revision rises: what has expired was handed out no more, so nobody's reading changes."""
        return self.order.selector.kind is not SelectorKind.EXPIRED

    @property
    def asked(self) -> Sequence[Scope]:
        """Give the scopes that change with any record: where a source reaches to, nobody can say beforehand."""
        scope = self.order.scope
        of_source = self.order.selector.kind is SelectorKind.SOURCE
        return (scope, replace(scope, project=None)) if of_source else (scope,)

    @property
    def items(self) -> Sequence[Row]:
        """Give the rows for `taken`: items that are to be left, or those alone that are to be taken."""
        return [(item,) for item in sorted(self.order.held if self.is_first else self.freed)]

    @property
    def told_before(self) -> int:
        """How many targets the job has named when it was here before."""
        return 0 if self.before is None else int(self.before.targets)

    @property
    def told(self) -> int:
        """How many targets the job has named already."""
        return self.told_before + self.chained + self.keyed

    def outcome(self, revision: int, *, more: int, changed: bool, repointed: int = 0) -> Row:
        """Give the row of `source_revocations`: the revision rises where a record changed.

        `repointed` are the facts that stay by another source, besides those of before.
        """
        if self.before is not None and not changed:
            revision = self.before.revision
        stayed = 0 if self.before is None else int(self.before.repointed)
        return self.job, self.cut_off, revision, self.told + more, stayed + repointed

    def takes(self, item: str) -> bool:
        """Tell whether an item goes now."""
        return item not in self.order.held if self.is_first else item in self.freed


def of_orders(connection: sa.Connection, orders: Sequence[EraseOrder], at_us: int) -> list[Due]:
    """Give what there is to revoke, each job once: two pages of one job may stand in one batch."""
    first: dict[str, EraseOrder] = {}
    for order in orders:
        first.setdefault(str(order.job), order)
    made, left = revocations(connection, first), left_by(connection, first)
    latest = _positions(connection, {order.scope.tenant for job, order in first.items() if job not in made})
    due = []
    for job, order in first.items():
        if job not in made:
            due.append(Due(order=order, cut_off=latest.get(order.scope.tenant, 0), at_us=at_us))
        elif freed := left[job] - order.held:
            due.append(Due(order=order, cut_off=made[job].cut_off, at_us=at_us, before=made[job], freed=freed))
    return due


def revocations(connection: sa.Connection, jobs: Iterable[str]) -> Mapping[str, Found]:
    """Read what those jobs have revoked that were here before."""
    return {row.job: row for row in look_up(connection, _JOB, [(job,) for job in jobs], _revocations)}


def left_by(connection: sa.Connection, jobs: Iterable[str]) -> Mapping[str, frozenset[str]]:
    """Read which items each job has left because of a hold."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for job, item in look_up(connection, _JOB, [(job,) for job in jobs], _left):
        found[job].add(item)
    return defaultdict(frozenset, {job: frozenset(items) for job, items in found.items()})


def leave_no_longer(connection: sa.Connection, freed: Sequence[Row]) -> None:
    """Take items (job, item) off what was left: their job takes them now."""
    change(connection, _FREED, freed, _left_no_longer)


def records(connection: sa.Connection, due: Sequence[Due], limit: int) -> list[list[Found]] | None:
    """Read what is named and due of each job, what a hold covers included; None where that is more than `limit`."""
    found: dict[str, list[Found]] = {each.job: [] for each in due}
    room = limit
    for some, query in (
        ([each for each in due if each.is_first], _named_records(limit + 1)),
        ([each for each in due if not each.is_first], _left_records(limit + 1)),
    ):
        at_us = max((each.at_us for each in some), default=0)
        for row in look_up_named(connection, [each.order for each in some], query, at_us=at_us):
            if some[row.number].is_first or some[row.number].takes(row.fact_id):
                found[some[row.number].job].append(row)
            room -= 1
            if room < 0:
                return None
    return list(found.values())


def taken(due: Due, items: sa.FromClause) -> sa.ColumnElement[bool]:
    """Give the condition on `facts` for all that goes; `items` is the table of `Due.items`."""
    named, ids = named_by(due.order.scope, due.order.selector, due.at_us), sa.select(items.c.fact_id)
    if due.is_first:
        return named & facts.c.fact_id.not_in(ids)
    return named & facts.c.fact_id.in_(ids) & (accepted_at() <= due.cut_off)


def left_of(due: Due, items: sa.FromClause) -> sa.Select[Any]:
    """Give the statement that reads which held items the selector names."""
    named, ids = named_by(due.order.scope, due.order.selector, due.at_us), sa.select(items.c.fact_id)
    return sa.select(facts.c.fact_id).distinct().where(named, facts.c.fact_id.in_(ids))


@cache
def _named_records(limit: int) -> Query:
    def query(asked: sa.FromClause, condition: sa.ColumnElement[bool]) -> sa.Select[Any]:
        f, o = facts.c, asked.c
        named = sa.select(o.number, facts).select_from(asked.join(facts, condition))
        return named.order_by(o.number, f.fact_id, f.version).limit(limit)

    return query


@cache
def _left_records(limit: int) -> Query:
    def query(asked: sa.FromClause, condition: sa.ColumnElement[bool]) -> sa.Select[Any]:
        f, o, left, r = facts.c, asked.c, revocation_left.c, source_revocations.c
        of_job = (left.job == o.job) & (left.fact_id == f.fact_id)
        joined = asked.join(facts, condition).join(revocation_left, of_job).join(source_revocations, r.job == o.job)
        named = sa.select(o.number, facts).select_from(joined).where(accepted_at() <= r.cut_off)
        return named.order_by(o.number, f.fact_id, f.version).limit(limit)

    return query


def _positions(connection: sa.Connection, tenants: Collection[str]) -> dict[str, int]:
    rows = look_up(connection, _TENANT, [(tenant,) for tenant in tenants], _latest)
    return {row.tenant: row.position for row in rows}


def _latest(given: sa.FromClause) -> sa.Select[Any]:
    p = tenant_positions
    return sa.select(p).select_from(given.join(p, p.c.tenant == given.c.tenant))


def _revocations(given: sa.FromClause) -> sa.Select[Any]:
    r = source_revocations
    return sa.select(r).select_from(given.join(r, r.c.job == given.c.job))


def _left(given: sa.FromClause) -> sa.Select[Any]:
    left = revocation_left
    return sa.select(left).select_from(given.join(left, left.c.job == given.c.job))


def _left_no_longer(given: sa.FromClause) -> sa.Delete:
    left = revocation_left.c
    return revocation_left.delete().where(sa.tuple_(left.job, left.fact_id).in_(sa.select(given)))
