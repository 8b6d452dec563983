"""Law 11: what was erased lies in none of a store's files, and a look at them proves that it sees.

Principles: the suite looks as the engine does, in a process of its own, because a database
that is open here loses its locks when its file is opened beside it. The keys are made for one
law and thrown away. A scan that finds nothing counts only where it finds what has to be there.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import timedelta
from hashlib import sha256
from typing import Final

from orchestrator.domain.abilities import PhysicalStore
from orchestrator.domain.contract import Fingerprint, Scrubbed
from orchestrator.domain.scope import Scope
from orchestrator.gate.keyring import Keyring
from orchestrator.scan.fingerprints import Fingerprinter
from orchestrator.scan.keys import Keys
from orchestrator.scan.process import ProcessScanner
from orchestrator.scan.report import Doubt, Report
from orchestrator.testing.people import EVERY_PROJECT, S1, SUBJECT, record_of
from orchestrator.testing.proof import Laws, complete, erasure_of, holds
from orchestrator.testing.store import Record, StoreUnderTest

LAW: Final = "law 11"
LENGTH: Final = 1000
"""Characters of each text: what is deleted takes up pages of its own, and is not written over by the next row."""
DIED: Final = "marker of a scan that died"
UPROOTED: Final = "marker that was uprooted"
LONGEST: Final = timedelta(minutes=1)
"""How long one scan may take: a machine that has much to do must break no law."""


def _of(scope: Scope, fact: str, number: int) -> Record:
    """Make a record whose text shares no 16 bytes with that of another number: a look for one sees no other."""
    words = (sha256(f"{number} {word}".encode()).hexdigest() for word in range(1 + LENGTH // 65))
    return record_of(scope, f"note-{number}", fact, text=" ".join(words)[:LENGTH])


GOING: Final = tuple(_of(replace(S1, project=f"p-{1 + n % 2}"), f"f-{n}", n) for n in range(4))
STAYING: Final = (
    _of(replace(S1, user="s-10"), "f-10", 10),  # the same prefix
    _of(replace(S1, user="S-1"), "f-11", 11),  # another case
    _of(replace(S1, tenant="t-2"), "f-0", 12),  # the same ids in another tenant
    _of(replace(S1, tenant="t-2"), "f-1", 13),
)


class LawsOfBytes(Laws):
    """Law 11: what was erased lies in none of a store's files, and a look at them proves that it sees."""

    def test_law_11_what_is_erased_leaves_the_files(self, store: StoreUnderTest) -> None:
        """After a job and a scrub a scan finds the marker and the neighbours, and nothing of what was erased."""
        store.plant_all(STAYING)
        died, marker = _marker(), _marker()
        adapter = _scrubbed(store, died)
        if adapter is None:
            return  # a store whose bytes cannot be looked at has nothing to show
        adapter.plant(marker)
        stays = dict(store.raw())
        store.plant_all(GOING)
        keys = Keys.derive(Keyring.create())
        by, scanner = Fingerprinter(keys), ProcessScanner(keys, LONGEST)
        texts = {record.key: by.of_text(record.text).rows for record in (*GOING, *STAYING)}
        going, staying = ({record.key for record in some} for some in (GOING, STAYING))

        report = _look(adapter, scanner, texts, marker)
        holds(report.control_found, LAW, "a scan finds the marker that was planted")
        holds(report.hits.keys() == texts.keys(), LAW, "a scan finds the values of all live records")

        complete(erasure_of(store, EVERY_PROJECT, SUBJECT, GOING).run(), len(GOING), LAW)
        holds(adapter.scrub().outcome is Scrubbed.CLEAN, LAW, "a scrub of a store that nobody uses is clean")
        report = _look(adapter, scanner, {**texts, DIED: by.of_bytes(died).rows}, marker)
        holds(report.control_found, LAW, "a scan finds the marker after a scrub")
        holds(report.hits.keys().isdisjoint(going), LAW, "nothing that was erased is found after a scrub")
        holds(DIED not in report.hits, LAW, "a plant takes away the marker of a scan that has died")
        holds(report.hits.keys() >= staying, LAW, "a scan finds the values of the neighbours after a scrub")
        holds(dict(store.raw()) == stays, LAW, "the neighbours are byte-identical after a scrub")
        holds(all(map(store.readable, STAYING)), LAW, "the neighbours are readable after a scrub")
        alive = {key for key, prints in scanner.held(adapter.live_values(), texts).items() if prints}
        holds(alive >= staying, LAW, "the live values are those of every live record")
        holds(alive.isdisjoint(going), LAW, "the live values are of nothing that was erased")

        adapter.uproot(marker)
        holds(adapter.scrub().outcome is Scrubbed.CLEAN, LAW, "a scrub of a store that nobody uses is clean")
        report = _look(adapter, scanner, {**texts, UPROOTED: by.of_bytes(marker).rows}, marker)
        holds(report.hits.keys() >= staying, LAW, "a scan without a marker sees what there is")
        holds(UPROOTED not in report.hits, LAW, "a marker that was uprooted is not found after a scrub")

    def test_law_11_a_reader_keeps_a_scrub_from_being_clean(self, store: StoreUnderTest) -> None:
        """While somebody reads a scrub is busy: what was erased may still be there for the reader."""
        store.plant_all(STAYING)
        adapter = _scrubbed(store, _marker())
        reading = None if adapter is None else store.reading()
        if adapter is None or reading is None:
            return  # no scrub is kept from anything
        stays = dict(store.raw())
        store.plant_all(GOING)
        complete(erasure_of(store, EVERY_PROJECT, SUBJECT, GOING).run(), len(GOING), LAW)
        with reading:
            holds(adapter.scrub().outcome is Scrubbed.BUSY, LAW, "a scrub of a store that somebody reads is busy")
        holds(adapter.scrub().outcome is Scrubbed.CLEAN, LAW, "a scrub is clean when the reader has gone")
        holds(dict(store.raw()) == stays, LAW, "the neighbours are byte-identical after a scrub")


def _marker() -> bytes:
    return secrets.token_hex(16).encode()


def _scrubbed(store: StoreUnderTest, marker: bytes) -> PhysicalStore | None:
    """Plant a marker and scrub, in the order of the engine; None for a store of which no bytes are looked at.

    What was planted before lies where a scrub puts it, what is planted afterwards may lie elsewhere:
    a file that is kept back is missed at one of the two.
    """
    adapter = store.adapter
    if not isinstance(adapter, PhysicalStore):
        return None
    adapter.plant(marker)
    report = adapter.scrub()
    if report.outcome is Scrubbed.UNSUPPORTED:
        holds(bool(report.residuals), LAW, "a store that cannot be scrubbed names what stays")
        adapter.uproot(marker)
        return None
    holds(report.outcome is Scrubbed.CLEAN, LAW, "a scrub of a store that nobody uses is clean")
    return adapter


def _look(
    adapter: PhysicalStore, scanner: ProcessScanner, wanted: Mapping[str, Collection[Fingerprint]], marker: bytes
) -> Report:
    """Scan the files of a store while they are kept still."""
    with adapter.live_files() as files:
        holds(all(file.exists() for file in files), LAW, "every file that the store names is there")
        report = scanner.files(files, wanted, marker)
    doubts = {file.doubt for file in report.files}
    holds(doubts <= {None, Doubt.NO_CONTROL}, LAW, "the files can be read, and hold still meanwhile")
    return report
