"""A hold that arrives at any named point, where its process goes on or dies: from `in_force` on nothing changes."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
import structlog

from orchestrator.domain.codes import CrashPoint, HoldReason
from orchestrator.domain.states import JobState
from orchestrator.service import dispatch
from orchestrator.service.hold import HoldRequest, place
from tests.fakes import ANNA, Bench, bench, fill

HELD = "anna-passport-000000"
OF_A_BATCH = (
    CrashPoint.AFTER_CLAIM,
    CrashPoint.AFTER_ORDERS,
    CrashPoint.BEFORE_CALL,
    CrashPoint.AFTER_EFFECT,
    CrashPoint.BEFORE_COMMIT,
    CrashPoint.AFTER_COMMIT,
)
PLACES = ("source.revoke", "copies.find", "source.erase", "copies.erase", "copies.verify")
POINTS = [
    (CrashPoint.AFTER_ACCEPT, ""),
    *((point, place) for point in OF_A_BATCH for place in PLACES),
    *((point, "dispatcher") for point in (CrashPoint.BEFORE_SWEEP_COMMIT, CrashPoint.AFTER_SWEEP)),
]


class Died(BaseException):
    """The process is gone: nothing of it runs after this."""


@dataclass
class Arrival:
    """Places a hold when a point is come to, and lets the process die there or go on."""

    point: CrashPoint
    where: str
    dies: bool
    items: tuple[str, ...]
    stage: Bench | None = None
    holds: list[str] = field(default_factory=list)
    placing: threading.Thread | None = None
    kept: set[tuple[str, ...]] | None = None  # what the hold covered when it came into force

    def __call__(self, point: CrashPoint, where: str) -> None:
        """Stand for `EXPUNGE_CRASH_AT`."""
        if self.stage is None or self.placing is not None or (point, where) != (self.point, self.where or where):
            return
        # In a thread of its own: at some points this one has a transaction open, for which the hold has to wait.
        self.placing = threading.Thread(target=self.place)
        self.placing.start()
        if point not in {CrashPoint.BEFORE_COMMIT, CrashPoint.BEFORE_SWEEP_COMMIT}:
            self.placing.join()
        if self.dies:
            raise Died

    def place(self) -> None:
        """Place the hold as counsel does, while another process sweeps and this one stands still."""
        assert self.stage is not None
        who = {"tenant": ANNA.tenant, "user": ANNA.user, "requested_by": "counsel", "reference": "case-7"}
        asked = HoldRequest(items=self.items, reason=HoldReason.LITIGATION, **who)
        self.holds = [str(hold) for hold in place(asked, self.stage.acceptance)]
        self.stage.ledger.sweep()
        self.look()

    def look(self) -> bool:
        """Tell whether the hold is in force, and remember what it covered when it came to be."""
        assert self.stage is not None
        in_force = bool(self.holds) and all(self.stage.ledger.hold(hold).in_force_at for hold in self.holds)
        if in_force and self.kept is None:
            self.kept = covered(self.stage, self.items)
        return in_force


def until_in_force(stage: Bench, arrival: Arrival) -> None:
    """Go on as other processes do: work, leases that end, calls whose deadline passes, until the hold is in force."""
    for _ in range(9):
        _one_turn(stage)
        if arrival.placing is not None:
            arrival.placing.join()
        if arrival.look():
            return
        stage.end_leases()
        stage.skip_pauses()
        stage.clock.at += timedelta(hours=1)
    pytest.fail("the hold does not come into force")


def _one_turn(stage: Bench) -> None:
    log = structlog.get_logger()
    for turn in (stage.run, partial(dispatch.sweep, stage.ledger, stage.ledger.crash, log)):
        try:
            turn()
        except Died:
            # What died had a lease, which ends.
            stage.end_leases()


def covered(stage: Bench, items: tuple[str, ...]) -> set[tuple[str, ...]]:
    """Give every record that the hold covers, and which of them are revoked."""
    mine = {
        record
        for record in stage.source.records | stage.copies.records
        if record[:2] == (ANNA.tenant, ANNA.user) and (not items or any(item in record[3] for item in items))
    }
    return mine | {("revoked", ident) for ident in stage.source.revoked if not items or ident in items}


def refuse_late_calls(stage: Bench) -> None:
    """Let both stores refuse after an order's deadline, as the contract has it."""
    for store in (stage.source, stage.copies):

        def before(_phase: str, orders: object) -> None:
            for order in orders:  # type: ignore[attr-defined]
                assert stage.clock.now() <= order.deadline

        store.before = before


@pytest.mark.case(133)
@pytest.mark.parametrize(
    ("items", "dies"), [((), True), ((), False), ((HELD,), False)], ids=["subject-dies", "subject-goes", "item-goes"]
)
@pytest.mark.parametrize(("point", "where"), POINTS)
def test_nothing_covered_changes_once_a_hold_is_in_force(
    tmp_path: Path, point: CrashPoint, where: str, *, dies: bool, items: tuple[str, ...]
) -> None:
    arrives(Arrival(point, where, dies, items), tmp_path)


@pytest.mark.parametrize(("point", "where"), [p for p in POINTS if p[1] not in {"copies.find", "copies.verify"}])
def test_so_it_is_on_postgresql(tmp_path: Path, postgres_url: str, point: CrashPoint, where: str) -> None:
    arrives(Arrival(point, where, True, ()), tmp_path, postgres_url)


def arrives(arrival: Arrival, folder: Path, url: str | None = None) -> None:
    """File a job, let the hold arrive on the way, and watch what it covers."""
    point, items = arrival.point, arrival.items
    stage = bench(folder, url=url, crash=arrival)
    try:
        fill(stage, count=2)
        refuse_late_calls(stage)
        arrival.stage = stage
        try:
            stage.file()
        except Died:
            assert point is CrashPoint.AFTER_ACCEPT
        until_in_force(stage, arrival)
        assert arrival.placing is not None, "the point was not come to"
        for _ in range(3):
            stage.run()
            stage.skip_pauses()
            stage.clock.at += timedelta(hours=1)
        kept = arrival.kept
        assert kept is not None
        assert covered(stage, items) == kept
        (job,) = stage.ledger.jobs(tenant=None, state=None, after=None, limit=9)
        if kept - {entry for entry in kept if entry[0] == "revoked"}:
            assert job.verified_at is None, "a job is verified while a hold keeps what it is to erase"
        for hold in arrival.holds:
            stage.ledger.release(hold, by_ref="somebody")
        for _ in range(3):
            stage.run()
            stage.skip_pauses()
        assert not covered(stage, ()) - {("revoked", f"anna-passport-{n:06}") for n in range(2)}
        assert stage.view(str(job.id)).state is JobState.COMPLETED
        ((units, receipts),) = stage.rows("SELECT count(DISTINCT unit_id), count(*) FROM deletion_receipts")
        assert units == receipts
    finally:
        if arrival.placing is not None:
            arrival.placing.join()
        stage.ledger.engine.dispose()
