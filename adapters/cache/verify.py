"""Looking again: one walk over the whole cache for a batch, never by the sets that find goes by."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

import redis

from adapters.cache.entry import Entry, Lineage, read
from adapters.cache.keys import Keys, SubjectKeys
from orchestrator import EraseOrder, Seen, SelectorKind, Target

_SCAN_COUNT = 1000


def verify(client: redis.Redis, keys: Keys, orders: Sequence[EraseOrder], in_time: Callable[[], None]) -> list[Seen]:
    """Count for each order the entries that remain, each once."""
    if not orders:
        return []
    subjects = [keys.subject(order.scope) for order in orders]
    listed = _listed(client, keys, subjects, in_time)
    entries = read(client, (key for of_one in listed.values() for key in of_one), in_time)
    answers = []
    for order, subject in zip(orders, subjects, strict=True):
        look = _Look(order, keys.scope(order.scope))
        mine = {key: entries[key] for key in listed[subject.base] if key in entries}
        answers.append(Seen(remaining=sum(look.remains(key, entry) for key, entry in mine.items())))
    return answers


def _listed(
    client: redis.Redis, keys: Keys, subjects: Sequence[SubjectKeys], in_time: Callable[[], None]
) -> dict[str, set[str]]:
    """Walk over every key of the cache; give those of these subjects that are not our own books."""
    by_base = {subject.base: subject for subject in subjects}
    found: dict[str, set[str]] = defaultdict(set)
    cursor = 0
    while True:
        in_time()
        cursor, page = client.scan(cursor, match=keys.pattern(), count=_SCAN_COUNT)
        for raw in page:
            key = raw if isinstance(raw, str) else raw.decode(errors="surrogateescape")
            subject = by_base.get(keys.base_of(key))
            if subject is not None and not subject.keeps_books(key):
                found[subject.base].add(key)
        if cursor == 0:
            return found


class _Look:
    """What still counts as a copy for one order."""

    def __init__(self, order: EraseOrder, scope: str) -> None:
        self._whole = order.selector.kind is SelectorKind.SUBJECT
        self._expired = order.selector.kind is SelectorKind.EXPIRED
        self._scope = None if order.scope.project is None else scope
        self._revision = order.revision
        # What was made from a copy is a copy, though the find could not know of it.
        self._lineage = Lineage((*order.known, *order.targets))
        self._targets: dict[str, Target] = {target.id: target for target in order.targets}

    def remains(self, key: str, entry: Entry) -> bool:
        """Tell whether an entry that exists is one that should have gone."""
        if entry.named_by(self._lineage) is not None:
            return True
        if self._whole:
            here = self._scope is None or entry.scope in {None, self._scope}
            return (here or key in self._targets) and not self._filled_afterwards(entry, key)
        return key in self._targets and not self._filled_afterwards(entry, key)

    def _filled_afterwards(self, entry: Entry, key: str) -> bool:
        """Tell whether an application has filled a key afresh, from facts that stay, since the source revoked.

        A question that is asked often is answered again at once, under the same key: that is
        no copy of what went. Whatever does not prove its origin counts as a copy.
        """
        if not entry.made_from:
            return False
        if self._expired:
            # Nothing was raised, and nobody could read what had expired: the origins are proof enough.
            return self._targets[key].derived_of not in {None, *entry.made_from}
        if self._revision is None or entry.revision is None:
            return False
        if self._whole:
            # Without a project the revision is no measure for each single scope.
            return self._scope is not None and entry.revision > self._revision
        target = self._targets[key]
        gone = target.derived_of
        return entry.revision >= self._revision and gone is not None and gone not in entry.made_from
