"""Finding events and candidates: what selectors name, after the facts and chains of a page; reads only."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import sqlalchemy as sa

from adapters.memory.due import revocations
from adapters.memory.keyed.named import (
    CANDIDATE,
    EVENT,
    KINDS,
    TABLES,
    any_here,
    asked_by,
    named,
    version_of,
)
from adapters.memory.selection import EVER, in_project
from orchestrator import MAX_PAGE, EraseOrder, SelectorKind, Target

_PLACE: Final = re.compile(rf"(?P<kind>{EVENT}|{CANDIDATE}):(?P<handle>.*)", re.DOTALL)


def is_place(cursor: str | None) -> bool:
    """Tell whether a cursor goes on among the events and candidates."""
    return cursor is not None and _PLACE.fullmatch(cursor) is not None


def after(page: Sequence[Target]) -> str:
    """Give the cursor that goes on among the events and candidates where a page ends."""
    last = page[-1]
    return f"{last.kind}:{last.id}" if last.kind in KINDS else f"{EVENT}:"


def add(connection: sa.Connection, pages: Sequence[tuple[EraseOrder, list[Target]]]) -> None:
    """Fill the pages of orders up with what they name, and one target more that tells of a next page.

    After a revoke, what was accepted after it is left out.
    """
    if not pages or not any_here(connection):
        return
    made = revocations(connection, {str(order.job) for order, _ in pages})
    for order, page in pages:
        before = made.get(str(order.job))
        asked = asked_by(order, EVER if before is None else before.cut_off)
        if asked is None:
            continue
        kind, handle = _begins(order.cursor)
        for of_kind in TABLES if kind == EVENT else (CANDIDATE,):
            room = MAX_PAGE + 1 - len(page)
            if room <= 0:
                break
            place = {"after": handle if of_kind == kind else "", "room": room}
            rows = connection.execute(_page(of_kind, order.selector.kind, in_project(order)), {**asked, **place})
            page.extend(Target(kind=of_kind, id=row.handle, version=row.version) for row in rows)


def _begins(cursor: str | None) -> tuple[str, str]:
    told = None if cursor is None else _PLACE.fullmatch(cursor)
    return (EVENT, "") if told is None else (told["kind"], told["handle"])


@cache
def _page(kind: str, selector: SelectorKind, within_project: bool) -> sa.Select[Any]:  # noqa: FBT001 - its key
    handle = TABLES[kind].c.handle
    further = handle > sa.bindparam("after", type_=sa.Text())
    query = sa.select(handle, version_of(kind).label("version")).where(named(kind, selector, within_project), further)
    return query.order_by(handle).limit(sa.bindparam("room", type_=sa.BigInteger()))
