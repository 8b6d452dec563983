"""What must hold of jobs, stores and ledger at any time, whatever has happened: read from outside the engine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hypothesis.stateful import RuleBasedStateMachine, invariant

from orchestrator import DeadlinePassed, EraseOrder, StoreUnreachable
from tests.fakes import Bench

EXPIRED = "expired"  # in the place of a key: the job takes what had expired when it revoked


class Properties(RuleBasedStateMachine):
    stage: Bench  # one engine for all examples: its statements are compiled once
    folder: Path

    def __init__(self) -> None:
        super().__init__()
        self.jobs: dict[str, str | None] = {}
        self.holds: dict[str, str | None] = {}
        self.down = False
        self.acted: set[str] = set()
        self.over: dict[str, set[str]] = {}  # by job of the clock: what had expired when it was asked to revoke
        self.broken: list[str] = []

    @invariant()
    def properties_hold(self) -> None:
        """P1, P3, P5, P6 and P10, and that no look which verifies is older than an erase."""
        assert self.broken == []
        states = {str(job): str(state) for job, state in self.stage.rows("SELECT id, state FROM deletion_jobs")}
        receipts = self._receipts()
        for job in self.jobs:
            if states[job] in {"verified", "completed"}:
                assert not [r for r in self.stage.source.records if self.covers(job, r[3])], "P1"
                assert not [r for r in self.stage.copies.records if self.covers(job, r[2])], "P1"
                looks = [(round_, seq) for of, phase, round_, seq in receipts if (of, phase) == (job, "verify")]
                erases = [seq for of, phase, _, seq in receipts if (of, phase) == (job, "erase")]
                last = max(round_ for round_, _ in looks)
                assert min(seq for round_, seq in looks if round_ == last) > max(erases)
            assert states[job] != "cancelled" or job not in self.acted, "P6"
        unlike = self.stage.rows(
            "SELECT u.id FROM deletion_units u LEFT JOIN deletion_receipts r ON r.unit_id = u.id "
            "WHERE u.phase <> 'find' AND (u.status = 'done') <> (r.id IS NOT NULL)"
        )
        assert unlike == [], "P5"

    def _receipts(self) -> list[tuple[str, str, int, int]]:
        rows: list[Any] = self.stage.rows("SELECT job_id, phase, round, rowid FROM deletion_receipts")
        return rows

    def before_call(self, phase: str, orders: Sequence[EraseOrder]) -> None:
        """Stand for the store: refuse after the deadline, fail when told to, and never act against a hold in force."""
        if any(self.stage.clock.now() > order.deadline for order in orders):
            raise DeadlinePassed
        if self.down:
            raise StoreUnreachable
        if phase not in {"revoke", "erase"}:
            return
        self.acted.update(str(order.job) for order in orders)
        in_force = {item for hold, item in self.holds.items() if self.stage.ledger.hold(hold).in_force_at is not None}
        self._note(None not in in_force, "P3: a call acts on a subject under a hold in force")
        for order in orders:
            origins = {(target.derived_of or "").removeprefix("fact:") for target in order.targets} - {""}
            ids = {target.id for target in order.targets}
            self._note(not (ids | origins) & in_force, "P3: an erase takes an item under a hold in force")
            of_the_clock = self.jobs[str(order.job)] == EXPIRED
            if phase == "revoke":
                self._note(in_force - {None} <= order.held, "P3: revoke is not told of a held item")
                if of_the_clock:
                    over = {i for i, at in self.stage.source.ends.items() if at <= self.stage.clock.now()}
                    self.over.setdefault(str(order.job), set()).update(over)
            elif of_the_clock:
                over = self.over[str(order.job)]
                self._note(origins <= over, "P10: what was made from something else is erased")
                self._note(origins != set() or ids <= over, "P10: what has not expired is erased")

    def _note(self, kept: bool, broken: str) -> None:  # noqa: FBT001 - a condition is what it is about
        """Keep what a call has broken: an error that is raised in it would be one more failure of a store."""
        if not kept:
            self.broken.append(broken)

    def covers(self, job: str, fact: str) -> bool:
        key = self.jobs[job]
        return fact in self._named(job) if key == EXPIRED else key is None or f"-{key}-" in fact

    def _named(self, job: str) -> set[str]:
        """What the source has named for a job."""
        told = [answer for of, answer in self.stage.source.answers.items() if str(of) == job]
        return {target.id for answer in told for target in answer.targets}
