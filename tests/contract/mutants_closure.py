"""Mutants that follow what was made from what too short a way, or go by what is said instead of by where it is from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from orchestrator import Erased, Holding, Seen, Selector, SelectorKind
from orchestrator.testing import StoreUnderTest
from tests.contract.mutation import Orders, opened, override
from tests.contract.stores import CacheUnderTest
from tests.contract.vectors import VectorUnderTest


def follows_facts_alone(store: StoreUnderTest) -> None:
    """Find what was made from facts, and nothing that was made from copies."""
    find = store.adapter.find

    def mutant(orders: Orders) -> Sequence[Holding]:
        return find([replace(o, known=tuple(t for t in o.known if t.kind == "fact")) for o in orders])

    override(store.adapter, find=mutant)


def takes_every_version(store: StoreUnderTest) -> None:
    """Find what was made from a record, in whatever version that was."""
    find = store.adapter.find

    def mutant(orders: Orders) -> Sequence[Holding]:
        return find([replace(o, known=tuple(replace(t, version=0) for t in o.known)) for o in orders])

    override(store.adapter, find=mutant)


def knows_no_subject(store: StoreUnderTest) -> None:
    """Find what was made from what is known, and never all of a subject."""
    find = store.adapter.find

    def mutant(orders: Orders) -> Sequence[Holding]:
        return find([replace(o, selector=Selector(kind=SelectorKind.KEY, value="any")) for o in orders])

    override(store.adapter, find=mutant)


def takes_every_project(store: StoreUnderTest) -> None:
    """Find all of a user, whatever project was asked for."""
    find = store.adapter.find

    def mutant(orders: Orders) -> Sequence[Holding]:
        return find([replace(o, scope=replace(o.scope, project=None)) for o in orders])

    override(store.adapter, find=mutant)


def looks_from_facts_alone(store: StoreUnderTest) -> None:
    """See what was made from facts, and nothing that somebody made from a copy meanwhile."""
    verify = store.adapter.verify

    def mutant(orders: Orders) -> Sequence[Seen]:
        # Under another kind a target is still looked for by its id, and nothing was made from it.
        return verify([replace(o, targets=tuple(replace(t, kind="nothing") for t in o.targets)) for o in orders])

    override(store.adapter, verify=mutant)


def cache_takes_what_says_the_same(store: CacheUnderTest) -> None:
    """Erase every answer of the same words with the targets."""
    erase = store.adapter.erase

    def mutant(orders: Orders) -> Sequence[Erased]:
        said = {store.eyes.hget(target.id, "answer") for order in orders for target in order.targets} - {None}
        answers = erase(orders)
        for key in list(store.eyes.scan_iter(match="*a:*")):
            if store.eyes.hget(key, "answer") in said:
                store.eyes.unlink(key)
        return answers

    override(store.adapter, erase=mutant)


def vector_takes_what_says_the_same(store: VectorUnderTest) -> None:
    """Erase every point of the same vector with the targets."""
    erase = store.adapter.erase

    def mutant(orders: Orders) -> Sequence[Erased]:
        ids = [target.id for order in orders for target in order.targets]
        with opened(store.file) as connection:
            read = "SELECT vector FROM vector_points WHERE id = ?"
            said = [vector for id_ in ids for vector in connection.execute(read, (id_,)).fetchall()]
        answers = erase(orders)
        with opened(store.file) as connection:
            connection.executemany("DELETE FROM vector_points WHERE vector = ?", said)
        return answers

    override(store.adapter, erase=mutant)
