"""Law 10: what was made from copies goes with them, and what somebody else told stays."""

from __future__ import annotations

from dataclasses import replace

from orchestrator.domain.contract import SourceAdapter, Target
from orchestrator.domain.selector import Selector, SelectorKind
from orchestrator.testing.erasure import Erasure
from orchestrator.testing.people import PEOPLE, S1, record_of
from orchestrator.testing.proof import Laws, clean, complete, erasure_of, holds, plant, without
from orchestrator.testing.store import PLANTED, Record, StoreUnderTest

_ASKED = Selector(kind=SelectorKind.SOURCE, value=PEOPLE.passport.source)
_GENERATIONS = 3


class LawsOfClosure(Laws):
    """Law 10: what was made from copies goes with them, and what somebody else told stays."""

    def test_law_10_what_was_made_from_copies_goes_too(self, store: StoreUnderTest) -> None:
        """A summary of a summary of a copy is found, pass by pass, and erased; what stands beside it is not."""
        law = "law 10"
        if not _is_built_upon(store):
            return
        store.plant_all((PEOPLE.allergy, *PEOPLE.bystanders))
        before = dict(store.raw())
        store.plant(PEOPLE.passport)
        erasure = erasure_of(store, S1, _ASKED, (PEOPLE.passport,))
        _build(store, erasure, law)
        complete(erasure.run(), 1 + _GENERATIONS, law)
        holds(dict(store.raw()) == before, law, "exactly what was made from the record, at whatever distance, is gone")
        holds(all(map(store.readable, (PEOPLE.allergy, *PEOPLE.bystanders))), law, "what stays is still readable")

    def test_law_10_what_is_made_from_a_copy_later_is_seen(self, store: StoreUnderTest) -> None:
        """What a late writer makes from a copy that has been found is refused, or seen by verify and gone at last."""
        law = "law 10"
        if not _is_built_upon(store):
            return
        store.plant_all((PEOPLE.passport, *PEOPLE.bystanders))
        erasure = erasure_of(store, S1, _ASKED, (PEOPLE.passport,))
        targets = erasure.find()
        late = _made_from(targets[0], "late")
        written = store.late_write(late, PLANTED)
        erasure.erase(targets)
        holds(written or not store.readable(late), law, "what was refused is not readable")
        holds(clean(erasure.verify(targets)) != written, law, "verify sees what was made from a target, and only that")
        # A new round carries over what was found.
        again = replace(erasure, known=(*erasure.known, *targets)).run()
        holds((again.remaining, again.inconclusive) == (0, False), law, "another round erases what was made late")
        holds(not store.readable(late), law, "what was made late is gone at last")
        holds(all(map(store.readable, PEOPLE.bystanders)), law, "bystanders are still readable")

    def test_law_10_what_another_source_told_stays(self, store: StoreUnderTest) -> None:
        """Where two sources told the same, forgetting one takes its copy and leaves the other's."""
        law = "law 10"
        told_too = record_of(S1, "passport-again", "f-8", source="turn-of-somebody-else")
        handles = plant(store, told_too)
        expected, _ = without(store.raw(), set())
        # A store that keeps what is the same but once gives no second handle: the copy must stay all the same.
        own = plant(store, PEOPLE.passport)
        outcome = erasure_of(store, S1, _ASKED, (PEOPLE.passport,)).run()
        holds((outcome.remaining, outcome.inconclusive) == (0, False), law, "verify is clean after an erase")
        holds(store.raw().keys() == handles, law, "the copy of the other source is there, and the one's own is not")
        holds(not own or dict(store.raw()) == expected, law, "the copy of the other source is byte-identical")
        holds(store.readable(told_too), law, "what another source told is still readable")


def _is_built_upon(store: StoreUnderTest) -> bool:
    """Tell whether anything is made from what this store holds; a source follows its own lineage in revoke."""
    return store.is_built_upon and not isinstance(store.adapter, SourceAdapter)


def _build(store: StoreUnderTest, erasure: Erasure, law: str) -> None:
    """Plant generations of records, each made from the one before."""
    known = erasure.find()
    holds(len(known) == 1, law, "find gives exactly what is to go")
    for n in range(_GENERATIONS):
        store.plant(_made_from(known[-1], str(n)))
        new = [target for target in erasure.find() if target not in known]
        holds(len(new) == 1, law, "find gives what was made from what it has found")
        known = (*known, *new)


def _made_from(target: Target, name: str) -> Record:
    """Make a record of what is made from a target of the store, by a job that names itself as its source."""
    made = Target(kind=target.kind, id=target.id, version=target.version)
    return replace(record_of(S1, f"summary-{name}", target.id, source=f"summary-job-{name}"), fact=made)
