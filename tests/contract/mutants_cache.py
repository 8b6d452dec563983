"""Mutants of the cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from orchestrator import Erased, Seen
from tests.contract.mutation import Orders, override
from tests.contract.stores import CacheUnderTest


def cache_soft_delete(store: CacheUnderTest) -> None:
    """Mark the entries and hide the mark from every look."""
    verify, marked = store.adapter.verify, set[str]()

    def mutant(orders: Orders) -> Sequence[Erased]:
        answers = []
        for order in orders:
            there = [t.id for t in order.targets if t.id not in marked and store.eyes.hset(t.id, "deleted", "1")]
            for key in there:
                store.eyes.srem(key.rpartition("a:")[0] + "keys", key)
            marked.update(there)
            answers.append(Erased(erased=len(there), already_absent=len(order.targets) - len(there)))
        return answers

    def look(orders: Orders) -> Sequence[Seen]:
        return [Seen(remaining=max(0, seen.remaining - len(marked))) for seen in verify(orders)]

    override(store.adapter, erase=mutant, verify=look)


def cache_wipe_everyone(store: CacheUnderTest) -> None:
    """Empty the database with the targets."""
    erase = store.adapter.erase

    def mutant(orders: Orders) -> Sequence[Erased]:
        answers = erase(orders)
        if any(answer.erased for answer in answers):
            store.eyes.flushdb()
        return answers

    override(store.adapter, erase=mutant)


def cache_prefix_delete(store: CacheUnderTest) -> None:
    """Erase by a pattern: everything of the user, whatever was asked for."""
    erase = store.adapter.erase

    def mutant(orders: Orders) -> Sequence[Erased]:
        answers = erase(orders)
        for base in {target.id.rpartition(":")[0] for order in orders for target in order.targets}:
            for key in store.eyes.scan_iter(match=f"{base}:*"):
                store.eyes.unlink(key)
        return answers

    override(store.adapter, erase=mutant)


def cache_derived_copy(store: CacheUnderTest) -> None:
    """Keep a copy under a key of another prefix."""
    erase = store.adapter.erase

    def mutant(orders: Orders) -> Sequence[Erased]:
        for target in (target for order in orders for target in order.targets):
            if entry := store.eyes.hgetall(target.id):
                store.eyes.hset(f"trash:{target.id}", mapping=entry)
        return erase(orders)

    override(store.adapter, erase=mutant)


def cache_only(store: CacheUnderTest) -> None:
    """Take the entries out of the list of what there is, and leave them."""

    def mutant(orders: Orders) -> Sequence[Erased]:
        answers = []
        for order in orders:
            out = sum(store.eyes.srem(t.id.rpartition("a:")[0] + "keys", t.id) for t in order.targets)
            answers.append(Erased(erased=out, already_absent=len(order.targets) - out))
        return answers

    override(store.adapter, erase=mutant)


def cache_no_fence(store: CacheUnderTest) -> None:
    """Erase without raising the fence, and look only at what was found: a late fill comes back unseen."""
    erase, verify = store.adapter.erase, store.adapter.verify

    def mutant(orders: Orders) -> Sequence[Erased]:
        return erase([replace(order, revision=None) for order in orders])

    def look(orders: Orders) -> Sequence[Seen]:
        return verify([replace(order, known=()) for order in orders])

    override(store.adapter, erase=mutant, verify=look)
