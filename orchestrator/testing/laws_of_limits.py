"""Laws 5 to 7: many, none, and a store that does not answer."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta
from functools import partial

from orchestrator.domain.contract import MAX_PAGE, SourceAdapter
from orchestrator.domain.errors import Transient
from orchestrator.domain.scope import Scope
from orchestrator.domain.selector import Selector, SelectorKind
from orchestrator.testing.people import EVERY_PROJECT, PEOPLE, S1, SUBJECT, record_of
from orchestrator.testing.proof import (
    Laws,
    calls_of,
    clean,
    complete,
    counted_erase,
    erasure_of,
    error_of,
    holds,
    refused,
)
from orchestrator.testing.store import StoreUnderTest


class LawsOfLimits(Laws):
    """Laws 5 to 7: many, none, and a store that does not answer."""

    def test_law_05_a_batch_and_one_more(self, store: StoreUnderTest) -> None:
        """One order more than a batch takes is done for each of its users."""
        law = "law 5"
        size = store.adapter.max_batch
        records = [record_of(replace(S1, user=f"s-{n}"), "passport", f"b-{n}") for n in range(1, size + 2)]
        store.plant_all((*records, PEOPLE.bystanders[3]))
        erasures = [erasure_of(store, record.scope, SUBJECT, (record,)) for record in records]
        for n in range(0, len(erasures), size):
            batch = erasures[n : n + size]
            if isinstance(store.adapter, SourceAdapter):
                pages = store.adapter.revoke([erasure.order() for erasure in batch])
                for erasure, page in zip(batch, pages, strict=True):
                    erasure.known, erasure.revision = page.targets, page.revision
            found = store.adapter.find([erasure.order(known=erasure.known) for erasure in batch])
            holds([len(f.targets) for f in found] == [1] * len(batch), law, "find answers each order in its place")
            orders = [e.order(targets=f.targets, known=e.known) for e, f in zip(batch, found, strict=True)]
            answers = counted_erase(store, orders, law)
            holds([answer.erased for answer in answers] == [1] * len(batch), law, "each order erases its own")
            holds(clean(store.adapter.verify(orders)), law, "verify is clean for the batch")
        holds(len(store.raw()) == 1, law, "all users of the batches are gone, and the bystander is not")

    def test_law_05_pages(self, store: StoreUnderTest) -> None:
        """Many pages of targets are found, erased and counted to the last."""
        law = "law 5"
        store.plant_all(PEOPLE.bystanders)
        before = dict(store.raw())
        for size in self.sizes:
            scope = replace(S1, project=f"of-{size}")
            records = [
                record_of(scope, f"key-{n}", f"{size}-{n}", text=f"Line {n} of {size}.", source=f"bulk-{size}")
                for n in range(size)
            ]
            store.plant_all(records)
            holds(len(store.raw()) == len(before) + size, law, "every record is planted")
            # Every page of known facts lists the whole subject: for many pages that is quadratic.
            selector = SUBJECT if size <= 2 * MAX_PAGE else Selector(kind=SelectorKind.SOURCE, value=f"bulk-{size}")
            outcome = erasure_of(store, scope, selector, records, patience=timedelta(minutes=1)).run()
            complete(outcome, size, law)
            holds(dict(store.raw()) == before, law, "every page is erased, and nothing else")

    def test_law_06_an_empty_selection_erases_nothing(self, store: StoreUnderTest) -> None:
        """An empty selection is refused before any call; an order without targets erases nothing."""
        law = "law 6"
        store.plant_all((*PEOPLE.subject, *PEOPLE.bystanders))
        before = dict(store.raw())
        for empty in ("", " ", "\n"):
            for kind in (SelectorKind.KEY, SelectorKind.MEMORY, SelectorKind.SOURCE):
                refused(partial(Selector, kind=kind, value=empty), law)
            refused(partial(Scope, tenant=empty, user="s-1"), law)
            refused(partial(Scope, tenant="t-1", user=empty), law)
        refused(lambda: Selector(kind=SelectorKind.SUBJECT, value="s-1"), law)
        holds(list(store.adapter.erase([])) == [], law, "no orders, no answers")
        for selector in (SUBJECT, Selector(kind=SelectorKind.KEY, value="passport")):
            for scope in (S1, EVERY_PROJECT):
                erasure = erasure_of(store, scope, selector, PEOPLE.subject)
                (answer,) = counted_erase(store, [erasure.order(known=erasure.known)], law)
                counts = (answer.erased, answer.already_absent, answer.extra)
                holds(counts == (0, 0, 0), law, "an order without targets counts nothing")
                holds(dict(store.raw()) == before, law, "an order without targets erases nothing")

    def test_law_06_an_unknown_id_is_nothing_found(self, store: StoreUnderTest) -> None:
        """Ids that are not there count as absent, also those that a pattern would match."""
        law = "law 6"
        store.plant_all((*PEOPLE.subject, *PEOPLE.bystanders))
        before = dict(store.raw())
        erasure = erasure_of(store, EVERY_PROJECT, SUBJECT, PEOPLE.subject)
        real = erasure.find()[0]
        ids = (
            real.id[:-1],
            real.id + "0",
            real.id[:-1] + "*",
            real.id[:-1] + "_",
            "*",
            "%",
            "unknown",
            real.id.upper(),
        )
        unknown = tuple(replace(real, id=i) for i in dict.fromkeys(ids) if i != real.id)
        (answer,) = counted_erase(store, [erasure.order(targets=unknown)], law)
        counts = (answer.erased, answer.already_absent, answer.extra)
        holds(counts == (0, len(unknown), 0), law, "unknown ids are counted as absent, never as erased")
        holds(dict(store.raw()) == before, law, "unknown ids erase nothing")
        nobody = erasure_of(store, replace(S1, user="nobody"), SUBJECT, ()).run()
        holds((nobody.targets, nobody.erased, nobody.remaining) == ((), 0, 0), law, "nobody's data is nothing found")

    def test_law_06_what_is_there_is_never_absent(self, store: StoreUnderTest) -> None:
        """A target that is there is erased or left over: it never counts as absent because of its owner."""
        law = "law 6"
        store.plant_all(PEOPLE.subject)
        targets = erasure_of(store, EVERY_PROJECT, SUBJECT, PEOPLE.subject).find()
        before = len(store.raw())
        wrong = erasure_of(store, replace(S1, user="s-2"), SUBJECT, ())
        (answer,) = store.adapter.erase([wrong.order(targets=targets)])
        gone = before - len(store.raw())
        holds((answer.erased, answer.already_absent) == (gone, 0), law, "another owner's target is not absent")

    def test_law_07_what_is_past_its_deadline_is_not_begun(self, store: StoreUnderTest) -> None:
        """A call whose deadline is over raises Transient and changes nothing: a hold may be in force by then."""
        law = "law 7"
        store.plant_all((*PEOPLE.subject, *PEOPLE.bystanders))
        before = dict(store.raw())
        targets = erasure_of(store, EVERY_PROJECT, SUBJECT, PEOPLE.subject).find()
        erasure = erasure_of(store, EVERY_PROJECT, SUBJECT, PEOPLE.subject, patience=-timedelta(seconds=1))
        for call in calls_of(store, erasure, targets):
            holds(isinstance(error_of(call), Transient), law, "a call whose deadline is over raises Transient")
            holds(dict(store.raw()) == before, law, "a call whose deadline is over changes nothing")

    def test_law_07_an_unreachable_store_is_transient(self, store: StoreUnderTest) -> None:
        """A store that does not answer raises Transient within the deadline, and nothing is half counted."""
        law = "law 7"
        store.plant_all((*PEOPLE.subject, *PEOPLE.bystanders))
        before = dict(store.raw())
        targets = erasure_of(store, EVERY_PROJECT, SUBJECT, PEOPLE.subject).find()
        erasure = erasure_of(store, EVERY_PROJECT, SUBJECT, PEOPLE.subject, patience=self.patience)
        with store.unreachable():
            for call in calls_of(store, erasure, targets):
                began = time.monotonic()
                error = error_of(call)
                took = time.monotonic() - began
                holds(isinstance(error, Transient), law, "a store that fails raises Transient")
                holds(took <= self.patience.total_seconds(), law, "the call is back before its deadline")
        holds(dict(store.raw()) == before, law, "a failed call changes nothing")
        complete(erasure.run(), len(PEOPLE.subject), law)
        holds(len(store.raw()) == len(PEOPLE.bystanders), law, "a full run afterwards erases all")
