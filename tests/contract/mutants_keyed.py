"""Mutants of events and candidates: what can go wrong with a record that stands in a log and in what holds by it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from orchestrator import Erased, Revocation, Seen
from tests.contract.keyed import CandidatesUnderTest, EventsUnderTest
from tests.contract.mutants_rows import Rows, instead_of_erasing
from tests.contract.mutation import Orders, opened, override

EVENT_ROWS: Final = Rows("preference_events", "handle", ("user_id", "handle"))
CANDIDATE_ROWS: Final = Rows("fact_candidates", "handle", ("user_id", "handle"))


def what_holds_stays(store: EventsUnderTest) -> None:
    """Erase the events, and leave what holds by them."""
    _with_rows_again(store, "preferences")


def value_stays(store: EventsUnderTest) -> None:
    """Mark what is revoked, and leave the text in what holds."""
    _not_blanked(store, "preferences")


def candidate_stays_open(store: CandidatesUnderTest) -> None:
    """Name what is revoked, and leave it to be decided."""
    _not_blanked(store, "fact_candidates")


def candidates_stay(store: CandidatesUnderTest) -> None:
    """Blank candidates, and answer that they are erased."""
    instead_of_erasing(store, "UPDATE fact_candidates SET value = NULL WHERE tenant = ? AND handle = ?")


def mark_not_written(store: EventsUnderTest) -> None:
    """Leave nothing that says that there was an event."""
    erase = store.adapter.erase

    def mutant(orders: Orders) -> Sequence[Erased]:
        answers: Sequence[Erased] = erase(orders)
        with opened(store.file) as connection:
            connection.execute("DELETE FROM erased_events")
        return answers

    override(store.adapter, erase=mutant)


def looks_at_the_log_alone(store: EventsUnderTest) -> None:
    """Look for events, and not for what holds by them."""
    verify = store.adapter.verify

    def mutant(orders: Orders) -> Sequence[Seen]:
        with opened(store.file) as connection:
            (events,) = connection.execute("SELECT count(*) FROM preference_events").fetchone()
        return [Seen(remaining=seen.remaining if events else 0) for seen in verify(orders)]

    override(store.adapter, verify=mutant)


def _not_blanked(store: EventsUnderTest | CandidatesUnderTest, table: str) -> None:
    """Revoke, and put the rows of a table back as they were."""
    revoke = store.adapter.revoke

    def mutant(orders: Orders) -> Sequence[Revocation]:
        rows = store.run(f"SELECT * FROM {table}") if table in store.tables() else ()  # noqa: S608 - names of ours
        answers: Sequence[Revocation] = revoke(orders)
        _put(store, table, rows)
        return answers

    override(store.adapter, revoke=mutant)


def _with_rows_again(store: EventsUnderTest, table: str) -> None:
    erase = store.adapter.erase

    def mutant(orders: Orders) -> Sequence[Erased]:
        rows = store.run(f"SELECT * FROM {table}")  # noqa: S608 - names of ours
        answers: Sequence[Erased] = erase(orders)
        _put(store, table, rows)
        return answers

    override(store.adapter, erase=mutant)


def _put(store: EventsUnderTest | CandidatesUnderTest, table: str, rows: Sequence[tuple[object, ...]]) -> None:
    with opened(store.file) as connection:
        for row in rows:
            marks = ", ".join("?" * len(row))
            connection.execute(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", row)  # noqa: S608 - as above
