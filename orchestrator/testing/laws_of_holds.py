"""Law 1 under a hold: what is held is not named by an order, though its selector would name it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from orchestrator.domain.contract import Revocation, SourceAdapter
from orchestrator.domain.selector import Selector, SelectorKind
from orchestrator.testing.erasure import Erasure
from orchestrator.testing.people import EVERY_PROJECT, PEOPLE, S1, SUBJECT
from orchestrator.testing.proof import Laws, clean, counted_erase, erasure_of, holds, plant
from orchestrator.testing.store import Record, StoreUnderTest

LAW = "law 1"


class LawsOfHolds(Laws):
    """Law 1 under a hold: what is held is not named by an order, though its selector would name it."""

    def test_law_01_leaves_what_a_hold_covers(self, store: StoreUnderTest) -> None:
        """A source leaves a held item readable and byte-identical, takes the others, and takes it when it is free."""
        if not isinstance(store.adapter, SourceAdapter):
            return  # a derived store is never asked for what a hold covers
        store.plant_all(PEOPLE.bystanders)
        handles = {record: plant(store, record) for record in PEOPLE.subject}
        before = dict(store.raw())
        item = _item_of(store, PEOPLE.passport)
        erasure = erasure_of(store, EVERY_PROJECT, SUBJECT, PEOPLE.subject)
        first = _revoke(store, erasure, {item})
        holds(first.left == {item}, LAW, "the answer names the held item as left")
        holds(item not in {target.id for target in first.targets}, LAW, "a held item is no target")
        holds(len(first.targets) == len(PEOPLE.subject) - 1, LAW, "everything that is not held is a target")
        holds(store.readable(PEOPLE.passport), LAW, "a held item is readable")
        holds(_same(store, before, handles[PEOPLE.passport]), LAW, "a held item is byte-identical")
        holds(not any(map(store.readable, (PEOPLE.allergy, PEOPLE.abroad))), LAW, "the others are not handed out")
        holds(_revoke(store, erasure, {item}) == first, LAW, "a repeat gives the same answer")
        holds(_same(store, before, handles[PEOPLE.passport]), LAW, "a repeat leaves the held item")
        last = _revoke(store, erasure, ())
        holds(not last.left and set(last.targets) > set(first.targets), LAW, "an item that is free is a target as well")
        holds(len(last.targets) == len(PEOPLE.subject), LAW, "all that the selector names are targets by then")
        holds(not store.readable(PEOPLE.passport), LAW, "an item that is free is not handed out")
        holds(_revoke(store, erasure, ()) == last, LAW, "a repeat gives the same answer")
        erasure.known, erasure.revision = last.targets, last.revision
        targets = erasure.find()
        counted_erase(store, [erasure.order(targets=targets)], LAW)
        holds(clean(erasure.verify(targets)), LAW, "verify is clean when all is free and erased")
        stays = before.keys() - {handle for some in handles.values() for handle in some}
        holds(dict(store.raw()) == {handle: before[handle] for handle in stays}, LAW, "bystanders are byte-identical")


def _item_of(store: StoreUnderTest, record: Record) -> str:
    by_key = Selector(kind=SelectorKind.KEY, value=record.key)
    (target,) = erasure_of(store, S1, by_key, (record,)).find()
    return target.id


def _revoke(store: StoreUnderTest, erasure: Erasure, held: Collection[str]) -> Revocation:
    adapter = store.adapter
    assert isinstance(adapter, SourceAdapter)  # noqa: S101 - the law has asked
    (answer,) = adapter.revoke([erasure.order(held=frozenset(held))])
    return answer


def _same(store: StoreUnderTest, before: Mapping[str, bytes], handles: Collection[str]) -> bool:
    now = store.raw()
    return all(now.get(handle) == before[handle] for handle in handles)
