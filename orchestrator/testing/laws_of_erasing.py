"""Laws 1 to 4: exactly what was named goes, once."""

from __future__ import annotations

from dataclasses import replace

from orchestrator.domain.contract import SourceAdapter
from orchestrator.domain.scope import Scope
from orchestrator.domain.selector import Selector, SelectorKind
from orchestrator.testing.people import EVERY_PROJECT, HOSTILE, PEOPLE, S1, SUBJECT, record_of
from orchestrator.testing.proof import (
    Laws,
    clean,
    complete,
    counted_erase,
    erasure_of,
    holds,
    plant,
    without,
)
from orchestrator.testing.store import StoreUnderTest


class LawsOfErasing(Laws):
    """Laws 1 to 4: exactly what was named goes, once."""

    def test_law_01_takes_all_and_only_its_targets(self, store: StoreUnderTest) -> None:
        """Erase takes all and only its targets; neighbours stay byte-identical and counts are exact."""
        law = "law 1"
        selections = (
            (S1, Selector(kind=SelectorKind.KEY, value="passport"), (PEOPLE.passport,)),
            (S1, Selector(kind=SelectorKind.SOURCE, value=PEOPLE.allergy.source), (PEOPLE.allergy,)),
            (EVERY_PROJECT, SUBJECT, (PEOPLE.abroad,)),
        )
        store.plant_all(PEOPLE.bystanders)
        holds(len(store.raw()) == len(PEOPLE.bystanders), law, "raw() gives one handle for each planted record")
        handles = {record: plant(store, record) for record in PEOPLE.subject}
        for scope, selector, going in selections:
            expected = without(store.raw(), {h for record in going for h in handles[record]})
            erasure = erasure_of(store, scope, selector, going)
            erasure.revoke()
            if isinstance(store.adapter, SourceAdapter):
                holds(not any(map(store.readable, going)), law, "a source hands nothing out after revoke")
            targets = erasure.find()
            holds(len(targets) == len(expected[1]), law, "find gives exactly what is to go")
            (answer,) = counted_erase(store, [erasure.order(targets=targets)], law)
            # Before anything else is called: an erase that only promises would catch up.
            holds(dict(store.raw()) == expected[0], law, "exactly the selected records are gone")
            counts = (answer.erased, answer.already_absent, answer.extra)
            holds(counts == (len(targets), 0, 0), law, "the counts are exact")
            holds(clean(erasure.verify(targets)), law, "verify is clean after an erase")
            holds(not any(map(store.readable, going)), law, "nothing that was erased is readable")
            holds(all(map(store.readable, PEOPLE.bystanders)), law, "bystanders are still readable")

    def test_law_01_a_subject_is_taken_by_its_scope(self, store: StoreUnderTest) -> None:
        """A subject goes as a whole, of one project or of all, though nothing is known of what it was made from."""
        law = "law 1"
        if isinstance(store.adapter, SourceAdapter) or not store.is_built_upon:
            return  # a source names its own records, and a copy of a whole database is looked into by them
        store.plant_all(PEOPLE.bystanders)
        before = dict(store.raw())
        handles = {record: plant(store, record) for record in PEOPLE.subject}
        # What was made from a record goes from whichever project it lies in.
        by_key = Selector(kind=SelectorKind.KEY, value="passport")
        found = erasure_of(store, S1, by_key, (PEOPLE.abroad,)).find()
        holds(len(found) == 1, law, "what was made from a known record is found in whichever project it lies")
        origin = found[0].derived_of or ""
        holds(origin.startswith(f"fact:{PEOPLE.abroad.fact.id}"), law, "a target names what it was made from")
        for scope, going in ((S1, (PEOPLE.passport, PEOPLE.allergy)), (EVERY_PROJECT, (PEOPLE.abroad,))):
            expected, gone = without(store.raw(), {h for record in going for h in handles[record]})
            erasure = erasure_of(store, scope, SUBJECT, ())
            holds(not clean(erasure.verify(())), law, "verify sees a subject by its scope alone")
            complete(erasure.run(), len(gone), law)
            holds(dict(store.raw()) == expected, law, "exactly what lies in the scope is gone")
        holds(dict(store.raw()) == before, law, "the bystanders are byte-identical")

    def test_law_01_counts_each_order_of_a_batch(self, store: StoreUnderTest) -> None:
        """Of two orders of one batch that name one id, the first erases it and the other finds it absent."""
        law = "law 1"
        other = PEOPLE.bystanders[1]
        store.plant_all((*PEOPLE.subject, other))
        first = erasure_of(store, EVERY_PROJECT, SUBJECT, PEOPLE.subject)
        second = erasure_of(store, EVERY_PROJECT, SUBJECT, PEOPLE.subject)
        third = erasure_of(store, other.scope, SUBJECT, (other,))
        orders = []
        for erasure in (first, second, third):
            erasure.revoke()
            orders.append(erasure.order(targets=erasure.find()))
        answers = counted_erase(store, orders, law)
        counts = [(answer.erased, answer.already_absent) for answer in answers]
        holds(counts == [(3, 0), (0, 3), (1, 0)], law, "each order is counted once, in its place")
        holds(not store.raw(), law, "all that was named is gone")

    def test_law_01_what_has_expired_is_not_the_person(self, store: StoreUnderTest) -> None:
        """A job of what has expired names targets and no person: nothing else of the scope is found, seen or erased."""
        law = "law 1"
        store.plant_all(PEOPLE.bystanders)
        handles = {record: plant(store, record) for record in PEOPLE.subject}
        before, expired = dict(store.raw()), Selector(kind=SelectorKind.EXPIRED)
        for scope in (S1, EVERY_PROJECT):
            erasure = erasure_of(store, scope, expired, ())
            erasure.revision = None  # an expiry raises none
            erasure.revoke()
            holds(not erasure.known, law, "nothing has expired, and a source names nothing")
            holds(not erasure.find(), law, "nothing is found where no target is known")
            erasure.erase(())
            holds(clean(erasure.verify(())), law, "what lives is no copy of what has expired")
            holds(dict(store.raw()) == before, law, "nothing is erased where nothing has expired")
        if isinstance(store.adapter, SourceAdapter):
            return  # what expires in a source is told by its own clock
        going = (PEOPLE.passport,)
        expected, gone = without(before, handles[PEOPLE.passport])
        erasure = erasure_of(store, EVERY_PROJECT, expired, going)
        erasure.revision = None
        complete(erasure.run(), len(gone), law)
        holds(dict(store.raw()) == expected, law, "exactly what was made from what has expired is gone")

    def test_law_02_ids_are_exact(self, store: StoreUnderTest) -> None:
        """Users and ids that look like patterns, prefixes or one another are told apart."""
        law = "law 2"
        users = [
            record_of(Scope(tenant="t-1", user=name, project="p-1"), "passport", f"u-{n}")
            for n, name in enumerate(HOSTILE)
        ]
        keys = [record_of(S1, name, name, source=f"k-{n}") for n, name in enumerate(HOSTILE)]
        handles = {record: plant(store, record) for record in (*users, *keys)}
        for record in (*users, *keys):
            holds(len(handles[record]) == 1, law, "every name is a record of its own")
            by_key = Selector(kind=SelectorKind.KEY, value=record.key)
            expected, going = without(store.raw(), handles[record])
            outcome = erasure_of(store, record.scope, SUBJECT if record in users else by_key, (record,)).run()
            complete(outcome, len(going), law)
            holds(dict(store.raw()) == expected, law, "only the exact name is erased")

    def test_law_02_a_version_is_part_of_what_is_named(self, store: StoreUnderTest) -> None:
        """What was made from another version of a record stays: versions of one record have one id."""
        law = "law 2"
        if isinstance(store.adapter, SourceAdapter):
            return  # versions in a source are told by its own selectors
        newer = replace(
            record_of(S1, "passport-by-now", "f-1", text="The passport number is Q7654321.", source="turn-later"),
            fact=replace(PEOPLE.passport.fact, version=PEOPLE.passport.fact.version + 1),
        )
        store.plant(newer)
        before = dict(store.raw())
        store.plant(PEOPLE.passport)
        by_source = Selector(kind=SelectorKind.SOURCE, value=PEOPLE.passport.source)
        complete(erasure_of(store, S1, by_source, (PEOPLE.passport,)).run(), 1, law)
        holds(dict(store.raw()) == before, law, "what was made from another version is byte-identical")
        holds(store.readable(newer), law, "what was made from another version is still readable")

    def test_law_03_another_tenant_looks_like_nothing(self, store: StoreUnderTest) -> None:
        """Another tenant's same id is untouched, and looks as if it were not there."""
        law = "law 3"
        store.plant_all((*PEOPLE.subject, *PEOPLE.bystanders))
        finder = erasure_of(store, EVERY_PROJECT, SUBJECT, PEOPLE.subject)
        targets, before = finder.find(), dict(store.raw())
        holds(len(targets) == len(PEOPLE.subject), law, "find sees what is planted")
        for selector in (SUBJECT, Selector(kind=SelectorKind.KEY, value="passport")):
            stranger = erasure_of(store, replace(S1, tenant="t-3"), selector, PEOPLE.subject)
            stranger.revoke()
            holds(not stranger.find(), law, "find gives nothing of another tenant")
            (answer,) = counted_erase(store, [stranger.order(targets=targets)], law)
            counts = (answer.erased, answer.already_absent)
            holds(counts == (0, len(targets)), law, "another tenant's targets count as absent")
            seen = store.adapter.verify([stranger.order(targets=targets, known=stranger.known)])
            holds([s.remaining for s in seen] == [0], law, "verify sees nothing of another tenant")
            holds(dict(store.raw()) == before, law, "another tenant's records are byte-identical")

    def test_law_04_a_repeat_changes_nothing(self, store: StoreUnderTest) -> None:
        """A repeat reports already_absent, changes nothing and raises nothing, as after a lost receipt."""
        law = "law 4"
        store.plant_all((*PEOPLE.subject, *PEOPLE.bystanders))
        erasure = erasure_of(store, EVERY_PROJECT, SUBJECT, PEOPLE.subject)
        revoked = erasure.revoke()
        holds(erasure.revoke() == revoked, law, "a repeated revoke gives the same answer")
        targets = erasure.find()
        order = erasure.order(targets=targets)
        counted_erase(store, [order], law)  # the receipt of this call is lost
        after = dict(store.raw())
        for attempt in (2, 3):
            (answer,) = counted_erase(store, [replace(order, attempt=attempt, fence=attempt)], law)
            counts = (answer.erased, answer.already_absent, answer.extra)
            holds(counts == (0, len(targets), 0), law, "what is gone is reported as already absent")
            holds(dict(store.raw()) == after, law, "a repeat changes nothing")
        holds(erasure.revoke() == revoked, law, "a revoke after the erase gives the same answer")
        holds(clean(erasure.verify(targets)), law, "verify is clean after repeats")
