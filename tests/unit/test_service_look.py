"""Looking at bytes: what each sight of a scan comes to, with a store and a scanner that answer as they are told."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast
from uuid import UUID, uuid4

import pytest

from orchestrator import EraseOrder, Fingerprint, Residual, Scope, Seen, Selector, SelectorKind, Transient
from orchestrator.domain.contract import Reach, Scrubbed, ScrubReport
from orchestrator.domain.ports import Ledger, Wanted
from orchestrator.scan.formats import Unscannable
from orchestrator.scan.report import Doubt, FileReport, Report
from orchestrator.service import look
from orchestrator.service.look import Bytes, Looked

NOW = datetime(2026, 11, 30, tzinfo=UTC)
PRINTS = [Fingerprint(n, f"{n:064x}") for n in range(4)]
FREED = frozenset({Residual.FILE_SYSTEM})


def order(job: UUID) -> EraseOrder:
    return EraseOrder(
        job=job,
        unit=uuid4(),
        key="unit",
        scope=Scope(tenant="tenant-a", user="anna"),
        selector=Selector(kind=SelectorKind.SUBJECT),
        deadline=NOW + timedelta(minutes=1),
    )


@dataclass
class Clock:
    at: datetime = NOW

    def now(self) -> datetime:
        self.at += timedelta(seconds=20)
        return self.at


@dataclass
class Book:
    """The ledger's part in it."""

    wants: dict[UUID, Wanted]
    free_after: int = 0
    asked: int = 0
    closed: list[tuple[str, Scrubbed, bool]] = field(default_factory=list)
    lease_ended: bool = False

    def wanted(self, jobs: Sequence[UUID]) -> Mapping[UUID, Wanted]:
        return {job: self.wants[job] for job in jobs}

    def open_scrub(self, store: str, owner: str) -> str | None:
        assert (store, owner) == ("files", "me")
        self.asked += 1
        return "run" if self.asked > self.free_after else None

    def close_scrub(self, run: str, outcome: Scrubbed, *, control_found: bool) -> bool:
        self.closed.append((run, outcome, control_found))
        return not self.lease_ended


@dataclass
class Store:
    outcome: Scrubbed = Scrubbed.CLEAN
    residuals: frozenset[Residual] = FREED
    broken: bool = False
    file_group: str = "files"
    did: list[str] = field(default_factory=list)

    def scrub(self) -> ScrubReport:
        self.did.append("scrub")
        if self.broken:
            raise Transient
        return ScrubReport(outcome=self.outcome, residuals=self.residuals)

    @contextmanager
    def live_files(self) -> Iterator[Sequence[Path]]:
        self.did.append("still")
        yield [Path("file")]
        self.did.append("moving")

    def live_values(self) -> Iterable[bytes]:
        return [b"alive"]

    def plant(self, marker: bytes) -> None:
        assert len(marker) == 32
        self.did.append("plant")

    def uproot(self, marker: bytes) -> None:
        del marker
        self.did.append("uproot")


@dataclass
class Scanner:
    """Sees what lies in the file: fingerprints; those that live records hold as well are `alive`."""

    lies: frozenset[Fingerprint] = frozenset()
    alive: frozenset[Fingerprint] = frozenset()
    doubt: Doubt | None = None
    dark: Unscannable | None = None
    control: bool = True
    scans: list[Mapping[str, Collection[Fingerprint]]] = field(default_factory=list)

    def files(self, paths: Sequence[Path], wanted: Mapping[str, Collection[Fingerprint]], marker: bytes) -> Report:
        assert len(marker) == 32
        self.scans.append(wanted)
        hits = {owner: n for owner, prints in wanted.items() if (n := len(self.lies.intersection(prints)))}
        file = FileReport(path=paths[0], named=paths[0], hits=hits, doubt=self.doubt, unscannable=self.dark)
        return Report(files=(file,), control_found=self.control)

    def held(
        self, values: Iterable[bytes], wanted: Mapping[str, Collection[Fingerprint]]
    ) -> Mapping[str, frozenset[Fingerprint]]:
        assert list(values) == [b"alive"]
        return {owner: self.alive.intersection(prints) for owner, prints in wanted.items()}


def verify(
    book: Book, store: Store, scanner: Scanner, jobs: Sequence[UUID], answers: Sequence[object] | None = None
) -> Sequence[object]:
    said = [Seen()] * len(jobs) if answers is None else answers
    looking = Bytes(stores={"memory": store}, scanner=scanner, ledger=cast("Ledger", book), clock=Clock())
    return looking.verify("memory", "me", lambda _orders: said, [order(job) for job in jobs])


@pytest.mark.parametrize(
    ("scanner", "unprobed", "expected"),
    [
        (Scanner(), False, Looked(seen=Seen(), reach=Reach.PHYSICAL, run="run", residuals=FREED)),
        (Scanner(), True, Looked(seen=Seen(), run="run", residuals=FREED | {Residual.NOT_PROBEABLE})),
        (Scanner(lies=frozenset(PRINTS[:1])), False, Looked(seen=Seen(remaining=1))),
        (Scanner(doubt=Doubt.CHANGED), False, Looked(seen=Seen(inconclusive=True))),
        (Scanner(control=False), False, Looked(seen=Seen(inconclusive=True))),
        (
            Scanner(dark=next(iter(Unscannable))),
            False,
            Looked(seen=Seen(), run="run", residuals=FREED | {Residual.NOT_SCANNABLE}),
        ),
        (
            Scanner(lies=frozenset(PRINTS[:1]), alive=frozenset(PRINTS[:1])),
            False,
            Looked(seen=Seen(), run="run", residuals=FREED | {Residual.SHARED_TEXT}),
        ),
        # Others hold some of its bytes, and what they do not hold is there as well.
        (Scanner(lies=frozenset(PRINTS[:2]), alive=frozenset(PRINTS[:1])), False, Looked(seen=Seen(remaining=1))),
    ],
)
def test_each_sight_says_no_more_than_was_seen(*, scanner: Scanner, unprobed: bool, expected: Looked) -> None:
    job = uuid4()
    book, store = Book({job: Wanted(prints=frozenset(PRINTS[:2]), unprobed=unprobed)}), Store()
    assert verify(book, store, scanner, [job]) == [expected]
    assert book.closed == [("run", Scrubbed.CLEAN, scanner.control)]
    assert store.did == ["plant", "scrub", "still", "moving", "uproot"]


def test_one_scrub_and_one_scan_serve_all_jobs_of_a_batch_and_each_is_told_its_own() -> None:
    here, gone = uuid4(), uuid4()
    book = Book({here: Wanted(prints=frozenset(PRINTS[:2])), gone: Wanted(prints=frozenset(PRINTS[2:]))})
    scanner, store = Scanner(lies=frozenset(PRINTS[:1])), Store()
    told = verify(book, store, scanner, [here, gone, here])
    physical = Looked(seen=Seen(), reach=Reach.PHYSICAL, run="run", residuals=FREED)
    assert told == [Looked(seen=Seen(remaining=1)), physical, Looked(seen=Seen(remaining=1))]
    assert (store.did.count("scrub"), len(scanner.scans)) == (1, 1)


def test_only_what_the_adapter_has_not_seen_is_looked_for() -> None:
    left, dark, gone = uuid4(), uuid4(), uuid4()
    book = Book({gone: Wanted(prints=frozenset(PRINTS))})
    answers = [Seen(remaining=2), Seen(inconclusive=True), Seen()]
    told = verify(book, Store(), Scanner(), [left, dark, gone], answers)
    assert told[:2] == answers[:2]
    assert cast("Looked", told[2]).reach is Reach.PHYSICAL


def test_without_fingerprints_nothing_is_scrubbed_and_nothing_is_called_physical() -> None:
    nothing, short = uuid4(), uuid4()
    book, store = Book({nothing: Wanted(), short: Wanted(unprobed=True)}), Store()
    told = verify(book, store, Scanner(), [nothing, short])
    assert told == [Looked(seen=Seen()), Looked(seen=Seen(), residuals=frozenset({Residual.NOT_PROBEABLE}))]
    assert store.did == []


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (Scrubbed.BUSY, Looked(seen=Seen(inconclusive=True))),
        (Scrubbed.FAILED, Looked(seen=Seen(inconclusive=True))),
        (Scrubbed.UNSUPPORTED, Looked(seen=Seen(), run="run", residuals=frozenset({Residual.DEAD_TUPLES}))),
    ],
)
def test_scrub_that_did_not_clean_is_never_followed_by_a_claim(outcome: Scrubbed, expected: Looked) -> None:
    job = uuid4()
    book, scanner = Book({job: Wanted(prints=frozenset(PRINTS))}), Scanner()
    store = Store(outcome=outcome, residuals=frozenset({Residual.DEAD_TUPLES}))
    assert verify(book, store, scanner, [job]) == [expected]
    assert scanner.scans == []
    assert book.closed == [("run", outcome, False)]
    assert store.did == ["plant", "scrub", "uproot"]


def test_scrub_that_breaks_is_written_down_as_failed_and_its_marker_taken_away() -> None:
    job = uuid4()
    book, store = Book({job: Wanted(prints=frozenset(PRINTS))}), Store(broken=True)
    with pytest.raises(Transient):
        verify(book, store, Scanner(), [job])
    assert book.closed == [("run", Scrubbed.FAILED, False)]
    assert store.did[-1] == "uproot"


@pytest.mark.parametrize(("free_after", "conclusive"), [(2, True), (99, False)])
def test_another_scrub_of_the_same_files_is_waited_for_until_the_deadline(
    monkeypatch: pytest.MonkeyPatch, free_after: int, *, conclusive: bool
) -> None:
    monkeypatch.setattr(look, "POLL", 0)
    job = uuid4()
    book, store = Book({job: Wanted(prints=frozenset(PRINTS))}, free_after=free_after), Store()
    (told,) = verify(book, store, Scanner(), [job])
    assert cast("Any", told).seen == Seen(inconclusive=not conclusive)
    assert bool(store.did) is conclusive


def test_who_slept_past_the_lease_of_its_scrub_claims_nothing() -> None:
    job = uuid4()
    book = Book({job: Wanted(prints=frozenset(PRINTS))}, lease_ended=True)
    assert verify(book, Store(), Scanner(), [job]) == [Looked(seen=Seen(inconclusive=True))]


def test_answer_that_does_not_fit_its_orders_is_handed_on_as_it_is() -> None:
    assert verify(Book({}), Store(), Scanner(), [uuid4()], []) == []
