"""Mutants of a store whose bytes are looked at, each of which could call something clean that is not."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import sqlalchemy as sa

from orchestrator import Erased, Revocation, Scrubbed, ScrubReport
from tests.contract.mutation import Orders, override
from tests.contract.stores import MemoryUnderTest

CLEAN = ScrubReport(outcome=Scrubbed.CLEAN)


def scrubs_nothing(store: MemoryUnderTest) -> None:
    """Delete as SQLite does by default, and call the file clean without rewriting it."""
    engine = store.adapter._engine

    def lax(driver: sqlite3.Connection, _record: object) -> None:
        driver.execute("PRAGMA secure_delete = OFF")

    sa.event.listen(engine, "connect", lax)
    engine.dispose()  # those that are open overwrite what they delete
    override(store.adapter, scrub=lambda: CLEAN)


def clean_while_read(store: MemoryUnderTest) -> None:
    """Rewrite the file, and take the log that a reader keeps for an empty one."""
    scrub = store.adapter.scrub

    def mutant() -> ScrubReport:
        report = scrub()
        return CLEAN if report.outcome is Scrubbed.BUSY else report

    override(store.adapter, scrub=mutant)


def marker_not_stored(store: MemoryUnderTest) -> None:
    """Take a marker and store none."""
    override(store.adapter, plant=lambda _: None)


def marker_stays(store: MemoryUnderTest) -> None:
    """Leave a marker where it was planted."""
    override(store.adapter, uproot=lambda _: None)


def marker_of_the_dead_stays(store: MemoryUnderTest) -> None:
    """Take away the marker of one's own scan alone: those of scans that died stay for ever."""
    plant, planted = store.adapter.plant, list[bytes]()

    def mutant(marker: bytes) -> None:
        plant(marker)
        with closing(store.sql()) as connection:
            connection.executemany("INSERT INTO scan_markers VALUES (?)", [(old.decode(),) for old in planted])
        planted.append(marker)

    override(store.adapter, plant=mutant)


def keeps_the_log_back(store: MemoryUnderTest) -> None:
    """Name the database and not its log."""
    _naming(store, lambda files: [file for file in files if file == store.file])


def keeps_the_database_back(store: MemoryUnderTest) -> None:
    """Name the log and not the database."""
    _naming(store, lambda files: [file for file in files if file != store.file])


def names_what_is_not_there(store: MemoryUnderTest) -> None:
    """Name a log that there could be, whether there is one or not."""
    _naming(store, lambda files: [*files, store.file.with_name("memory.db-journal")])


def scrubs_a_neighbour_away(store: MemoryUnderTest) -> None:
    """Rewrite the file without what was deleted, and without one tenant's records more."""
    erase, scrub, erased = store.adapter.erase, store.adapter.scrub, list[Erased]()

    def erasing(orders: Orders) -> Sequence[Erased]:
        answers = erase(orders)
        erased.extend(answers)
        return answers

    def mutant() -> ScrubReport:
        with closing(store.sql()) as connection:
            if erased:
                connection.execute("DELETE FROM facts WHERE tenant = 't-2'")
        return scrub()

    override(store.adapter, erase=erasing, scrub=mutant)


def explains_it_away(store: MemoryUnderTest) -> None:
    """Give what was erased as alive: bytes of it that stay in a file would be somebody else's."""
    revoke, values, known = store.adapter.revoke, store.adapter.live_values, list[bytes]()

    def revoking(orders: Orders) -> Sequence[Revocation]:
        known.extend(values())
        return revoke(orders)

    def mutant() -> Iterable[bytes]:
        return [*values(), *known]

    override(store.adapter, revoke=revoking, live_values=mutant)


def _naming(store: MemoryUnderTest, chosen: Callable[[Sequence[Path]], Sequence[Path]]) -> None:
    live_files = store.adapter.live_files

    @contextmanager
    def mutant() -> Iterator[Sequence[Path]]:
        with live_files() as files:
            yield chosen(files)

    override(store.adapter, live_files=mutant)
