"""How a law is shown to be kept: a failure names the law and never what was stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import ClassVar

from orchestrator.domain.contract import MAX_PAGE, Erased, EraseOrder, Seen, SourceAdapter, Target
from orchestrator.domain.errors import InvalidRequest
from orchestrator.domain.scope import Scope
from orchestrator.domain.selector import Selector
from orchestrator.testing.erasure import Erasure, Outcome
from orchestrator.testing.store import Record, StoreUnderTest


class Laws:
    """What an author may set for the laws: `sizes` are the numbers of targets of law 5, `patience` the longest call."""

    sizes: ClassVar[tuple[int, ...]] = (MAX_PAGE + 1, 10 * MAX_PAGE + 1)
    patience: ClassVar[timedelta] = timedelta(seconds=5)


def erasure_of(
    store: StoreUnderTest,
    scope: Scope,
    selector: Selector,
    known: Sequence[Record],
    *,
    patience: timedelta = timedelta(seconds=20),
) -> Erasure:
    """Give one job over the adapter of a store."""
    # A source finds in its own revoke what a derived store is told.
    source = isinstance(store.adapter, SourceAdapter)
    facts = () if source else tuple(record.fact for record in known)
    return Erasure(adapter=store.adapter, scope=scope, selector=selector, known=facts, patience=patience, now=store.now)


def calls_of(store: StoreUnderTest, erasure: Erasure, targets: Sequence[Target]) -> Iterator[Callable[[], object]]:
    """Give each method of the adapter with an order made when it is called."""
    adapter = store.adapter
    yield lambda: adapter.find([erasure.order(known=erasure.known)])
    yield lambda: adapter.erase([erasure.order(targets=tuple(targets))])
    yield lambda: adapter.verify([erasure.order(targets=tuple(targets), known=erasure.known)])
    if isinstance(adapter, SourceAdapter):
        revoke = adapter.revoke
        yield lambda: revoke([erasure.order()])


def holds(condition: bool, law: str, what: str) -> None:  # noqa: FBT001 - a condition is what it is about
    """Raise an error that names the law where a condition is not met."""
    # Not `assert`: pytest would write out what was compared, and that is what was stored.
    if not condition:
        raise AssertionError(f"{law} is broken: {what}")


def plant(store: StoreUnderTest, record: Record) -> frozenset[str]:
    """Plant a record; give the handles that it got."""
    before = store.raw().keys()
    store.plant(record)
    return frozenset(store.raw().keys() - before)


def without(raw: Mapping[str, bytes], handles: frozenset[str] | set[str]) -> tuple[dict[str, bytes], set[str]]:
    """Give what stays and which handles go."""
    return {handle: bytes_ for handle, bytes_ in raw.items() if handle not in handles}, set(handles & raw.keys())


def complete(outcome: Outcome, expected: int, law: str) -> None:
    """Hold a whole run against how much there was to erase."""
    holds(len(outcome.targets) == expected, law, "find gives exactly what is to go")
    holds((outcome.erased, outcome.already_absent, outcome.extra) == (expected, 0, 0), law, "the counts are exact")
    holds((outcome.remaining, outcome.inconclusive) == (0, False), law, "verify is clean after an erase")


def clean(answers: Sequence[Seen]) -> bool:
    """Tell whether every look found nothing."""
    return all((answer.remaining, answer.inconclusive) == (0, False) for answer in answers)


def counted_erase(store: StoreUnderTest, orders: Sequence[EraseOrder], law: str) -> Sequence[Erased]:
    """Erase, and hold the counts of each answer against its order as the engine does."""
    answers = store.adapter.erase(orders)
    holds(len(answers) == len(orders), law, "each order has one answer")
    for order, answer in zip(orders, answers, strict=True):
        done = answer.erased + answer.already_absent + len(answer.windows)
        holds(done == len(order.targets) + answer.extra, law, "the counts of an answer add up")
    return answers


def refused(make: Callable[[], object], law: str) -> None:
    """Hold that making something is refused as an empty selection."""
    error = error_of(make)
    holds(isinstance(error, InvalidRequest) and isinstance(error, ValueError), law, "an empty selection is refused")


def error_of(call: Callable[[], object]) -> Exception | None:
    """Give what a call raises, None where it succeeds."""
    try:
        call()
    except Exception as error:  # noqa: BLE001 - which error it is, is what a law is about
        return error
    return None
