"""Adapters that go wrong in one way each. A suite that one of them passes has a hole."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any, TypeAlias

from orchestrator import Erased, EraseOrder, Holding, Seen, StorageAdapter, Target, Transient
from orchestrator.testing import StoreUnderTest
from tests.contract.stores import CacheUnderTest, MemoryUnderTest

Orders: TypeAlias = Sequence[EraseOrder]
Mutation: TypeAlias = Callable[[Any], None]
LIMIT = 500


def _set(adapter: StorageAdapter, **methods: Callable[[Orders], Sequence[object]]) -> None:
    vars(adapter).update(methods)


def _done(orders: Orders) -> list[Erased]:
    return [Erased(erased=len(order.targets)) for order in orders]


@contextmanager
def _rows(store: MemoryUnderTest) -> Iterator[sqlite3.Connection]:
    with closing(store.sql()) as connection:
        yield connection


# Of any store


def partial_page(store: StoreUnderTest) -> None:
    """Erase what fits into one call of the client, and answer for all of the page."""
    erase = store.adapter.erase

    def mutant(orders: Orders) -> Sequence[Erased]:
        answers = erase([replace(order, targets=order.targets[:LIMIT]) for order in orders])
        return [replace(a, erased=a.erased + len(o.targets[LIMIT:])) for o, a in zip(orders, answers, strict=True)]

    _set(store.adapter, erase=mutant)


def lazy(store: StoreUnderTest) -> None:
    """Answer first and delete later: before the next look."""
    erase, verify = store.adapter.erase, store.adapter.verify
    waiting: list[EraseOrder] = []

    def mutant(orders: Orders) -> Sequence[Erased]:
        told = {(o.scope.tenant, t) for o in waiting for t in o.targets}
        answers = []
        for order in orders:
            absent = sum((order.scope.tenant, target) in told for target in order.targets)
            answers.append(Erased(erased=len(order.targets) - absent, already_absent=absent))
            told.update((order.scope.tenant, target) for target in order.targets)
        waiting.extend(orders)
        return answers

    def look(orders: Orders) -> Sequence[Seen]:
        if waiting:
            now = list(waiting)
            waiting.clear()
            erase([replace(order, deadline=orders[0].deadline) for order in now])
        return verify(orders)

    _set(store.adapter, erase=mutant, verify=look)


def zero_match_success(store: StoreUnderTest) -> None:
    """Report as erased whatever was asked for."""
    erase = store.adapter.erase

    def mutant(orders: Orders) -> Sequence[Erased]:
        erase(orders)
        return _done(orders)

    _set(store.adapter, erase=mutant)


def same_path_verify(store: StoreUnderTest) -> None:
    """Look again the way that find goes."""
    find = store.adapter.find

    def mutant(orders: Orders) -> Sequence[Seen]:
        return [Seen(remaining=len(holding.targets)) for holding in find(orders)]

    _set(store.adapter, verify=mutant)


def swallowed_error(store: StoreUnderTest) -> None:
    """Take a store that does not answer as one that has nothing left."""
    erase = store.adapter.erase

    def mutant(orders: Orders) -> Sequence[Erased]:
        try:
            return erase(orders)
        except Transient:
            return _done(orders)

    _set(store.adapter, erase=mutant)


def swallowed_look(store: StoreUnderTest) -> None:
    """Take a store that cannot be looked at as clean, and as holding nothing."""
    find, verify = store.adapter.find, store.adapter.verify

    def finding(orders: Orders) -> Sequence[Holding]:
        try:
            return find(orders)
        except Transient:
            return [Holding() for _ in orders]

    def looking(orders: Orders) -> Sequence[Seen]:
        try:
            return verify(orders)
        except Transient:
            return [Seen() for _ in orders]

    _set(store.adapter, find=finding, verify=looking)


def counts_the_neighbour(store: StoreUnderTest) -> None:
    """Erase rightly, and count what lies beside it as well: the sum still adds up."""
    erase = store.adapter.erase

    def mutant(orders: Orders) -> Sequence[Erased]:
        answers = erase(orders)
        beside = len(store.raw())
        return [replace(a, erased=a.erased + beside, extra=beside) if a.erased else a for a in answers]

    _set(store.adapter, erase=mutant)


def sees_the_neighbour(store: StoreUnderTest) -> None:
    """Report what lies beside it as left over."""
    verify = store.adapter.verify

    def mutant(orders: Orders) -> Sequence[Seen]:
        return [replace(seen, remaining=seen.remaining + len(store.raw())) for seen in verify(orders)]

    _set(store.adapter, verify=mutant)


def tells_text(store: StoreUnderTest) -> None:
    """Say in an error whose data could not be erased."""
    erase = store.adapter.erase

    def mutant(orders: Orders) -> Sequence[Erased]:
        try:
            return erase(orders)
        except Transient as error:
            raise Transient(f"could not erase {orders[0].scope.user}") from error

    _set(store.adapter, erase=mutant)


# Of the memory store


def memory_soft_delete(store: MemoryUnderTest) -> None:
    """Keep the rows where no path of the adapter looks."""

    def mutant(orders: Orders) -> Sequence[Erased]:
        store.adapter.find([])  # the file's settings
        answers = []
        with _rows(store) as connection:
            for order in orders:
                hidden = sum(_hide(connection, order, target) for target in order.targets)
                answers.append(Erased(erased=hidden, already_absent=len(order.targets) - hidden))
        return answers

    _set(store.adapter, erase=mutant)


def _hide(connection: sqlite3.Connection, order: EraseOrder, target: Target) -> int:
    statement = """UPDATE facts SET active = 0, state = 'deleted', user_id = '~' || user_id, fact_id = '~' || fact_id
        WHERE tenant = ? AND fact_id = ? AND version = ?"""
    return connection.execute(statement, (order.scope.tenant, target.id, target.version)).rowcount


def memory_wipe_everyone(store: MemoryUnderTest) -> None:
    """Erase the table with the targets."""
    _after_erase(store, lambda connection, _: connection.execute("DELETE FROM facts"))


def memory_prefix_delete(store: MemoryUnderTest) -> None:
    """Erase by a pattern: everything of every user whose name begins the same."""
    _after_erase(
        store,
        lambda connection, order: connection.execute(
            "DELETE FROM facts WHERE tenant = ? AND user_id LIKE ? || '%'", (order.scope.tenant, order.scope.user)
        ),
    )


def memory_tenant_blind(store: MemoryUnderTest) -> None:
    """Erase by id alone, whoever's tenant it is."""
    erase = store.adapter.erase

    def mutant(orders: Orders) -> Sequence[Erased]:
        answers = []
        for order, answer in zip(orders, erase(orders), strict=True):
            with _rows(store) as connection:
                more = sum(
                    connection.execute("DELETE FROM facts WHERE fact_id = ?", (target.id,)).rowcount
                    for target in order.targets
                )
            answers.append(replace(answer, erased=answer.erased + more, already_absent=answer.already_absent - more))
        return answers

    _set(store.adapter, erase=mutant)


def memory_derived_copy(store: MemoryUnderTest) -> None:
    """Keep a copy in a table of another name."""
    erase = store.adapter.erase

    def mutant(orders: Orders) -> Sequence[Erased]:
        with _rows(store) as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS facts_archive AS SELECT * FROM facts WHERE 0")
            for order in orders:
                for target in order.targets:
                    connection.execute(
                        "INSERT INTO facts_archive SELECT * FROM facts WHERE tenant = ? AND fact_id = ?",
                        (order.scope.tenant, target.id),
                    )
        return erase(orders)

    _set(store.adapter, erase=mutant)


def _after_erase(store: MemoryUnderTest, more: Callable[[sqlite3.Connection, EraseOrder], object]) -> None:
    erase = store.adapter.erase

    def mutant(orders: Orders) -> Sequence[Erased]:
        answers = erase(orders)
        with _rows(store) as connection:
            for order, answer in zip(orders, answers, strict=True):
                if answer.erased:
                    more(connection, order)
        return answers

    _set(store.adapter, erase=mutant)


# Of the cache


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

    _set(store.adapter, erase=mutant, verify=look)


def cache_wipe_everyone(store: CacheUnderTest) -> None:
    """Empty the database with the targets."""
    erase = store.adapter.erase

    def mutant(orders: Orders) -> Sequence[Erased]:
        answers = erase(orders)
        if any(answer.erased for answer in answers):
            store.eyes.flushdb()
        return answers

    _set(store.adapter, erase=mutant)


def cache_prefix_delete(store: CacheUnderTest) -> None:
    """Erase by a pattern: everything of the user, whatever was asked for."""
    erase = store.adapter.erase

    def mutant(orders: Orders) -> Sequence[Erased]:
        answers = erase(orders)
        for base in {target.id.rpartition(":")[0] for order in orders for target in order.targets}:
            for key in store.eyes.scan_iter(match=f"{base}:*"):
                store.eyes.unlink(key)
        return answers

    _set(store.adapter, erase=mutant)


def cache_derived_copy(store: CacheUnderTest) -> None:
    """Keep a copy under a key of another prefix."""
    erase = store.adapter.erase

    def mutant(orders: Orders) -> Sequence[Erased]:
        for target in (target for order in orders for target in order.targets):
            if entry := store.eyes.hgetall(target.id):
                store.eyes.hset(f"trash:{target.id}", mapping=entry)
        return erase(orders)

    _set(store.adapter, erase=mutant)


def cache_only(store: CacheUnderTest) -> None:
    """Take the entries out of the list of what there is, and leave them."""

    def mutant(orders: Orders) -> Sequence[Erased]:
        answers = []
        for order in orders:
            out = sum(store.eyes.srem(t.id.rpartition("a:")[0] + "keys", t.id) for t in order.targets)
            answers.append(Erased(erased=out, already_absent=len(order.targets) - out))
        return answers

    _set(store.adapter, erase=mutant)


def cache_no_fence(store: CacheUnderTest) -> None:
    """Erase without raising the fence, and look only at what was found: a late fill comes back unseen."""
    erase, verify = store.adapter.erase, store.adapter.verify

    def mutant(orders: Orders) -> Sequence[Erased]:
        return erase([replace(order, revision=None) for order in orders])

    def look(orders: Orders) -> Sequence[Seen]:
        return verify([replace(order, known=()) for order in orders])

    _set(store.adapter, erase=mutant, verify=look)


def cache_takes_left_over_for_absent(store: CacheUnderTest) -> None:
    """Count whatever was not erased as absent, also what is there and belongs to another user."""
    erase = store.adapter.erase

    def mutant(orders: Orders) -> Sequence[Erased]:
        answers = zip(orders, erase(orders), strict=True)
        return [replace(answer, already_absent=len(order.targets) - answer.erased) for order, answer in answers]

    _set(store.adapter, erase=mutant)


EVERY: dict[str, Mutation] = {
    "partial page": partial_page,
    "lazy": lazy,
    "zero-match success": zero_match_success,
    "same-path verify": same_path_verify,
    "swallowed error": swallowed_error,
    "counts the neighbour": counts_the_neighbour,
}
MEMORY: dict[str, Mutation] = {
    **EVERY,
    "swallowed look": swallowed_look,
    "sees the neighbour": sees_the_neighbour,
    "tells text": tells_text,
    "soft delete": memory_soft_delete,
    "wipe-everyone": memory_wipe_everyone,
    "prefix delete": memory_prefix_delete,
    "tenant-blind": memory_tenant_blind,
    "copy under a derived key": memory_derived_copy,
}
CACHE: dict[str, Mutation] = {
    **EVERY,
    "soft delete": cache_soft_delete,
    "wipe-everyone": cache_wipe_everyone,
    "prefix delete": cache_prefix_delete,
    "copy under a derived key": cache_derived_copy,
    "cache-only": cache_only,
    "no fence": cache_no_fence,
    "left over as absent": cache_takes_left_over_for_absent,
}
