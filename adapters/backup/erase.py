"""Erasing: exactly the copies of the orders, each opened once for all of them.

Principles: what an order names is deleted with the tenant in the statement, child rows first,
and everything that protects stays: tombstones, revocations, positions. A copy counts as erased
when its file is in place, as absent when it was looked at and holds nothing of the order, as
scheduled when its window is open. Anything else is left over, and said to be.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, auto
from typing import Final, assert_never
from uuid import UUID

from adapters.backup import drafts, keyed
from adapters.backup.errors import NotAsListed, Unreadable
from adapters.backup.find import KIND
from adapters.backup.folder import Folder
from adapters.backup.looking import looking, tables_of
from adapters.backup.manifest import Copy, Manifest, Policy
from adapters.backup.named import FACT, MEMORY, Records, holds, named
from adapters.backup.rewrite import folded, rewrite
from adapters.backup.windows import Windows
from orchestrator import Erased, EraseOrder, Gate, Target

# CROSS JOIN and the plus keep SQLite from reading all of the tenant before what is given.
_FACTS: Final = """DELETE FROM facts WHERE +tenant = ?1 AND rowid IN (
    SELECT f.rowid FROM json_each(?2) AS g CROSS JOIN facts AS f WHERE f.tenant = ?1
    AND f.fact_id = json_extract(g.value, '$[0]') AND f.version = json_extract(g.value, '$[1]'))"""
_PRINTS: Final = """DELETE FROM record_prints WHERE tenant = ? AND kind = ? AND (handle, version) IN
    (SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?))"""
_TENANTS: Final = """DELETE FROM memory_tenants WHERE tenant = ? AND memory_id IN (SELECT value FROM json_each(?))
    RETURNING memory_id"""
_MEMORIES: Final = "DELETE FROM memories WHERE id IN (SELECT value FROM json_each(?))"


class _Found(Enum):
    """What became of one order in one copy."""

    ERASED = auto()
    ABSENT = auto()
    SCHEDULED = auto()
    LEFT = auto()  # it is there, and not ours to take away
    REFUSED = auto()  # it could not be looked at, or is not the file that the manifest names


def erase(
    folder: Folder,
    windows: Windows,
    known: Manifest,
    orders: Sequence[EraseOrder],
    revoked: Mapping[UUID, Sequence[Target]],
    cut_offs: Mapping[UUID, int],
    *,
    now: datetime,
    in_time: Callable[[], None],
    tell: Callable[[str], None],
    gate: Gate,
) -> list[Erased]:
    """Erase in all copies, and count for each order: of two that name one record, the first erased it.

    `revoked` are the records of each job, `cut_offs` the last positions that they reach. `tell` is
    called with the handle of a copy that was refused; where every order of the batch names such a
    copy, `NotAsListed` is raised at the end.
    `gate` makes the marks that erased events leave in a copy.
    """
    batch = _Batch(folder, known, orders, revoked, cut_offs, now, in_time, tell, gate)
    for handle in sorted({target.id for order in orders for target in order.targets if target.kind == KIND}):
        in_time()
        batch.erase(handle)
    if orders and batch.refused.issuperset(range(len(orders))):
        raise NotAsListed
    windows.schedule(((orders[n].job, copy) for n, copies in batch.scheduled.items() for copy in copies), now)
    return [batch.answer(n) for n in range(len(orders))]


@dataclass
class _Batch:
    folder: Folder
    known: Manifest
    orders: Sequence[EraseOrder]
    revoked: Mapping[UUID, Sequence[Target]]
    cut_offs: Mapping[UUID, int]
    now: datetime
    in_time: Callable[[], None]
    tell: Callable[[str], None]
    gate: Gate
    erased: Counter[int] = field(default_factory=Counter)
    left: Counter[int] = field(default_factory=Counter)
    scheduled: defaultdict[int, list[Copy]] = field(default_factory=lambda: defaultdict(list))
    refused: set[int] = field(default_factory=set)

    def erase(self, handle: str) -> None:
        """Erase what all orders name in one copy, and count it."""
        asked = {
            n: [target for target in order.targets if (target.kind, target.id) == (KIND, handle)]
            for n, order in enumerate(self.orders)
        }
        asked = {n: targets for n, targets in asked.items() if targets}
        copy = self.known.of(handle)
        for number, found in self._of_copy(handle, copy, asked).items():
            match found:
                case _Found.ERASED:
                    self.erased[number] += 1
                case _Found.ABSENT:
                    pass
                case _Found.SCHEDULED:
                    assert copy is not None  # noqa: S101 - only what the manifest names has a window
                    self.scheduled[number].append(copy)
                case _Found.LEFT | _Found.REFUSED:
                    self.left[number] += len(asked[number])
                    if found is _Found.REFUSED:
                        self.refused.add(number)
                case _:
                    assert_never(found)

    def answer(self, number: int) -> Erased:
        """Give what was counted for an order; what is neither of the others is absent."""
        windows = {copy.handle: copy.keep_until for copy in self.scheduled[number] if copy.keep_until is not None}
        others = self.erased[number] + self.left[number] + len(windows)
        absent = len(self.orders[number].targets) - others
        return Erased(erased=self.erased[number], already_absent=absent, windows=windows)

    def _of_copy(self, handle: str, copy: Copy | None, asked: Mapping[int, Sequence[Target]]) -> Mapping[int, _Found]:
        name = self.folder.unlisted(self.known).get(handle) if copy is None else copy.file
        if name is None or self.folder.is_gone(name):
            return dict.fromkeys(asked, _Found.ABSENT)
        open_window = copy is not None and copy.keep_until is not None and self.now < copy.keep_until
        try:
            with looking(self.folder.path_of(name)) as connection:
                there = {number: self._named(connection, number) for number in asked}
                found = {n: self._without(connection, n, targets) for n, targets in asked.items() if not there[n]}
            named_by = [number for number, records in there.items() if records]
            if open_window:
                return {**found, **dict.fromkeys(named_by, _Found.SCHEDULED)}
            if copy is None or copy.policy is Policy.WINDOW:
                return {**found, **dict.fromkeys(named_by, _Found.LEFT)}
            return {**found, **self._rewritten(copy, {number: asked[number] for number in named_by})}
        except (Unreadable, NotAsListed):
            if open_window:  # whatever it holds goes with its time
                return dict.fromkeys(asked, _Found.SCHEDULED)
            self.tell(handle)
            return dict.fromkeys(asked, _Found.REFUSED)

    def _rewritten(self, copy: Copy, asked: Mapping[int, Sequence[Target]]) -> Mapping[int, _Found]:
        found: dict[int, _Found] = {}
        if not asked:
            return found

        def take_out(new: sqlite3.Connection) -> None:
            for number, targets in asked.items():
                records = self._named(new, number)
                _delete(new, self.gate, self.orders[number].scope.tenant, records)
                if self._named(new, number):
                    raise Unreadable  # something in the file keeps it there
                found[number] = _Found.ERASED if records else self._without(new, number, targets)

        # Kept at once: the next copy is written into this manifest, though this one is refused by what follows.
        self.known, copy = folded(self.folder, self.known, copy)
        self.known = rewrite(self.folder, self.known, copy, take_out, self.in_time)
        return found

    def _named(self, connection: sqlite3.Connection, number: int) -> Records:
        order = self.orders[number]
        records = (*order.known, *self.revoked.get(order.job, ()))
        return named(connection, order, records, self.cut_offs.get(order.job))

    def _without(self, connection: sqlite3.Connection, number: int, targets: Collection[Target]) -> _Found:
        """Tell what a copy is that holds nothing which an order names: another owner's record is not absent."""
        tenant = self.orders[number].scope.tenant
        there = any(holds(connection, tenant, target.derived_of) for target in targets if target.derived_of)
        return _Found.LEFT if there else _Found.ABSENT


def _delete(new: sqlite3.Connection, gate: Gate, tenant: str, records: Records) -> None:
    facts = json.dumps(records.facts, ensure_ascii=False)
    chains = json.dumps([(str(chain), memory) for chain, memory in records.memories])
    if "record_prints" in tables_of(new):
        new.execute(_PRINTS, (tenant, FACT, facts))
        new.execute(_PRINTS, (tenant, MEMORY, chains))
        for kind, handles in ((keyed.EVENT, records.events), (keyed.CANDIDATE, records.candidates)):
            new.execute(_PRINTS, (tenant, kind, json.dumps(handles, ensure_ascii=False)))
    if records.facts:
        new.execute(_FACTS, (tenant, facts))
    if records.memories:
        memories = json.dumps([memory for _, memory in records.memories])
        gone = [memory for (memory,) in new.execute(_TENANTS, (tenant, memories)).fetchall()]
        new.execute(_MEMORIES, (json.dumps(gone),))
    if records.events:
        keyed.delete(new, gate, tenant, keyed.EVENT, records.events)
    if records.candidates:
        keyed.delete(new, gate, tenant, keyed.CANDIDATE, records.candidates)
    if records.drafts:
        drafts.delete(new, tenant, records.drafts)
