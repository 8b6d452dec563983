"""The adapter contract: its parts, its defaults, and the base class for one order at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import FrozenInstanceError
from datetime import UTC, datetime
from uuid import UUID

import pytest

from orchestrator.domain.contract import (
    MAX_PAGE,
    Erased,
    EraseOrder,
    Holding,
    PerOrder,
    Revocation,
    Seen,
    SourceAdapter,
    Target,
)
from orchestrator.domain.scope import Scope
from orchestrator.domain.selector import Selector, SelectorKind


def order(number: int, *targets: Target) -> EraseOrder:
    return EraseOrder(
        job=UUID(int=1),
        unit=UUID(int=number),
        key=f"k-{number}",
        scope=Scope(tenant="t", user="u"),
        selector=Selector(kind=SelectorKind.SUBJECT),
        targets=targets,
        deadline=datetime(2026, 1, 1, tzinfo=UTC),
    )


class Counting(PerOrder):
    """Answers each order with the number of its targets."""

    def find_one(self, order: EraseOrder) -> Holding:
        return Holding(targets=order.targets)

    def erase_one(self, order: EraseOrder) -> Erased:
        return Erased(erased=len(order.targets))

    def verify_one(self, order: EraseOrder) -> Seen:
        return Seen(remaining=len(order.targets))


class Revoking:
    """Has the one method that makes an adapter a source."""

    def revoke(self, orders: Sequence[EraseOrder]) -> Sequence[Revocation]:
        return [Revocation() for _ in orders]


A, B = Target(kind="point", id="a"), Target(kind="point", id="b", version=2, derived_of="memory:m-1@2")


def test_one_answer_per_order_in_their_order() -> None:
    orders = [order(1, A, B), order(2), order(3, B)]
    adapter = Counting()
    assert [h.targets for h in adapter.find(orders)] == [(A, B), (), (B,)]
    assert [e.erased for e in adapter.erase(orders)] == [2, 0, 1]
    assert [s.remaining for s in adapter.verify(orders)] == [2, 0, 1]


def test_no_orders_get_no_answers() -> None:
    assert list(Counting().erase([])) == []


@pytest.mark.parametrize("verb", ["find", "erase", "verify"])
def test_a_verb_that_was_not_written_raises_instead_of_answering_empty(verb: str) -> None:
    with pytest.raises(NotImplementedError):
        getattr(PerOrder(), verb)([order(1, A)])


def test_only_what_can_revoke_counts_as_a_source() -> None:
    assert isinstance(Revoking(), SourceAdapter)
    assert not isinstance(Counting(), SourceAdapter)


def test_an_order_and_an_answer_begin_empty() -> None:
    bare = order(1)
    assert (bare.targets, bare.known, bare.held, bare.revision, bare.cursor) == ((), (), frozenset(), None, None)
    assert (bare.attempt, bare.round, bare.fence) == (1, 1, 1)
    assert Erased() == Erased(erased=0, already_absent=0, extra=0, windows={}, residuals=frozenset(), unsupported=False)
    assert Erased().windows is not Erased().windows, "no two answers share a mapping"
    assert Seen() == Seen(remaining=0, inconclusive=False)
    assert MAX_PAGE == 1000


def test_a_target_cannot_be_changed_and_counts_by_value() -> None:
    assert Target(kind="point", id="a") == A
    assert len({A, B, Target(kind="point", id="a")}) == 2
    with pytest.raises(FrozenInstanceError):
        A.id = "other"  # type: ignore[misc]  # what this shows
