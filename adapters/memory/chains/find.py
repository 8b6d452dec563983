"""Finding chains: what selectors name among the memories, after the facts of a page; reads only."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import sqlalchemy as sa

from adapters.memory.chains.named import KIND, any_here, asked_by, whole_chains
from adapters.memory.due import revocations
from adapters.memory.selection import EVER, in_project
from orchestrator import MAX_PAGE, EraseOrder, SelectorKind, Target

_PLACE: Final = re.compile(rf"{KIND}:(?P<chain>[0-9]{{1,18}})@(?P<memory>[0-9]{{1,18}})", re.ASCII)


def is_place(cursor: str | None) -> bool:
    """Tell whether a cursor goes on among the chains."""
    return cursor is not None and _PLACE.fullmatch(cursor) is not None


def after(page: Sequence[Target]) -> str:
    """Give the cursor that goes on among the chains where a page ends."""
    last = page[-1]
    return f"{KIND}:{last.id}@{last.version}" if last.kind == KIND else f"{KIND}:0@0"


def add(connection: sa.Connection, pages: Sequence[tuple[EraseOrder, list[Target]]]) -> None:
    """Fill the pages of orders up with the chains that they name, and one target more that tells of a next page.

    After a revoke, a chain of which nothing was told before it is left out.
    """
    if not pages or not any_here(connection):
        return
    made = revocations(connection, {str(order.job) for order, _ in pages})
    for order, page in pages:
        before = made.get(str(order.job))
        asked = asked_by(order, EVER if before is None else before.cut_off)
        if asked is None or len(page) > MAX_PAGE:
            continue
        told = None if order.cursor is None else _PLACE.fullmatch(order.cursor)
        place = {"chain": int(told["chain"]) if told else 0, "memory": int(told["memory"]) if told else 0}
        statement = _page(order.selector.kind, in_project(order))
        rows = connection.execute(statement, {**asked, **place, "room": MAX_PAGE + 1 - len(page)})
        page.extend(Target(kind=KIND, id=str(chain), version=memory) for chain, memory in rows)


@cache
def _page(kind: SelectorKind, within_project: bool) -> sa.Select[Any]:  # noqa: FBT001 - its key
    whole = whole_chains(kind, within_project).c
    place = (sa.bindparam(name, type_=sa.BigInteger()) for name in ("chain", "memory"))
    further = sa.tuple_(whole.chain, whole.id) > sa.tuple_(*place)
    ordered = sa.select(whole.chain, whole.id).where(further).order_by(whole.chain, whole.id)
    return ordered.limit(sa.bindparam("room", type_=sa.BigInteger()))
