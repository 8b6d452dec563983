"""The laws of the adapter contract as a suite: one class for every adapter, ours and a third party's.

Principles: after every erase the subject is gone *and* the neighbours are byte-identical,
read by the store's own raw road. A failure names its law and never what was stored.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import ClassVar, Final

from orchestrator.domain.contract import MAX_PAGE, Erased, EraseOrder, Seen, SourceAdapter, Target
from orchestrator.domain.errors import InvalidRequest, Transient
from orchestrator.domain.scope import Scope
from orchestrator.domain.selector import Selector, SelectorKind
from orchestrator.testing.erasure import Erasure, Outcome
from orchestrator.testing.store import PLANTED, Record, StoreUnderTest, answer_without_erasing

SUBJECT: Final = Selector(kind=SelectorKind.SUBJECT)
TEXT: Final = "The passport number is P1234567."
S1: Final = Scope(tenant="t-1", user="s-1", project="p-1")
EVERY_PROJECT: Final = Scope(tenant="t-1", user="s-1")
HOSTILE: Final = (
    "user:1",
    "user:10",
    "User:1",
    "user:1 ",
    "user:*",
    "user:?",
    "user:[1]",
    "user:%",
    "user:_",
    "*",
    "%",
    "o'brien",
    'say "hi"',
    "back\\slash",
    "new\nline",
    "{user}:1",
    "smile-\U0001f600",
    "x" * 512,
    "x" * 511,
    "caf\u00e9",  # NFC
    "cafe\u0301",  # NFD
)


def _record(scope: Scope, key: str, fact: str, *, text: str = TEXT, source: str | None = None) -> Record:
    made = Target(kind="fact", id=fact, version=1)
    return Record(scope=scope, key=key, text=text, source=source or f"turn-{fact}", fact=made)


@dataclass(frozen=True, kw_only=True)
class People:
    """Everybody of one test: what is to go, and those that must not notice."""

    passport: Record
    allergy: Record
    abroad: Record  # the subject in another project
    bystanders: tuple[Record, ...]

    @property
    def subject(self) -> tuple[Record, ...]:
        """All records of the subject."""
        return (self.passport, self.allergy, self.abroad)


PEOPLE: Final = People(
    passport=_record(S1, "passport", "f-1"),
    allergy=_record(S1, "allergy", "f-2", text="Walnuts are not good for me."),
    abroad=_record(replace(S1, project="p-2"), "passport", "f-3", text="I travel with the red one."),
    bystanders=(
        _record(replace(S1, user="s-10"), "passport", "f-4", text="Mine begins with C."),  # the same prefix
        _record(replace(S1, user="s-2"), "passport", "f-5"),  # the same value
        _record(replace(S1, user="S-1"), "passport", "f-6"),  # another case
        _record(replace(S1, tenant="t-2"), "passport", "f-1"),  # the same ids in another tenant
        _record(replace(S1, tenant="t-2"), "allergy", "f-2"),
    ),
)


class AdapterContract:
    """The laws that every adapter keeps: inherit and give a pytest fixture `store`.

    `sizes` are the numbers of targets of law 5; a slow store may take fewer.
    """

    sizes: ClassVar[tuple[int, ...]] = (MAX_PAGE + 1, 10 * MAX_PAGE + 1)
    patience: ClassVar[timedelta] = timedelta(seconds=5)

    @classmethod
    def laws(cls) -> dict[str, Callable[[AdapterContract, StoreUnderTest], None]]:
        """Name every law of the suite and how to run it."""
        return {name: getattr(cls, name) for name in sorted(dir(cls)) if name.startswith("test_law_")}

    def test_law_01_takes_all_and_only_its_targets(self, store: StoreUnderTest) -> None:
        """Erase takes all and only its targets; neighbours stay byte-identical and counts are exact."""
        law = "law 1"
        selections = (
            (S1, Selector(kind=SelectorKind.KEY, value="passport"), (PEOPLE.passport,)),
            (S1, Selector(kind=SelectorKind.SOURCE, value=PEOPLE.allergy.source), (PEOPLE.allergy,)),
            (EVERY_PROJECT, SUBJECT, (PEOPLE.abroad,)),
        )
        store.plant_all(PEOPLE.bystanders)
        _holds(len(store.raw()) == len(PEOPLE.bystanders), law, "raw() gives one handle for each planted record")
        handles = {record: _plant(store, record) for record in PEOPLE.subject}
        for scope, selector, going in selections:
            expected = _without(store.raw(), {h for record in going for h in handles[record]})
            erasure = self._erasure(store, scope, selector, going)
            erasure.revoke()
            if isinstance(store.adapter, SourceAdapter):
                _holds(not any(map(store.readable, going)), law, "a source hands nothing out after revoke")
            targets = erasure.find()
            _holds(len(targets) == len(expected[1]), law, "find gives exactly what is to go")
            (answer,) = _erase(store, [erasure.order(targets=targets)], law)
            # Before anything else is called: an erase that only promises would catch up.
            _holds(dict(store.raw()) == expected[0], law, "exactly the selected records are gone")
            counts = (answer.erased, answer.already_absent, answer.extra)
            _holds(counts == (len(targets), 0, 0), law, "the counts are exact")
            _holds(_clean(erasure.verify(targets)), law, "verify is clean after an erase")
            _holds(not any(map(store.readable, going)), law, "nothing that was erased is readable")
            _holds(all(map(store.readable, PEOPLE.bystanders)), law, "bystanders are still readable")

    def test_law_01_counts_each_order_of_a_batch(self, store: StoreUnderTest) -> None:
        """Of two orders of one batch that name one id, the first erases it and the other finds it absent."""
        law = "law 1"
        other = PEOPLE.bystanders[1]
        store.plant_all((*PEOPLE.subject, other))
        first = self._erasure(store, EVERY_PROJECT, SUBJECT, PEOPLE.subject)
        second = self._erasure(store, EVERY_PROJECT, SUBJECT, PEOPLE.subject)
        third = self._erasure(store, other.scope, SUBJECT, (other,))
        orders = []
        for erasure in (first, second, third):
            erasure.revoke()
            orders.append(erasure.order(targets=erasure.find()))
        answers = _erase(store, orders, law)
        counts = [(answer.erased, answer.already_absent) for answer in answers]
        _holds(counts == [(3, 0), (0, 3), (1, 0)], law, "each order is counted once, in its place")
        _holds(not store.raw(), law, "all that was named is gone")

    def test_law_02_ids_are_exact(self, store: StoreUnderTest) -> None:
        """Users and ids that look like patterns, prefixes or one another are told apart."""
        law = "law 2"
        users = [
            _record(Scope(tenant="t-1", user=name, project="p-1"), "passport", f"u-{n}")
            for n, name in enumerate(HOSTILE)
        ]
        keys = [_record(S1, name, name, source=f"k-{n}") for n, name in enumerate(HOSTILE)]
        handles = {record: _plant(store, record) for record in (*users, *keys)}
        for record in (*users, *keys):
            _holds(len(handles[record]) == 1, law, "every name is a record of its own")
            by_key = Selector(kind=SelectorKind.KEY, value=record.key)
            expected, going = _without(store.raw(), handles[record])
            outcome = self._erasure(store, record.scope, SUBJECT if record in users else by_key, (record,)).run()
            _complete(outcome, len(going), law)
            _holds(dict(store.raw()) == expected, law, "only the exact name is erased")

    def test_law_03_another_tenant_looks_like_nothing(self, store: StoreUnderTest) -> None:
        """Another tenant's same id is untouched, and looks as if it were not there."""
        law = "law 3"
        store.plant_all((*PEOPLE.subject, *PEOPLE.bystanders))
        finder = self._erasure(store, EVERY_PROJECT, SUBJECT, PEOPLE.subject)
        targets, before = finder.find(), dict(store.raw())
        _holds(len(targets) == len(PEOPLE.subject), law, "find sees what is planted")
        for selector in (SUBJECT, Selector(kind=SelectorKind.KEY, value="passport")):
            stranger = self._erasure(store, replace(S1, tenant="t-3"), selector, PEOPLE.subject)
            stranger.revoke()
            _holds(not stranger.find(), law, "find gives nothing of another tenant")
            (answer,) = _erase(store, [stranger.order(targets=targets)], law)
            counts = (answer.erased, answer.already_absent)
            _holds(counts == (0, len(targets)), law, "another tenant's targets count as absent")
            seen = store.adapter.verify([stranger.order(targets=targets, known=stranger.known)])
            _holds([s.remaining for s in seen] == [0], law, "verify sees nothing of another tenant")
            _holds(dict(store.raw()) == before, law, "another tenant's records are byte-identical")

    def test_law_04_a_repeat_changes_nothing(self, store: StoreUnderTest) -> None:
        """A repeat reports already_absent, changes nothing and raises nothing, as after a lost receipt."""
        law = "law 4"
        store.plant_all((*PEOPLE.subject, *PEOPLE.bystanders))
        erasure = self._erasure(store, EVERY_PROJECT, SUBJECT, PEOPLE.subject)
        revoked = erasure.revoke()
        _holds(erasure.revoke() == revoked, law, "a repeated revoke gives the same answer")
        targets = erasure.find()
        order = erasure.order(targets=targets)
        _erase(store, [order], law)  # the receipt of this call is lost
        after = dict(store.raw())
        for attempt in (2, 3):
            (answer,) = _erase(store, [replace(order, attempt=attempt, fence=attempt)], law)
            counts = (answer.erased, answer.already_absent, answer.extra)
            _holds(counts == (0, len(targets), 0), law, "what is gone is reported as already absent")
            _holds(dict(store.raw()) == after, law, "a repeat changes nothing")
        _holds(erasure.revoke() == revoked, law, "a revoke after the erase gives the same answer")
        _holds(_clean(erasure.verify(targets)), law, "verify is clean after repeats")

    def test_law_05_a_batch_and_one_more(self, store: StoreUnderTest) -> None:
        """One order more than a batch takes is done for each of its users."""
        law = "law 5"
        size = store.adapter.max_batch
        records = [_record(replace(S1, user=f"s-{n}"), "passport", f"b-{n}") for n in range(1, size + 2)]
        store.plant_all((*records, PEOPLE.bystanders[3]))
        erasures = [self._erasure(store, record.scope, SUBJECT, (record,)) for record in records]
        for n in range(0, len(erasures), size):
            batch = erasures[n : n + size]
            if isinstance(store.adapter, SourceAdapter):
                pages = store.adapter.revoke([erasure.order() for erasure in batch])
                for erasure, page in zip(batch, pages, strict=True):
                    erasure.known, erasure.revision = page.targets, page.revision
            found = store.adapter.find([erasure.order(known=erasure.known) for erasure in batch])
            _holds([len(f.targets) for f in found] == [1] * len(batch), law, "find answers each order in its place")
            orders = [e.order(targets=f.targets, known=e.known) for e, f in zip(batch, found, strict=True)]
            answers = _erase(store, orders, law)
            _holds([answer.erased for answer in answers] == [1] * len(batch), law, "each order erases its own")
            _holds(_clean(store.adapter.verify(orders)), law, "verify is clean for the batch")
        _holds(len(store.raw()) == 1, law, "all users of the batches are gone, and the bystander is not")

    def test_law_05_pages(self, store: StoreUnderTest) -> None:
        """Many pages of targets are found, erased and counted to the last."""
        law = "law 5"
        store.plant_all(PEOPLE.bystanders)
        before = dict(store.raw())
        for size in self.sizes:
            scope = replace(S1, project=f"of-{size}")
            records = [
                _record(scope, f"key-{n}", f"{size}-{n}", text=f"Line {n} of {size}.", source=f"bulk-{size}")
                for n in range(size)
            ]
            store.plant_all(records)
            _holds(len(store.raw()) == len(before) + size, law, "every record is planted")
            # Every page of known facts lists the whole subject: for many pages that is quadratic.
            selector = SUBJECT if size <= 2 * MAX_PAGE else Selector(kind=SelectorKind.SOURCE, value=f"bulk-{size}")
            outcome = self._erasure(store, scope, selector, records, patience=timedelta(minutes=1)).run()
            _complete(outcome, size, law)
            _holds(dict(store.raw()) == before, law, "every page is erased, and nothing else")

    def test_law_06_an_empty_selection_erases_nothing(self, store: StoreUnderTest) -> None:
        """An empty selection is refused before any call; an order without targets erases nothing."""
        law = "law 6"
        store.plant_all((*PEOPLE.subject, *PEOPLE.bystanders))
        before = dict(store.raw())
        for empty in ("", " ", "\n"):
            for kind in (SelectorKind.KEY, SelectorKind.MEMORY, SelectorKind.SOURCE):
                _refused(partial(Selector, kind=kind, value=empty), law)
            _refused(partial(Scope, tenant=empty, user="s-1"), law)
            _refused(partial(Scope, tenant="t-1", user=empty), law)
        _refused(lambda: Selector(kind=SelectorKind.SUBJECT, value="s-1"), law)
        _holds(list(store.adapter.erase([])) == [], law, "no orders, no answers")
        for selector in (SUBJECT, Selector(kind=SelectorKind.KEY, value="passport")):
            for scope in (S1, EVERY_PROJECT):
                erasure = self._erasure(store, scope, selector, PEOPLE.subject)
                (answer,) = _erase(store, [erasure.order(known=erasure.known)], law)
                counts = (answer.erased, answer.already_absent, answer.extra)
                _holds(counts == (0, 0, 0), law, "an order without targets counts nothing")
                _holds(dict(store.raw()) == before, law, "an order without targets erases nothing")

    def test_law_06_an_unknown_id_is_nothing_found(self, store: StoreUnderTest) -> None:
        """Ids that are not there count as absent, also those that a pattern would match."""
        law = "law 6"
        store.plant_all((*PEOPLE.subject, *PEOPLE.bystanders))
        before = dict(store.raw())
        erasure = self._erasure(store, EVERY_PROJECT, SUBJECT, PEOPLE.subject)
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
        (answer,) = _erase(store, [erasure.order(targets=unknown)], law)
        counts = (answer.erased, answer.already_absent, answer.extra)
        _holds(counts == (0, len(unknown), 0), law, "unknown ids are counted as absent, never as erased")
        _holds(dict(store.raw()) == before, law, "unknown ids erase nothing")
        nobody = self._erasure(store, replace(S1, user="nobody"), SUBJECT, ()).run()
        _holds((nobody.targets, nobody.erased, nobody.remaining) == ((), 0, 0), law, "nobody's data is nothing found")

    def test_law_06_what_is_there_is_never_absent(self, store: StoreUnderTest) -> None:
        """A target that is there is erased or left over: it never counts as absent because of its owner."""
        law = "law 6"
        store.plant_all(PEOPLE.subject)
        targets = self._erasure(store, EVERY_PROJECT, SUBJECT, PEOPLE.subject).find()
        before = len(store.raw())
        wrong = self._erasure(store, replace(S1, user="s-2"), SUBJECT, ())
        (answer,) = store.adapter.erase([wrong.order(targets=targets)])
        gone = before - len(store.raw())
        _holds((answer.erased, answer.already_absent) == (gone, 0), law, "another owner's target is not absent")

    def test_law_07_an_unreachable_store_is_transient(self, store: StoreUnderTest) -> None:
        """A store that does not answer raises Transient within the deadline, and nothing is half counted."""
        law = "law 7"
        store.plant_all((*PEOPLE.subject, *PEOPLE.bystanders))
        before = dict(store.raw())
        targets = self._erasure(store, EVERY_PROJECT, SUBJECT, PEOPLE.subject).find()
        erasure = self._erasure(store, EVERY_PROJECT, SUBJECT, PEOPLE.subject, patience=self.patience)
        with store.unreachable():
            for call in self._calls(store, erasure, targets):
                began = time.monotonic()
                error = _error_of(call)
                took = time.monotonic() - began
                _holds(isinstance(error, Transient), law, "a store that fails raises Transient")
                _holds(took <= self.patience.total_seconds(), law, "the call is back before its deadline")
        _holds(dict(store.raw()) == before, law, "a failed call changes nothing")
        _complete(erasure.run(), len(PEOPLE.subject), law)
        _holds(len(store.raw()) == len(PEOPLE.bystanders), law, "a full run afterwards erases all")

    def test_law_08_a_late_writer_is_refused_or_found(self, store: StoreUnderTest) -> None:
        """A writer that began before the revocation is refused, or what it wrote is found by verify."""
        law = "law 8"
        store.plant_all((*PEOPLE.subject, *PEOPLE.bystanders))
        selector = Selector(kind=SelectorKind.SOURCE, value=PEOPLE.passport.source)
        erasure = self._erasure(store, S1, selector, (PEOPLE.passport,))
        erasure.revoke()
        targets = erasure.find()
        late = replace(PEOPLE.passport, key="written while the erase was on its way")
        accepted = store.late_write(late, PLANTED)
        erasure.erase(targets)
        late_again = replace(PEOPLE.passport, key="written when all was over")
        accepted_again = store.late_write(late_again, PLANTED)
        _holds(accepted or not store.readable(late), law, "what was refused is not readable")
        _holds(accepted_again or not store.readable(late_again), law, "what was refused is not readable")
        written = accepted + accepted_again
        remaining = sum(seen.remaining for seen in erasure.verify(targets))
        _holds(remaining >= written, law, "verify finds every late write that was accepted")
        _holds(remaining == 0 or written > 0, law, "verify finds nothing where all late writes were refused")
        again = self._erasure(store, S1, selector, (PEOPLE.passport,)).run()
        _holds((again.remaining, again.inconclusive) == (0, False), law, "another round erases what was written late")
        _holds(all(map(store.readable, PEOPLE.bystanders)), law, "bystanders are still readable")

    def test_law_09_a_lie_is_caught_by_verify(self, store: StoreUnderTest) -> None:
        """Verify sees what stays when erase answers success without erasing."""
        law = "law 9"
        store.plant_all((*PEOPLE.subject, *PEOPLE.bystanders))
        selector = Selector(kind=SelectorKind.SOURCE, value=PEOPLE.passport.source)
        for lie in (answer_without_erasing(store.adapter), store.lie()):
            erasure = self._erasure(store, S1, selector, (PEOPLE.passport,))
            erasure.revoke()
            targets = erasure.find()
            with lie:
                erasure.erase(targets)
                seen = erasure.verify(targets)
            _holds(sum(s.remaining for s in seen) > 0, law, "verify goes by a road of its own and sees what is left")

    def test_law_12_nothing_personal_is_told(self, store: StoreUnderTest) -> None:
        """No log line, error or answer holds a text, the user's name or the selector's value."""
        law = "law 12"
        who = Scope(tenant="t-1", user="anna.karenina-4711", project="p-1")
        records = [
            _record(who, "passport-of-anna", "f-7"),
            _record(who, "nut-allergy", "f-8", text="Walnuts, Q7654321."),
        ]
        store.plant_all((*records, *PEOPLE.bystanders))
        told: list[str] = []
        for scope, selector, known in (
            (who, Selector(kind=SelectorKind.KEY, value="passport-of-anna"), records[:1]),
            (who, SUBJECT, records),
        ):
            erasure = self._erasure(store, scope, selector, known, patience=self.patience)
            targets = erasure.find()
            with store.unreachable():
                errors = [_error_of(call) for call in self._calls(store, erasure, targets)]
            told += ["".join(traceback.format_exception(e)) + repr(e) + repr(vars(e)) for e in errors if e]
            told += map(repr, (*erasure.revoke(), *targets, *erasure.erase(targets), *erasure.verify(targets)))
            told += [repr(store.adapter.find([erasure.order(known=erasure.known)]))]
        told += store.log()
        secrets = (who.user, "P1234567", "Q7654321", *(r.text for r in records), *(r.key for r in records))
        leaks = sum(secret in line for secret in secrets for line in told)
        _holds(leaks == 0, law, "logs, errors and answers hold nothing personal")

    def _erasure(
        self,
        store: StoreUnderTest,
        scope: Scope,
        selector: Selector,
        known: Sequence[Record],
        *,
        patience: timedelta = timedelta(seconds=20),
    ) -> Erasure:
        # A source finds in its own revoke what a derived store is told.
        source = isinstance(store.adapter, SourceAdapter)
        facts = () if source else tuple(record.fact for record in known)
        return Erasure(
            adapter=store.adapter, scope=scope, selector=selector, known=facts, patience=patience, now=store.now
        )

    def _calls(
        self, store: StoreUnderTest, erasure: Erasure, targets: Sequence[Target]
    ) -> Iterator[Callable[[], object]]:
        """Give each method of the adapter with an order made when it is called."""
        adapter = store.adapter
        yield lambda: adapter.find([erasure.order(known=erasure.known)])
        yield lambda: adapter.erase([erasure.order(targets=tuple(targets))])
        yield lambda: adapter.verify([erasure.order(targets=tuple(targets), known=erasure.known)])
        if isinstance(adapter, SourceAdapter):
            revoke = adapter.revoke
            yield lambda: revoke([erasure.order()])


def _holds(condition: bool, law: str, what: str) -> None:  # noqa: FBT001 - a condition is what it is about
    # Not `assert`: pytest would write out what was compared, and that is what was stored.
    if not condition:
        raise AssertionError(f"{law} is broken: {what}")


def _plant(store: StoreUnderTest, record: Record) -> frozenset[str]:
    before = store.raw().keys()
    store.plant(record)
    return frozenset(store.raw().keys() - before)


def _without(raw: Mapping[str, bytes], handles: frozenset[str] | set[str]) -> tuple[dict[str, bytes], set[str]]:
    """Give what stays and which handles go."""
    return {handle: bytes_ for handle, bytes_ in raw.items() if handle not in handles}, set(handles & raw.keys())


def _complete(outcome: Outcome, expected: int, law: str) -> None:
    _holds(len(outcome.targets) == expected, law, "find gives exactly what is to go")
    _holds((outcome.erased, outcome.already_absent, outcome.extra) == (expected, 0, 0), law, "the counts are exact")
    _holds((outcome.remaining, outcome.inconclusive) == (0, False), law, "verify is clean after an erase")


def _clean(answers: Sequence[Seen]) -> bool:
    return all((answer.remaining, answer.inconclusive) == (0, False) for answer in answers)


def _erase(store: StoreUnderTest, orders: Sequence[EraseOrder], law: str) -> Sequence[Erased]:
    """Erase, and hold the counts of each answer against its order as the engine does."""
    answers = store.adapter.erase(orders)
    _holds(len(answers) == len(orders), law, "each order has one answer")
    for order, answer in zip(orders, answers, strict=True):
        done = answer.erased + answer.already_absent + len(answer.windows)
        _holds(done == len(order.targets) + answer.extra, law, "the counts of an answer add up")
    return answers


def _refused(make: Callable[[], object], law: str) -> None:
    error = _error_of(make)
    _holds(isinstance(error, InvalidRequest) and isinstance(error, ValueError), law, "an empty selection is refused")


def _error_of(call: Callable[[], object]) -> Exception | None:
    try:
        call()
    except Exception as error:  # noqa: BLE001 - which error it is, is what a law is about
        return error
    return None
