"""Finding: drafts that were made from what is known, and all of a scope for a subject; reads only.

What a person has told since a job revoked is not that job's: a draft of a job that was
submitted when a newer source had been accepted is no part of what was to be forgotten.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache
from typing import Any, Final

import sqlalchemy as sa

from adapters.drafts import lineage
from adapters.drafts.schema import is_here
from adapters.drafts.step import INPUT, KINDS, kind_of
from adapters.drafts.tables import draft_used, drafts
from adapters.memory.batch import as_table, columns, run
from adapters.memory.due import revocations
from adapters.memory.facts import place_of
from adapters.memory.selection import EVER
from orchestrator import MAX_PAGE, EraseOrder, Holding, SelectorKind, Target

# With the tenant in each row, SQLite begins with what is given and not with all drafts of the tenant.
_KNOWN: Final = columns(tenant=str, kind=str, id=str, version=int)


def find(connection: sa.Connection, orders: Sequence[EraseOrder]) -> list[Holding]:
    """List a page of what each order names, by handle."""
    if not is_here(connection):
        return [Holding() for _ in orders]
    made = revocations(connection, {str(order.job) for order in orders})
    answers = []
    for order in orders:
        revoked = made.get(str(order.job))
        answers.append(_page(connection, order, EVER if revoked is None else revoked.cut_off))
    return answers


def _page(connection: sa.Connection, order: EraseOrder, cut_off: int) -> Holding:
    whole, scope = order.selector.kind is SelectorKind.SUBJECT, order.scope
    here = {f"of_{name}": value for name, value in place_of(scope).items()}
    place: dict[str, str | int | None] = {**here, "after": order.cursor or "", "until": cut_off}
    rows: Sequence[Any] = []
    if whole or order.known:
        known = [(scope.tenant, target.kind, target.id, target.version) for target in order.known]
        statement = _named(connection.dialect.name, whole, scope.project is not None)
        rows = run(connection, statement, _KNOWN, known, **place).all()
    page = rows[:MAX_PAGE]
    used = lineage.read(connection, scope.tenant, (row.handle for row in page))
    targets = tuple(_target(row.handle, row.step, used.get(row.handle, ()), order.known) for row in page)
    # Counted once, on the first page; the subject's go with all the rest.
    silent = 0
    if not whole and order.cursor is None:
        silent = connection.scalar(_silent(scope.project is not None), here) or 0
    return Holding(targets=targets, no_lineage=silent, cursor=page[-1].handle if len(rows) > len(page) else None)


def _target(handle: str, step: str, used: Sequence[Target], known: Collection[Target]) -> Target:
    """Name a draft and one record that it was made from: a known one first, and no other draft if there is a record."""
    named = {(target.kind, target.id) for target in known}
    origin = min(
        used,
        key=lambda t: (t.kind in KINDS, (t.kind, t.id) not in named, t.kind, t.id, t.version),
        default=None,
    )
    derived_of = None if origin is None else f"{origin.kind}:{origin.id}@{origin.version}"
    return Target(kind=kind_of(step), id=handle, derived_of=derived_of)


@cache
def _named(dialect: str, whole: bool, in_project: bool) -> sa.Select[Any]:  # noqa: FBT001 - its key
    given, d, u = as_table(dialect, _KNOWN), drafts.c, draft_used.c
    k, tenant = given.c, sa.bindparam("of_tenant", type_=sa.Text())
    # A version of 0 stands for every version.
    version = (u.version == k.version) | (u.version == 0) | (k.version == 0)
    origin = (u.tenant == k.tenant) & (u.kind == k.kind) & (u.id == k.id) & version
    named: sa.ColumnElement[bool] = d.handle.in_(sa.select(u.handle).select_from(given.join(draft_used, origin)))
    if whole:
        named |= _of_scope(in_project) & (d.position <= sa.bindparam("until", type_=sa.BigInteger()))
    further = d.handle > sa.bindparam("after", type_=sa.Text())
    ordered = sa.select(d.handle, d.step).where(d.tenant == tenant, named, further).order_by(d.handle)
    return ordered.limit(MAX_PAGE + 1)


@cache
def _silent(in_project: bool) -> sa.Select[Any]:  # noqa: FBT001 - its key
    d, u = drafts.c, draft_used.c
    # An input that holds no record is made from none.
    told = sa.exists().where(u.tenant == d.tenant, u.handle == d.handle).correlate(drafts)
    here = (d.tenant == sa.bindparam("of_tenant", type_=sa.Text())) & _of_scope(in_project)
    return sa.select(sa.func.count()).select_from(drafts).where(here, d.step != INPUT, ~told)


def _of_scope(in_project: bool) -> sa.ColumnElement[bool]:  # noqa: FBT001 - as above
    d = drafts.c
    of_user = d.user_id == sa.bindparam("of_user_id", type_=sa.Text())
    return of_user & (d.project == sa.bindparam("of_project", type_=sa.Text())) if in_project else of_user
