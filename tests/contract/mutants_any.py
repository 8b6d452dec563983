"""Mutants of any store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from orchestrator import Erased, EraseOrder, Holding, Seen, Selector, SelectorKind, SourceAdapter, Transient
from orchestrator.testing import StoreUnderTest
from tests.contract.mutation import Orders, override

LIMIT = 500
LONG = timedelta(seconds=5)


def _done(orders: Orders) -> list[Erased]:
    return [Erased(erased=len(order.targets)) for order in orders]


def partial_page(store: StoreUnderTest, limit: int = LIMIT) -> None:
    """Erase what fits into one call of the client, and answer for all of the page."""
    erase = store.adapter.erase

    def mutant(orders: Orders) -> Sequence[Erased]:
        answers = erase([replace(order, targets=order.targets[:limit]) for order in orders])
        return [replace(a, erased=a.erased + len(o.targets[limit:])) for o, a in zip(orders, answers, strict=True)]

    override(store.adapter, erase=mutant)


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

    override(store.adapter, erase=mutant, verify=look)


def zero_match_success(store: StoreUnderTest) -> None:
    """Report as erased whatever was asked for."""
    erase = store.adapter.erase

    def mutant(orders: Orders) -> Sequence[Erased]:
        erase(orders)
        return _done(orders)

    override(store.adapter, erase=mutant)


def same_path_verify(store: StoreUnderTest) -> None:
    """Look again the way that find goes."""
    find = store.adapter.find

    def mutant(orders: Orders) -> Sequence[Seen]:
        return [Seen(remaining=len(holding.targets)) for holding in find(orders)]

    override(store.adapter, verify=mutant)


def swallowed_error(store: StoreUnderTest) -> None:
    """Take a store that does not answer as one that has nothing left."""
    erase = store.adapter.erase

    def mutant(orders: Orders) -> Sequence[Erased]:
        try:
            return erase(orders)
        except Transient:
            return _done(orders)

    override(store.adapter, erase=mutant)


def past_its_deadline(store: StoreUnderTest) -> None:
    """Erase though the time is over: whoever had asked has left the call behind, and may have placed a hold."""
    erase = store.adapter.erase

    def mutant(orders: Orders) -> Sequence[Erased]:
        return erase([replace(order, deadline=max(order.deadline, store.now() + LONG)) for order in orders])

    override(store.adapter, erase=mutant)


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

    override(store.adapter, find=finding, verify=looking)


def counts_the_neighbour(store: StoreUnderTest) -> None:
    """Erase rightly, and count what lies beside it as well: the sum still adds up."""
    erase = store.adapter.erase

    def mutant(orders: Orders) -> Sequence[Erased]:
        answers = erase(orders)
        beside = len(store.raw())
        return [replace(a, erased=a.erased + beside, extra=beside) if a.erased else a for a in answers]

    override(store.adapter, erase=mutant)


def sees_the_neighbour(store: StoreUnderTest) -> None:
    """Report what lies beside it as left over."""
    verify = store.adapter.verify

    def mutant(orders: Orders) -> Sequence[Seen]:
        return [replace(seen, remaining=seen.remaining + len(store.raw())) for seen in verify(orders)]

    override(store.adapter, verify=mutant)


def takes_expiry_for_the_person(store: StoreUnderTest) -> None:
    """Take all of a scope where something of it has expired."""

    def whole(orders: Orders) -> list[EraseOrder]:
        subject = Selector(kind=SelectorKind.SUBJECT)
        return [replace(o, selector=subject) if o.selector.kind is SelectorKind.EXPIRED else o for o in orders]

    find = store.adapter.find
    methods: dict[str, Callable[[Orders], object]] = {"find": lambda orders: find(whole(orders))}
    if isinstance(store.adapter, SourceAdapter):
        revoke = store.adapter.revoke
        methods["revoke"] = lambda orders: revoke(whole(orders))
    override(store.adapter, **methods)


def tells_text(store: StoreUnderTest) -> None:
    """Say in an error whose data could not be erased."""
    erase = store.adapter.erase

    def mutant(orders: Orders) -> Sequence[Erased]:
        try:
            return erase(orders)
        except Transient as error:
            raise Transient(f"could not erase {orders[0].scope.user}") from error

    override(store.adapter, erase=mutant)


def logs_text(store: StoreUnderTest) -> None:
    """Say in a log line whose data is erased."""
    adapter: Any = store.adapter
    erase = adapter.erase

    def mutant(orders: Orders) -> Sequence[Erased]:
        for order in orders:
            adapter._context.log.info("erase.begun", user=order.scope.user)
        answers: Sequence[Erased] = erase(orders)
        return answers

    override(store.adapter, erase=mutant)


def answers_with_text(store: StoreUnderTest) -> None:
    """Say in a target whose data it is."""
    find = store.adapter.find

    def mutant(orders: Orders) -> Sequence[Holding]:
        return [
            replace(a, targets=tuple(replace(t, derived_of=f"user:{o.scope.user}@0") for t in a.targets))
            for o, a in zip(orders, find(orders), strict=True)
        ]

    override(store.adapter, find=mutant)


def takes_left_over_for_absent(store: StoreUnderTest) -> None:
    """Count whatever was not erased as absent, also what is there and belongs to another user."""
    erase = store.adapter.erase

    def mutant(orders: Orders) -> Sequence[Erased]:
        answers = zip(orders, erase(orders), strict=True)
        return [replace(answer, already_absent=len(order.targets) - answer.erased) for order, answer in answers]

    override(store.adapter, erase=mutant)


def late_writers_unseen(store: StoreUnderTest) -> None:
    """Look for what was found, and for nothing that came after it."""
    verify = store.adapter.verify
    nothing = Selector(kind=SelectorKind.EXPIRED)

    def mutant(orders: Orders) -> Sequence[Seen]:
        return verify([replace(order, known=(), selector=nothing) for order in orders])

    override(store.adapter, verify=mutant)
