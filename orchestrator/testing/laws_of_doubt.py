"""Laws 8, 9 and 12: late writers, lies, and what is told."""

from __future__ import annotations

import traceback
from dataclasses import replace

from orchestrator.domain.scope import Scope
from orchestrator.domain.selector import Selector, SelectorKind
from orchestrator.testing.people import PEOPLE, S1, SUBJECT, record_of
from orchestrator.testing.proof import (
    Laws,
    calls_of,
    erasure_of,
    error_of,
    holds,
)
from orchestrator.testing.store import PLANTED, StoreUnderTest, answer_without_erasing


class LawsOfDoubt(Laws):
    """Laws 8, 9 and 12: late writers, lies, and what is told."""

    def test_law_08_a_late_writer_is_refused_or_found(self, store: StoreUnderTest) -> None:
        """A writer that began before the revocation is refused, or what it wrote is found by verify."""
        law = "law 8"
        store.plant_all((*PEOPLE.subject, *PEOPLE.bystanders))
        selector = Selector(kind=SelectorKind.SOURCE, value=PEOPLE.passport.source)
        erasure = erasure_of(store, S1, selector, (PEOPLE.passport,))
        erasure.revoke()
        targets = erasure.find()
        late = replace(PEOPLE.passport, key="written while the erase was on its way")
        accepted = store.late_write(late, PLANTED)
        erasure.erase(targets)
        late_again = replace(PEOPLE.passport, key="written when all was over")
        accepted_again = store.late_write(late_again, PLANTED)
        holds(accepted or not store.readable(late), law, "what was refused is not readable")
        holds(accepted_again or not store.readable(late_again), law, "what was refused is not readable")
        written = accepted + accepted_again
        remaining = sum(seen.remaining for seen in erasure.verify(targets))
        holds(remaining >= written, law, "verify finds every late write that was accepted")
        holds(remaining == 0 or written > 0, law, "verify finds nothing where all late writes were refused")
        again = erasure_of(store, S1, selector, (PEOPLE.passport,)).run()
        holds((again.remaining, again.inconclusive) == (0, False), law, "another round erases what was written late")
        holds(all(map(store.readable, PEOPLE.bystanders)), law, "bystanders are still readable")

    def test_law_09_a_lie_is_caught_by_verify(self, store: StoreUnderTest) -> None:
        """Verify sees what stays when erase answers success without erasing."""
        law = "law 9"
        store.plant_all((*PEOPLE.subject, *PEOPLE.bystanders))
        selector = Selector(kind=SelectorKind.SOURCE, value=PEOPLE.passport.source)
        for lie in (answer_without_erasing(store.adapter), store.lie()):
            erasure = erasure_of(store, S1, selector, (PEOPLE.passport,))
            erasure.revoke()
            targets = erasure.find()
            with lie:
                erasure.erase(targets)
                seen = erasure.verify(targets)
            holds(sum(s.remaining for s in seen) > 0, law, "verify goes by a road of its own and sees what is left")

    def test_law_12_nothing_personal_is_told(self, store: StoreUnderTest) -> None:
        """No log line, error or answer holds a text, the user's name or the selector's value."""
        law = "law 12"
        who = Scope(tenant="t-1", user="anna.karenina-4711", project="p-1")
        records = [
            record_of(who, "passport-of-anna", "f-7"),
            record_of(who, "nut-allergy", "f-8", text="Walnuts, Q7654321."),
        ]
        store.plant_all((*records, *PEOPLE.bystanders))
        told: list[str] = []
        for scope, selector, known in (
            (who, Selector(kind=SelectorKind.KEY, value="passport-of-anna"), records[:1]),
            (who, SUBJECT, records),
        ):
            erasure = erasure_of(store, scope, selector, known, patience=self.patience)
            targets = erasure.find()
            with store.unreachable():
                errors = [error_of(call) for call in calls_of(store, erasure, targets)]
            told += ["".join(traceback.format_exception(e)) + repr(e) + repr(vars(e)) for e in errors if e]
            told += map(repr, (*erasure.revoke(), *targets, *erasure.erase(targets), *erasure.verify(targets)))
            told += [repr(store.adapter.find([erasure.order(known=erasure.known)]))]
        told += store.log()
        secrets = (who.user, "P1234567", "Q7654321", *(r.text for r in records), *(r.key for r in records))
        leaks = sum(secret in line for secret in secrets for line in told)
        holds(leaks == 0, law, "logs, errors and answers hold nothing personal")
