"""Finding: the copies that hold a record which an order names; reads only.

Principles: a copy is looked into, whatever its name or date. What cannot be looked at may hold
it, and is named as well.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import Final
from uuid import UUID

from adapters.backup.errors import Unreadable
from adapters.backup.folder import Folder
from adapters.backup.looking import looking
from adapters.backup.manifest import Manifest
from adapters.backup.named import named
from orchestrator import MAX_PAGE, EraseOrder, Holding, Target

KIND: Final = "backup_copy"
"""What the targets of this store are."""


def find(
    folder: Folder,
    known: Manifest,
    orders: Sequence[EraseOrder],
    cut_offs: Mapping[UUID, int],
    in_time: Callable[[], None],
) -> list[Holding]:
    """List a page for each order, by handle; every copy is opened once for all of them.

    `cut_offs` are the last positions that the jobs reach, as the source has them.
    """
    files = {copy.handle: copy.file for copy in known.copies} | dict(folder.unlisted(known))
    handles = sorted(files)
    first = min((_begin(handles, order) for order in orders), default=0)
    pages: list[list[Target]] = [[] for _ in orders]
    for place in range(first, len(handles)):
        handle = handles[place]
        asked = [n for n, o in enumerate(orders) if _begin(handles, o) <= place and len(pages[n]) <= MAX_PAGE]
        in_time()
        for number, witness in _seen(folder, files[handle], [(n, orders[n]) for n in asked], cut_offs):
            pages[number].append(Target(kind=KIND, id=handle, derived_of=witness))
    return [_page(page) for page in pages]


def _begin(handles: Sequence[str], order: EraseOrder) -> int:
    return 0 if order.cursor is None else bisect_right(handles, order.cursor)


def _page(found: Sequence[Target]) -> Holding:
    page = tuple(found[:MAX_PAGE])
    return Holding(targets=page, cursor=page[-1].id if len(found) > MAX_PAGE else None)


def _seen(
    folder: Folder, name: str, asked: Sequence[tuple[int, EraseOrder]], cut_offs: Mapping[UUID, int]
) -> list[tuple[int, str | None]]:
    """Tell which orders name something in a file, each with a record that it names there."""
    if folder.is_gone(name):
        return []
    try:
        with looking(folder.path_of(name)) as copy:
            records = [(n, named(copy, order, order.known, cut_offs.get(order.job))) for n, order in asked]
    except Unreadable:
        return [(number, None) for number, _ in asked]
    return [(number, some.witness) for number, some in records if some]
