"""Drives one erasure through one adapter as the engine would: pages, passes of find, batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from typing import TypeVar
from uuid import UUID, uuid4

from orchestrator.domain.contract import (
    MAX_PAGE,
    Erased,
    EraseOrder,
    Holding,
    Revocation,
    Seen,
    SourceAdapter,
    StorageAdapter,
    Target,
)
from orchestrator.domain.scope import Scope
from orchestrator.domain.selector import Selector
from orchestrator.testing.store import REVOKED

A = TypeVar("A")
MAX_PAGES = 1000
MAX_PASSES = 20


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What one erasure came to, all pages together."""

    targets: tuple[Target, ...]
    erased: int
    already_absent: int
    extra: int
    remaining: int
    inconclusive: bool


@dataclass(kw_only=True)
class Erasure:
    """One job over one adapter.

    `known` is what the sources revoked: a derived store is given it, a source finds it in
    its own `revoke`. `attempt` and `fence` may be raised to repeat a unit as a rescue does.
    """

    adapter: StorageAdapter
    scope: Scope
    selector: Selector
    known: tuple[Target, ...] = ()
    revision: int | None = REVOKED
    patience: timedelta = timedelta(seconds=20)
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    job: UUID = field(default_factory=uuid4)
    attempt: int = 1

    def run(self) -> Outcome:
        """Revoke (a source), find, erase and verify."""
        self.revoke()
        targets = self.find()
        answers = self.erase(targets)
        seen = self.verify(targets)
        return Outcome(
            targets=targets,
            erased=sum(answer.erased for answer in answers),
            already_absent=sum(answer.already_absent for answer in answers),
            extra=sum(answer.extra for answer in answers),
            remaining=sum(answer.remaining for answer in seen),
            inconclusive=any(answer.inconclusive for answer in seen),
        )

    def revoke(self) -> list[Revocation]:
        """Let a source revoke, page by page, and note what it knows; a derived store has nothing to do."""
        if not isinstance(self.adapter, SourceAdapter):
            return []
        pages = list(self._pages(self.adapter.revoke, self.order()))
        self.known = tuple(target for page in pages for target in page.targets)
        self.revision = pages[-1].revision
        return pages

    def find(self) -> tuple[Target, ...]:
        """Find in passes, each told what was found before, until one finds nothing new."""
        # As the ledger names them: what it was made from is no part of what a target is.
        found: dict[tuple[str, str, int], Target] = {}
        known = self.known
        for _ in range(MAX_PASSES):
            before = len(found)
            for page in _chunks(known) or [()]:
                for holding in self._pages(self.adapter.find, self.order(known=page)):
                    for target in holding.targets:
                        found.setdefault((target.kind, target.id, target.version), target)
            if len(found) == before:
                return tuple(found.values())
            # What the sources named is looked from once more: a store may have been written to meanwhile.
            known = tuple(dict.fromkeys((*self.known, *found.values())))
        raise AssertionError(f"no end of findings after {MAX_PASSES} passes")

    def erase(self, targets: Sequence[Target]) -> list[Erased]:
        """Erase pages of at most 1,000 targets, in batches of the adapter's size."""
        return self._batches(self.adapter.erase, [self.order(targets=page) for page in _chunks(targets) or [()]])

    def verify(self, targets: Sequence[Target]) -> list[Seen]:
        """Look again, by the targets and by what the sources revoked."""
        pages = list(zip_longest(_chunks(targets), _chunks(self.known), fillvalue=())) or [((), ())]
        return self._batches(self.adapter.verify, [self.order(targets=page, known=known) for page, known in pages])

    def order(self, **parts: object) -> EraseOrder:
        """Make one order of this job."""
        order = EraseOrder(
            job=self.job,
            unit=uuid4(),
            key=str(self.job),
            scope=self.scope,
            selector=self.selector,
            revision=self.revision,
            attempt=self.attempt,
            fence=self.attempt,
            deadline=self.now() + self.patience,
        )
        return replace(order, **parts)  # type: ignore[arg-type]  # named by the caller as the fields are

    def _pages(self, verb: Callable[[Sequence[EraseOrder]], Sequence[A]], order: EraseOrder) -> Iterator[A]:
        for _ in range(MAX_PAGES):
            (answer,) = verb([order])
            if isinstance(answer, Holding | Revocation) and len(answer.targets) > MAX_PAGE:
                raise AssertionError(f"a page holds more than {MAX_PAGE} targets")
            yield answer
            cursor: str | None = getattr(answer, "cursor", None)
            if cursor is None:
                return
            order = replace(order, cursor=cursor)
        raise AssertionError(f"no end of pages after {MAX_PAGES}")

    def _batches(self, verb: Callable[[Sequence[EraseOrder]], Sequence[A]], orders: Sequence[EraseOrder]) -> list[A]:
        size = self.adapter.max_batch
        return [answer for n in range(0, len(orders), size) for answer in verb(orders[n : n + size])]


def _chunks(targets: Iterable[Target]) -> list[tuple[Target, ...]]:
    every = tuple(targets)
    return [every[n : n + MAX_PAGE] for n in range(0, len(every), MAX_PAGE)]
