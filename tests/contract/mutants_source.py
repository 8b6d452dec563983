"""Mutants of any source, each of which does something else with what a hold covers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from orchestrator import Revocation
from tests.contract.mutation import Orders, override
from tests.contract.stores import MemoryUnderTest


def ignores_the_hold(store: MemoryUnderTest) -> None:
    """Revoke what is held as well, and say that it was left."""
    revoke = store.adapter.revoke

    def mutant(orders: Orders) -> Sequence[Revocation]:
        answers = revoke([replace(order, held=frozenset()) for order in orders])
        return [
            replace(a, left=o.held, targets=tuple(t for t in a.targets if t.id not in o.held))
            for o, a in zip(orders, answers, strict=True)
        ]

    override(store.adapter, revoke=mutant)


def keeps_everything_for_one_item(store: MemoryUnderTest) -> None:
    """Revoke nothing of an order while one of its items is held."""
    revoke = store.adapter.revoke

    def mutant(orders: Orders) -> Sequence[Revocation]:
        return [Revocation(left=o.held, revision=1) if o.held else revoke([o])[0] for o in orders]

    override(store.adapter, revoke=mutant)


def forgets_what_it_left(store: MemoryUnderTest) -> None:
    """Answer every repeat as the first time, with nothing left: the item is never revoked."""
    revoke = store.adapter.revoke
    first: dict[UUID, Revocation] = {}

    def mutant(orders: Orders) -> Sequence[Revocation]:
        for order in orders:
            if order.job not in first:
                (first[order.job],) = revoke([order])
        return [replace(first[o.job], left=first[o.job].left & o.held) for o in orders]

    override(store.adapter, revoke=mutant)
