"""Looking at bytes: one scrub and one scan of a store's files for every job of a verify batch.

Principles: the scrub starts after the units are due, which is after the job's last erase and
its quiet time, so no look rests on one that started too early. A scan proves something only
if it has seen a marker that was planted for it. What cannot be looked for is never called
clean: it is a residual code, and the reach stays logical.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol
from uuid import UUID

from orchestrator.domain.abilities import PhysicalStore
from orchestrator.domain.codes import Residual
from orchestrator.domain.contract import EraseOrder, Fingerprint, Reach, Scrubbed, Seen
from orchestrator.domain.ports import Clock, Ledger, Wanted
from orchestrator.scan.report import Report, Verdict

POLL: Final = 0.05
"""Seconds between two looks at whether another scrub of the same files has ended."""


class Scanner(Protocol):
    """The scan of files and values, which knows the keys of the fingerprints."""

    def files(self, paths: Sequence[Path], wanted: Mapping[str, Collection[Fingerprint]], marker: bytes) -> Report:
        """Look once through files for what each owner wants, and for the marker."""

    def held(
        self, values: Iterable[bytes], wanted: Mapping[str, Collection[Fingerprint]]
    ) -> Mapping[str, frozenset[Fingerprint]]:
        """Give for each owner which of its fingerprints lie in live values."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Looked:
    """What a verify came to where the store's files were to be looked at as well."""

    seen: Seen
    reach: Reach = Reach.LOGICAL
    run: str | None = None
    residuals: frozenset[Residual] = frozenset()


@dataclass(frozen=True)
class _Sight:
    """What the scan has seen of a job; `shared`: others hold some of its bytes, which were left out."""

    verdict: Verdict
    shared: bool = False


@dataclass(frozen=True, kw_only=True)
class Bytes:
    """What looking at bytes takes: the stores that `verified` needs it of, by adapter name."""

    stores: Mapping[str, PhysicalStore]
    scanner: Scanner
    ledger: Ledger
    clock: Clock

    def verify(
        self,
        adapter: str,
        owner: str,
        call: Callable[[Sequence[EraseOrder]], Sequence[object]],
        orders: Sequence[EraseOrder],
    ) -> Sequence[object]:
        """Make the adapter's own look, then look at the bytes for the jobs of which it has seen nothing left."""
        seen = call(orders)
        if len(seen) != len(orders):
            return seen
        wanted = self.ledger.wanted(sorted({o.job for o, s in zip(orders, seen, strict=True) if s == Seen()}))
        told = {job: _unprobed(each) for job, each in wanted.items()}
        told |= self._look(self.stores[adapter], owner, {job: w for job, w in wanted.items() if w.prints}, orders[0])
        return [told[o.job] if s == Seen() else s for o, s in zip(orders, seen, strict=True)]

    def _look(
        self, store: PhysicalStore, owner: str, wanted: Mapping[UUID, Wanted], order: EraseOrder
    ) -> Mapping[UUID, Looked]:
        """Scrub and scan once for all of these jobs; one that cannot be told now is inconclusive."""
        if not wanted:
            return {}
        unclear = dict.fromkeys(wanted, Looked(seen=Seen(inconclusive=True)))
        run = self._begun(store, owner, order)
        if run is None:
            return unclear
        outcome, control, told = Scrubbed.FAILED, False, unclear
        marker = secrets.token_hex(16).encode()
        try:
            store.plant(marker)
            scrub = store.scrub()
            outcome = scrub.outcome
            if outcome is Scrubbed.UNSUPPORTED:
                told = dict.fromkeys(wanted, Looked(seen=Seen(), run=run, residuals=scrub.residuals))
            elif outcome is Scrubbed.CLEAN:
                sights, control = self._scan(store, wanted, marker)
                told = {job: _told(sight, wanted[job], run, scrub.residuals) for job, sight in sights.items()}
        finally:
            try:
                store.uproot(marker)
            finally:
                kept = self.ledger.close_scrub(run, outcome, control_found=control)
        # Whoever slept past the lease of the scrub cannot say what has happened to the files meanwhile.
        return told if kept else unclear

    def _begun(self, store: PhysicalStore, owner: str, order: EraseOrder) -> str | None:
        """Begin a scrub, after another one of the same files has ended; None where that takes too long."""
        while (run := self.ledger.open_scrub(store.file_group, owner)) is None:
            if self.clock.now() >= order.deadline:
                return None
            time.sleep(POLL)
        return run

    def _scan(
        self, store: PhysicalStore, wanted: Mapping[UUID, Wanted], marker: bytes
    ) -> tuple[Mapping[UUID, _Sight], bool]:
        """Give what was seen of each job, and whether the scan has proved that it sees."""
        prints = {str(job): each.prints for job, each in wanted.items()}
        with store.live_files() as files:
            report = self.scanner.files(files, prints, marker)
            sights = {job: _Sight(report.of(str(job))) for job in wanted}
            found = {str(job): prints[str(job)] for job, sight in sights.items() if sight.verdict is Verdict.FOUND}
            shared = self.scanner.held(store.live_values(), found) if found else {}
            if not any(shared.values()):
                return sights, report.control_found
            # What other live records hold explains nothing: look once more for the rest.
            rest = {owner: found[owner] - shared[owner] for owner in found}
            again = self.scanner.files(files, rest, marker)
        sights |= {UUID(owner): _Sight(again.of(owner), shared=bool(shared[owner])) for owner in rest}
        return sights, again.control_found


def _told(sight: _Sight, wanted: Wanted, run: str, residuals: frozenset[Residual]) -> Looked:
    match sight.verdict:
        case Verdict.FOUND:
            return Looked(seen=Seen(remaining=1))
        case Verdict.INCONCLUSIVE:
            return Looked(seen=Seen(inconclusive=True))
        case verdict:
            unseen = {
                Residual.NOT_SCANNABLE: verdict is Verdict.NOT_SCANNABLE,
                Residual.NOT_PROBEABLE: wanted.unprobed,
                Residual.SHARED_TEXT: sight.shared,
            }
            codes = frozenset(code for code, holds in unseen.items() if holds)
            reach = Reach.LOGICAL if codes else Reach.PHYSICAL
            return Looked(seen=Seen(), reach=reach, run=run, residuals=residuals | codes)


def _unprobed(wanted: Wanted) -> Looked:
    return Looked(seen=Seen(), residuals=frozenset({Residual.NOT_PROBEABLE} if wanted.unprobed else ()))
