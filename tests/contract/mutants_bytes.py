"""Mutants of a store whose bytes are looked at, each of which could call something clean that is not."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa

from orchestrator import Erased, Scrubbed, ScrubReport
from tests.contract.mutation import FilesUnderTest, Mutation, Orders, opened, override

CLEAN = ScrubReport(outcome=Scrubbed.CLEAN)


def scrubs_nothing(store: FilesUnderTest) -> None:
    """Delete as SQLite does by default, and call the file clean without rewriting it."""
    engine = store.adapter._engine

    def lax(driver: sqlite3.Connection, _record: object) -> None:
        driver.execute("PRAGMA secure_delete = OFF")

    sa.event.listen(engine, "connect", lax)
    engine.dispose()  # those that are open overwrite what they delete
    override(store.adapter, scrub=lambda: CLEAN)


def clean_while_read(store: FilesUnderTest) -> None:
    """Rewrite the file, and take the log that a reader keeps for an empty one."""
    scrub = store.adapter.scrub

    def mutant() -> ScrubReport:
        report: ScrubReport = scrub()
        return CLEAN if report.outcome is Scrubbed.BUSY else report

    override(store.adapter, scrub=mutant)


def marker_not_stored(store: FilesUnderTest) -> None:
    """Take a marker and store none."""
    override(store.adapter, plant=lambda _: None)


def marker_stays(store: FilesUnderTest) -> None:
    """Leave a marker where it was planted."""
    override(store.adapter, uproot=lambda _: None)


def marker_of_the_dead_stays(store: FilesUnderTest) -> None:
    """Take away the marker of one's own scan alone: those of scans that died stay for ever."""
    plant, planted = store.adapter.plant, list[bytes]()

    def mutant(marker: bytes) -> None:
        plant(marker)
        with opened(store.file) as connection:
            connection.executemany("INSERT INTO scan_markers VALUES (?)", [(old.decode(),) for old in planted])
        planted.append(marker)

    override(store.adapter, plant=mutant)


def names_one_file(store: FilesUnderTest) -> None:
    """Name the database and not its log; of copies, the marker's file and none of theirs."""
    _naming(store, lambda files: [file for file in files if file == store.file])


def keeps_one_file_back(store: FilesUnderTest) -> None:
    """Name the log and not the database; of copies, all but the marker's file."""
    _naming(store, lambda files: [file for file in files if file != store.file])


def names_what_is_not_there(store: FilesUnderTest) -> None:
    """Name a log that there could be, whether there is one or not."""
    _naming(store, lambda files: [*files, Path(f"{store.file}-journal")])


def scrubs_a_neighbour_away(store: FilesUnderTest, lose: Mutation) -> None:
    """Rewrite the file without what was deleted, and without one tenant's records more: `lose` takes those."""
    erase, scrub, erased = store.adapter.erase, store.adapter.scrub, list[Erased]()

    def erasing(orders: Orders) -> Sequence[Erased]:
        answers: Sequence[Erased] = erase(orders)
        erased.extend(answers)
        return answers

    def mutant() -> ScrubReport:
        if erased:
            lose(store)
        report: ScrubReport = scrub()
        return report

    override(store.adapter, erase=erasing, scrub=mutant)


def explains_it_away(store: FilesUnderTest) -> None:
    """Give what lived at the look before as alive: bytes of it that stay in a file would be somebody else's."""
    values, known = store.adapter.live_values, list[bytes]()

    def note(files: Sequence[Path]) -> Sequence[Path]:
        known.extend(values())
        return files

    def mutant() -> Iterable[bytes]:
        return [*values(), *known]

    _naming(store, note)
    override(store.adapter, live_values=mutant)


def tells_nothing_alive(store: FilesUnderTest) -> None:
    """Give no live values: bytes of theirs would be taken for what was erased."""
    override(store.adapter, live_values=list)


def _naming(store: FilesUnderTest, chosen: Callable[[Sequence[Path]], Sequence[Path]]) -> None:
    live_files = store.adapter.live_files

    @contextmanager
    def mutant() -> Iterator[Sequence[Path]]:
        with live_files() as files:
            yield chosen(files)

    override(store.adapter, live_files=mutant)
