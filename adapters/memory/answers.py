"""What revocations came to, page by page: the same for every repeat, until an item that was left is revoked as well.

A cursor says how far the targets are told and how far the tombstones. It names the revision
as well: when that has risen meanwhile there are new tombstones, and all of them are told again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from adapters.memory.batch import Found, columns, look_up
from adapters.memory.due import left_by, revocations
from adapters.memory.tables import revocation_targets
from adapters.memory.tombstones import MAX_TOMBSTONES, Place, first_of_jobs, next_of_job
from orchestrator import MAX_PAGE, EraseOrder, InvalidRequest, Revocation, SelectorKind, Target, Tombstone

_PAGE: Final = columns(number=int, job=str, after=int)
_CURSOR: Final = re.compile(
    r"(?P<targets>[0-9]+)(@(?P<revision>[0-9]+)(:(?P<kind>\w+):(?P<key>.*):(?P<mac>\w+))?)?", re.ASCII
)


@dataclass(frozen=True, kw_only=True)
class Reached:
    """How far an order has been answered; `marks` is None where all tombstones are told."""

    targets: int = 0
    revision: int | None = None
    marks: Place | None = None


def reached(order: EraseOrder) -> Reached:
    """Read an order's cursor; raises `InvalidRequest` for one that is not of this store."""
    if order.cursor is None:
        return Reached()
    if (told := _CURSOR.fullmatch(order.cursor)) is None:
        message = "the cursor is not one of this store's"
        raise InvalidRequest(message, field="cursor")
    marks = (told["kind"], told["key"], told["mac"]) if told["kind"] else None
    return Reached(targets=int(told["targets"]), revision=int(told["revision"] or 0), marks=marks)


def answers(connection: sa.Connection, orders: Sequence[EraseOrder], places: Sequence[Reached]) -> list[Revocation]:
    """Give the page of each order that comes after its place."""
    jobs = [str(order.job) for order in orders]
    made, left = revocations(connection, set(jobs)), left_by(connection, set(jobs))
    pages: list[list[Target]] = [[] for _ in orders]
    asked = [(number, job, place.targets) for number, (job, place) in enumerate(zip(jobs, places, strict=True))]
    for number, kind, handle, version in look_up(connection, _PAGE, asked, _page_of_targets):
        pages[number].append(Target(kind=kind, id=handle, version=version))
    marks = _marks(connection, jobs, places, made)
    return [
        _page(order, made[job], left[job], targets, told, place)
        for order, job, targets, told, place in zip(orders, jobs, pages, marks, places, strict=True)
    ]


def _marks(
    connection: sa.Connection, jobs: Sequence[str], places: Sequence[Reached], made: Mapping[str, Found]
) -> list[Sequence[Tombstone]]:
    """Give the tombstones that come after each place, and one that tells whether there are more."""
    begun = [place.revision != made[job].revision for job, place in zip(jobs, places, strict=True)]
    first = first_of_jobs(connection, {job for job, now in zip(jobs, begun, strict=True) if now})
    found: list[Sequence[Tombstone]] = []
    for job, place, now in zip(jobs, places, begun, strict=True):
        if now:
            found.append(first.get(job, ()))
        else:
            found.append(() if place.marks is None else next_of_job(connection, job, place.marks))
    return found


def _page(
    order: EraseOrder,
    made: Found,
    left: frozenset[str],
    targets: Sequence[Target],
    marks: Sequence[Tombstone],
    after: Reached,
) -> Revocation:
    last = after.targets + len(targets)
    told = tuple(marks[:MAX_TOMBSTONES])
    cursor = f"{last}@{made.revision}" if last < made.targets or len(marks) > len(told) else None
    if cursor is not None and len(marks) > len(told):
        cursor += f":{told[-1].kind.value}:{told[-1].key_id}:{told[-1].mac}"
    # Nothing was raised for what has expired: what others have read since stays right.
    revision = None if order.selector.kind is SelectorKind.EXPIRED else made.revision
    return Revocation(targets=tuple(targets), left=left, tombstones=told, revision=revision, cursor=cursor)


def _page_of_targets(given: sa.FromClause) -> sa.Select[Any]:
    t, g = revocation_targets.c, given.c
    page = (t.job == g.job) & (t.ordinal > g.after) & (t.ordinal <= g.after + MAX_PAGE)
    columns = (g.number, t.kind, t.handle, t.version)
    return sa.select(*columns).select_from(given.join(revocation_targets, page)).order_by(g.number, t.ordinal)
