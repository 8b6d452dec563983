"""Stores in memory that keep the adapter contract."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from orchestrator import (
    Clock,
    Erased,
    EraseOrder,
    Expired,
    Gate,
    Holding,
    Revocation,
    Role,
    Scope,
    Seen,
    Selector,
    SelectorKind,
    Target,
)


@dataclass
class FakeSource:
    """A source whose records are a set of (tenant, user, key, id)."""

    gate: Gate
    clock: Clock
    records: set[tuple[str, str, str, str]] = field(default_factory=set)
    ends: dict[str, datetime] = field(default_factory=dict)  # of records that expire, by their ids
    revoked: set[str] = field(default_factory=set)
    answers: dict[UUID, Revocation] = field(default_factory=dict)
    calls: Counter[str] = field(default_factory=Counter)
    before: Callable[[str, Sequence[EraseOrder]], None] = lambda _phase, _orders: None
    page: int = 1000
    name: str = "source"
    role: Role = Role.SOURCE
    max_batch: int = 50

    def reset(self) -> None:
        for kept in (self.records, self.ends, self.revoked, self.answers, self.calls):
            kept.clear()

    def _of(self, order: EraseOrder) -> list[Target]:
        return sorted(
            (
                Target(kind="fact", id=ident, version=1)
                for tenant, user, key, ident in self.records
                if (tenant, user) == (order.scope.tenant, order.scope.user) and self._names(order.selector, key, ident)
            ),
            key=lambda target: target.id,
        )

    def _names(self, selector: Selector, key: str, ident: str) -> bool:
        if selector.kind is SelectorKind.EXPIRED:
            return self._is_over(ident)
        return selector.kind is SelectorKind.SUBJECT or key == selector.value

    def _is_over(self, ident: str) -> bool:
        return ident in self.ends and self.ends[ident] <= self.clock.now()

    def expired(self) -> Sequence[Expired]:
        """Name the scopes of what has expired and is handed out no more, but was not revoked."""
        due = defaultdict[Scope, list[str]](list)
        for tenant, user, _, ident in sorted(self.records):
            if self._is_over(ident) and ident not in self.revoked:
                due[Scope(tenant=tenant, user=user)].append(ident)
        return [Expired(scope=scope, mark=" ".join(ids)) for scope, ids in due.items()]

    def revoke(self, orders: Sequence[EraseOrder]) -> Sequence[Revocation]:
        self.before("revoke", orders)
        self.calls.update(["revoke"] * len(orders))
        return [self._revoke(order) for order in orders]

    def _revoke(self, order: EraseOrder) -> Revocation:
        """Answer the same for every repeat of a job, but for items that were held and are free by now."""
        before = self.answers.get(order.job)
        named = self._of(order) if before is None else [t for t in self._of(order) if t.id in before.left]
        left = frozenset(target.id for target in named if target.id in order.held)
        taken = [target for target in named if target.id not in left]
        self.revoked.update(target.id for target in taken)
        found = self.answers[order.job] = Revocation(
            targets=(*(() if before is None else before.targets), *taken),
            left=left,
            tombstones=(self.gate.for_key(order.scope, order.selector.value or "", 7),),
            revision=None if order.selector.kind is SelectorKind.EXPIRED else 3,
        )
        start = int(order.cursor or 0)
        more = start + self.page < len(found.targets)
        return Revocation(
            targets=found.targets[start : start + self.page],
            left=found.left,
            tombstones=found.tombstones,
            revision=found.revision,
            cursor=str(start + self.page) if more else None,
        )

    def find(self, orders: Sequence[EraseOrder]) -> Sequence[Holding]:
        self.before("find", orders)
        self.calls.update(["find"] * len(orders))
        # What had expired was named by revoke for good.
        pages = [() if o.selector.kind is SelectorKind.EXPIRED else self._of(o)[: self.page] for o in orders]
        return [Holding(targets=tuple(page)) for page in pages]

    def erase(self, orders: Sequence[EraseOrder]) -> Sequence[Erased]:
        self.before("erase", orders)
        self.calls.update(["erase"] * len(orders))
        return [_erase(self.records, order) for order in orders]

    def verify(self, orders: Sequence[EraseOrder]) -> Sequence[Seen]:
        self.before("verify", orders)
        self.calls.update(["verify"] * len(orders))
        return [Seen(remaining=sum(r[3] in {x.id for x in o.targets} for r in self.records)) for o in orders]

    def close(self) -> None:
        return


@dataclass
class FakeCopies:
    """A derived store whose records are a set of (tenant, user, fact id, id)."""

    records: set[tuple[str, str, str, str]] = field(default_factory=set)
    calls: Counter[str] = field(default_factory=Counter)
    before: Callable[[str, Sequence[EraseOrder]], None] = lambda _phase, _orders: None
    name: str = "copies"
    role: Role = Role.DERIVED
    max_batch: int = 50

    def reset(self) -> None:
        for kept in (self.records, self.calls):
            kept.clear()

    def find(self, orders: Sequence[EraseOrder]) -> Sequence[Holding]:
        self.before("find", orders)
        self.calls.update(["find"] * len(orders))
        return [Holding(targets=tuple(self._made_from(order))) for order in orders]

    def erase(self, orders: Sequence[EraseOrder]) -> Sequence[Erased]:
        self.before("erase", orders)
        self.calls.update(["erase"] * len(orders))
        return [_erase(self.records, order) for order in orders]

    def verify(self, orders: Sequence[EraseOrder]) -> Sequence[Seen]:
        self.before("verify", orders)
        self.calls.update(["verify"] * len(orders))
        return [
            Seen(remaining=len({x.id for x in (*o.targets, *self._made_from(o))} & {r[3] for r in self.records}))
            for o in orders
        ]

    def close(self) -> None:
        return

    def _made_from(self, order: EraseOrder) -> list[Target]:
        known = {target.id for target in order.known}
        return [
            Target(kind="copy", id=ident, derived_of=f"fact:{fact}")
            for tenant, user, fact, ident in sorted(self.records)
            if fact in known and (tenant, user) == (order.scope.tenant, order.scope.user)
        ]


@dataclass
class FakeBackups:
    """A store of copies, each a set of fact ids; one with an end cannot be edited."""

    copies: dict[str, set[str]] = field(default_factory=dict)
    ends: dict[str, datetime] = field(default_factory=dict)
    calls: Counter[str] = field(default_factory=Counter)
    name: str = "backups"
    role: Role = Role.BACKUP
    max_batch: int = 50

    def find(self, orders: Sequence[EraseOrder]) -> Sequence[Holding]:
        return [Holding(targets=tuple(Target(kind="backup_copy", id=c) for c in self._with(o))) for o in orders]

    def erase(self, orders: Sequence[EraseOrder]) -> Sequence[Erased]:
        return [self._erase(order) for order in orders]

    def _erase(self, order: EraseOrder) -> Erased:
        there = [target.id for target in order.targets if target.id in self.copies]
        windows = {copy: self.ends[copy] for copy in there if copy in self.ends}
        for copy in set(there) - windows.keys():
            self.copies[copy] = {fact for fact in self.copies[copy] if not fact.startswith(f"{order.scope.user}-")}
        absent = len(order.targets) - len(there)
        return Erased(erased=len(there) - len(windows), already_absent=absent, windows=windows)

    def verify(self, orders: Sequence[EraseOrder]) -> Sequence[Seen]:
        return [Seen(remaining=len(set(self._with(order)) - order.scheduled)) for order in orders]

    def closed(self, handles: Sequence[str]) -> Sequence[Seen]:
        """Tell of each copy whether it is there."""
        self.calls.update(["closed"] * len(handles))
        return [Seen(remaining=int(handle in self.copies)) for handle in handles]

    def close(self) -> None:
        return

    def _with(self, order: EraseOrder) -> list[str]:
        return sorted(c for c, facts in self.copies.items() if any(f.startswith(f"{order.scope.user}-") for f in facts))


def _erase(records: set[tuple[str, str, str, str]], order: EraseOrder) -> Erased:
    wanted = {target.id for target in order.targets}
    gone = {r for r in records if r[3] in wanted and r[0] == order.scope.tenant}
    records -= gone
    return Erased(erased=len(gone), already_absent=len(wanted) - len(gone))
