"""Finding: what a subject's set of keys lists, followed by lineage; reads only."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import redis

from adapters.cache.entry import Entry, Lineage, read
from adapters.cache.keys import Keys, SubjectKeys
from orchestrator import MAX_PAGE, EraseOrder, Holding, InvalidRequest, SelectorKind, Target

KIND: Final = "cache_key"
"""What the targets of this store are."""


def find(client: redis.Redis, keys: Keys, orders: Sequence[EraseOrder], in_time: Callable[[], None]) -> list[Holding]:
    """List a page for each order; the entries of all orders are read together."""
    subjects = [keys.subject(order.scope) for order in orders]
    members = _members(client, subjects)
    searches = [
        _Search(order, subject, keys.scope(order.scope), members[subject])
        for order, subject in zip(orders, subjects, strict=True)
    ]
    while any(windows := [search.window() for search in searches]):
        entries = read(client, (key for window in windows for key in window), in_time)
        for search, window in zip(searches, windows, strict=True):
            search.take(window, entries)
    return [search.answer() for search in searches]


def _members(client: redis.Redis, subjects: Sequence[SubjectKeys]) -> dict[SubjectKeys, list[str]]:
    """Read every subject's set once; what is not an entry key of that very subject is left out."""
    different = list(dict.fromkeys(subjects))
    with client.pipeline(transaction=False) as pipeline:
        for subject in different:
            pipeline.smembers(subject.members)
        answers = pipeline.execute()
    return {
        subject: sorted(key for m in found if (key := m.decode(errors="replace")).startswith(subject.entries))
        for subject, found in zip(different, answers, strict=True)
    }


class _Search:
    """The search of one order through the sorted keys of its subject."""

    def __init__(self, order: EraseOrder, subject: SubjectKeys, scope: str, members: Sequence[str]) -> None:
        if order.cursor is not None and not order.cursor.startswith(subject.entries):
            message = "the cursor is not one of this store's"
            raise InvalidRequest(message, field="cursor")
        self._whole = order.selector.kind is SelectorKind.SUBJECT
        # The first page tells how many entries name no origin, so it looks at all of them.
        self._counts = order.cursor is None and not self._whole
        self._lineage = Lineage(order.known)
        self._scope = None if order.scope.project is None else scope
        self._rest = members[bisect_right(members, order.cursor) :] if order.cursor is not None else members
        self._found: list[Target] = []
        self._no_lineage = 0

    def window(self) -> Sequence[str]:
        """Give the keys to look at next, none when the page is full."""
        full = len(self._found) > MAX_PAGE and not self._counts
        return () if full else self._rest[:MAX_PAGE]

    def take(self, window: Sequence[str], entries: Mapping[str, Entry]) -> None:
        """Keep of a window what is to go; what has expired in the meantime is not in `entries`."""
        self._rest = self._rest[len(window) :]
        for key in window:
            entry = entries.get(key)
            if entry is None:
                continue
            here = self._scope is None or entry.scope in {None, self._scope}
            origin = entry.named_by(self._lineage)
            if origin is not None or (self._whole and here):
                derived_of = origin or next(iter(entry.made_from), None)
                if len(self._found) <= MAX_PAGE:
                    self._found.append(Target(kind=KIND, id=key, derived_of=derived_of))
            elif not entry.made_from and here:
                self._no_lineage += 1

    def answer(self) -> Holding:
        """Give the page; its last key is where the next one begins."""
        page = tuple(self._found[:MAX_PAGE])
        cursor = page[-1].id if len(self._found) > MAX_PAGE else None
        return Holding(targets=page, no_lineage=self._no_lineage, cursor=cursor)
