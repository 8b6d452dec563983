"""The rules of the services that need no database: judging answers, what follows for a job, the dispatcher's turn."""

from __future__ import annotations

import itertools
import uuid
from datetime import UTC, datetime, timedelta

import pytest
import structlog
from structlog.testing import capture_logs

from orchestrator import (
    BadAnswer,
    Erased,
    EraseOrder,
    Holding,
    Permanent,
    Reason,
    Revocation,
    Scope,
    Seen,
    Selector,
    SelectorKind,
    Target,
    Transient,
)
from orchestrator.crash import never
from orchestrator.domain.codes import ErrorCode
from orchestrator.domain.contract import Role
from orchestrator.domain.job import Purpose, Store
from orchestrator.domain.ports import Swept
from orchestrator.domain.states import JobState
from orchestrator.domain.unit import Claimed, Outcome, Phase
from orchestrator.service import dispatch
from orchestrator.service.accept import days_later, one_month_later
from orchestrator.service.advance import Move, NewRound, OpenErase, OpenFind, OpenVerify, Standing, Tally, what_follows
from orchestrator.service.judge import judge

STORES = [Store(name="memory", role=Role.SOURCE), Store(name="cache", role=Role.DERIVED)]
NAMES = ("memory", "cache")
UNTIL = datetime(2026, 11, 30, tzinfo=UTC)


def unit(phase: Phase, targets: int = 0, *, page: int = 0, last_round: bool = False) -> Claimed:
    order = EraseOrder(
        job=uuid.uuid4(),
        unit=uuid.uuid4(),
        key="k",
        scope=Scope(tenant="t", user="u"),
        selector=Selector(kind=SelectorKind.SUBJECT),
        targets=tuple(Target(kind="fact", id=str(n)) for n in range(targets)),
        deadline=UNTIL,
    )
    return Claimed(
        order=order,
        adapter="memory",
        reason=Reason.USER_REQUEST,
        phase=phase,
        page=page,
        find_pass=0,
        known_from=None,
        item=None,
        epoch=1,
        last_round=last_round,
    )


MANY = tuple(Target(kind="fact", id=str(n)) for n in range(1001))


@pytest.mark.parametrize(
    ("answer", "outcome", "remaining"),
    [
        (Erased(erased=2), Outcome.ERASED, 0),
        (Erased(already_absent=2), Outcome.NOTHING_FOUND, 0),
        (Erased(erased=2, extra=1, already_absent=1), Outcome.ERASED, 0),
        (Erased(erased=1, windows={"copy": UNTIL}), Outcome.SCHEDULED, 1),
    ],
)
def test_erase_that_adds_up_becomes_a_receipt(answer: Erased, outcome: Outcome, remaining: int) -> None:
    receipt = judge(unit(Phase.ERASE, 2), answer).receipt
    assert receipt is not None
    assert (receipt.outcome, receipt.remaining, receipt.expected) == (outcome, remaining, 2)


@pytest.mark.parametrize(
    ("phase", "answer", "error", "code"),
    [
        (Phase.ERASE, Erased(erased=1), Transient, ErrorCode.PARTIAL),
        (Phase.ERASE, Erased(erased=3), BadAnswer, ErrorCode.BAD_ANSWER),
        (Phase.ERASE, Erased(erased=-1, already_absent=3), BadAnswer, ErrorCode.BAD_ANSWER),
        (Phase.ERASE, Erased(already_absent=3, extra=1), BadAnswer, ErrorCode.BAD_ANSWER),
        (Phase.ERASE, Erased(erased=2, windows={"copy": UNTIL}), BadAnswer, ErrorCode.BAD_ANSWER),
        (Phase.ERASE, Erased(unsupported=True), Permanent, ErrorCode.UNSUPPORTED),
        (Phase.ERASE, Seen(), BadAnswer, ErrorCode.BAD_ANSWER),
        (Phase.FIND, Holding(targets=MANY), BadAnswer, ErrorCode.BAD_ANSWER),
        (Phase.FIND, Holding(no_lineage=-1), BadAnswer, ErrorCode.BAD_ANSWER),
        (Phase.REVOKE, Revocation(targets=MANY), BadAnswer, ErrorCode.BAD_ANSWER),
        (Phase.VERIFY, Seen(remaining=-1), BadAnswer, ErrorCode.BAD_ANSWER),
        (Phase.VERIFY, Seen(inconclusive=True), Transient, ErrorCode.INCONCLUSIVE),
        (Phase.VERIFY, None, BadAnswer, ErrorCode.BAD_ANSWER),
        (Phase.CLOSE, Seen(remaining=-1), BadAnswer, ErrorCode.BAD_ANSWER),
        (Phase.CLOSE, Seen(inconclusive=True), Transient, ErrorCode.INCONCLUSIVE),
        (Phase.CLOSE, Seen(remaining=1), Transient, ErrorCode.STILL_PRESENT),
        (Phase.CLOSE, None, BadAnswer, ErrorCode.BAD_ANSWER),
    ],
)
def test_answer_that_is_no_end_is_never_a_receipt(
    phase: Phase, answer: object, error: type[Transient], code: ErrorCode
) -> None:
    with pytest.raises(error) as caught:
        judge(unit(phase, 2), answer)
    assert caught.value.code is code


def test_copy_that_is_still_seen_in_the_last_round_is_left_to_a_person() -> None:
    with pytest.raises(Permanent) as caught:
        judge(unit(Phase.VERIFY, last_round=True), Seen(remaining=1))
    assert caught.value.code is ErrorCode.STILL_PRESENT
    receipt = judge(unit(Phase.VERIFY, last_round=True), Seen()).receipt
    assert receipt is not None
    assert receipt.outcome is Outcome.ABSENT


@pytest.mark.parametrize(
    ("targets", "page", "outcome"), [(1, 0, "revoked"), (0, 0, "nothing_found"), (0, 1, "revoked")]
)
def test_revoke_says_whether_anything_was_named(targets: int, page: int, outcome: str) -> None:
    found = tuple(Target(kind="fact", id=str(n)) for n in range(targets))
    receipt = judge(unit(Phase.REVOKE, page=page), Revocation(targets=found)).receipt
    assert receipt is not None
    assert (receipt.outcome, receipt.expected, receipt.remaining) == (outcome, targets, targets)


def tally(phase: Phase, adapter: str, *, find_pass: int = 0, unfinished: int = 0, of_items: bool = False) -> Tally:
    return Tally(adapter=adapter, phase=phase, find_pass=find_pass, unfinished=unfinished, of_items=of_items)


def both(phase: Phase, *, find_pass: int = 0, unfinished: int = 0) -> tuple[Tally, ...]:
    return tuple(tally(phase, name, find_pass=find_pass, unfinished=unfinished) for name in NAMES)


def standing(
    state: JobState,
    *tallies: Tally,
    purpose: Purpose = Purpose.ERASE,
    found: bool = False,
    present: bool = False,
    windows: bool = False,
) -> Standing:
    return Standing(
        id="job",
        state=state,
        purpose=purpose,
        round=1,
        tallies=tallies,
        found_in_last_pass=found,
        seen_present=present,
        open_windows=windows,
    )


FOUND = both(Phase.FIND, find_pass=1)
SECOND = both(Phase.FIND, find_pass=2)
ERASED = (*FOUND, *both(Phase.ERASE))
LOOKED = (*ERASED, *both(Phase.VERIFY))
CLEANUP = JobState.DERIVED_CLEANUP


@pytest.mark.parametrize(
    ("job", "actions"),
    [
        (standing(JobState.REQUESTED), []),
        (standing(JobState.REQUESTED, tally(Phase.REVOKE, "memory", unfinished=1)), []),
        (
            standing(JobState.REQUESTED, tally(Phase.REVOKE, "memory")),
            [Move(JobState.SOURCE_REVOKED), OpenFind(1, NAMES)],
        ),
        (standing(JobState.SOURCE_REVOKED, *both(Phase.FIND, find_pass=1, unfinished=1)), []),
        (standing(JobState.SOURCE_REVOKED, *FOUND, found=True), [OpenFind(2, NAMES)]),
        (standing(JobState.SOURCE_REVOKED, *FOUND), [Move(CLEANUP), OpenErase(NAMES)]),
        # Passes go on until one finds nothing new.
        (standing(JobState.SOURCE_REVOKED, *FOUND, *SECOND, found=True), [OpenFind(3, NAMES)]),
        (standing(JobState.SOURCE_REVOKED, *FOUND, *SECOND), [Move(CLEANUP), OpenErase(NAMES)]),
        # Those that follow an item which a hold covered are none of them.
        (
            standing(JobState.SOURCE_REVOKED, *FOUND, tally(Phase.FIND, "memory", find_pass=2, of_items=True)),
            [Move(CLEANUP), OpenErase(NAMES)],
        ),
        (standing(CLEANUP, *FOUND), [OpenErase(NAMES)]),
        (standing(CLEANUP, *FOUND, *both(Phase.ERASE, unfinished=1)), []),
        (standing(CLEANUP, *ERASED), [OpenVerify(NAMES)]),
        (standing(CLEANUP, *ERASED, *both(Phase.VERIFY, unfinished=1)), []),
        (standing(CLEANUP, *LOOKED, present=True), [NewRound(NAMES)]),
        (standing(CLEANUP, *LOOKED), [Move(JobState.VERIFIED), Move(JobState.COMPLETED)]),
        (standing(CLEANUP, *LOOKED, windows=True), [Move(JobState.VERIFIED)]),
        (standing(JobState.VERIFIED, windows=True), []),
        (standing(JobState.VERIFIED), [Move(JobState.COMPLETED)]),
        (standing(JobState.COMPLETED), []),
        (standing(JobState.CANCELLED), []),
        # An adapter that was registered while the job ran.
        (standing(CLEANUP, tally(Phase.FIND, "memory", find_pass=1)), [OpenFind(1, ("cache",))]),
        (standing(CLEANUP, *FOUND, tally(Phase.FIND, "memory", find_pass=2)), [OpenFind(2, ("cache",))]),
        (
            standing(CLEANUP, *(tally(p, "memory", find_pass=1) for p in (Phase.FIND, Phase.ERASE, Phase.VERIFY))),
            [NewRound(NAMES)],
        ),
    ],
)
def test_what_follows_for_a_job(job: Standing, actions: list[object]) -> None:
    assert what_follows(job, STORES) == actions


def test_preview_goes_through_find_alone_and_is_cancelled() -> None:
    def preview(*tallies: Tally, found: bool = False) -> list[object]:
        return list(what_follows(standing(JobState.REQUESTED, *tallies, purpose=Purpose.PREVIEW, found=found), STORES))

    named = tally(Phase.FIND, "memory")
    assert preview(tally(Phase.FIND, "memory", unfinished=1)) == []
    assert preview(named) == [OpenFind(1, NAMES)]
    assert preview(named, *FOUND, found=True) == [OpenFind(2, NAMES)]
    assert preview(named, *FOUND, *SECOND, found=True) == [OpenFind(3, NAMES)]
    assert preview(named, *FOUND) == [Move(JobState.CANCELLED)]


def test_store_that_is_not_required_does_not_hold_a_job_back() -> None:
    stores = [STORES[0], Store(name="cache", role=Role.DERIVED, required=False)]
    job = standing(
        CLEANUP,
        *(t for phase in (Phase.FIND, Phase.ERASE, Phase.VERIFY) for t in [tally(phase, "memory", find_pass=1)]),
        *(tally(phase, "cache", find_pass=1, unfinished=1) for phase in (Phase.FIND, Phase.ERASE, Phase.VERIFY)),
    )
    assert what_follows(job, stores) == [Move(JobState.VERIFIED), Move(JobState.COMPLETED)]


@pytest.mark.parametrize(
    ("asked", "due"),
    [
        ("2026-01-31", "2026-02-28"),
        ("2024-01-31", "2024-02-29"),
        ("2026-12-05", "2027-01-05"),
        ("2026-03-30", "2026-04-30"),
    ],
)
def test_one_month_is_a_calendar_month(asked: str, due: str) -> None:
    at = datetime.fromisoformat(asked).replace(tzinfo=UTC)
    assert one_month_later(at).date().isoformat() == due
    assert days_later(45)(at) - at == timedelta(days=45)


class Memo:
    """A ledger and a broker that write down what they are asked for."""

    def __init__(self, swept: Swept) -> None:
        self.swept, self.sent = swept, list[tuple[str, Phase]]()

    def sweep(self) -> Swept:
        return self.swept

    def announce(self, *pair: object) -> list[tuple[str, Phase]]:
        if pair:
            self.sent.append(pair)  # type: ignore[arg-type]
            return []
        return [("memory", Phase.REVOKE), ("cache", Phase.FIND)]


def test_sweep_tells_what_it_took_back_and_moved_and_is_silent_otherwise() -> None:
    with capture_logs() as logs:
        dispatch.sweep(Memo(Swept()), never, structlog.get_logger())  # type: ignore[arg-type]
    assert logs == []
    for rescued, parked in ((1, 0), (0, 1)):
        with capture_logs() as logs:
            swept = Swept(rescued=rescued, parked=parked, moved=(("job", CLEANUP),))
            dispatch.sweep(Memo(swept), never, structlog.get_logger())  # type: ignore[arg-type]
        assert [log["event"] for log in logs] == ["leases.ended", "job.moved"]


def test_hold_that_comes_into_force_is_told() -> None:
    with capture_logs() as logs:
        dispatch.sweep(Memo(Swept(in_force=("hold-1",))), never, structlog.get_logger())  # type: ignore[arg-type]
    assert [(log["event"], log["hold_id"]) for log in logs] == [("hold.in_force", "hold-1")]


def test_source_cannot_leave_an_item_that_nobody_holds() -> None:
    with pytest.raises(BadAnswer):
        judge(unit(Phase.REVOKE), Revocation(left=frozenset({"item"})))


def test_announcements_that_are_noted_are_sent() -> None:
    memo, points = Memo(Swept()), itertools.count()
    assert dispatch.announce(memo, memo, lambda *_: next(points)) == 2  # type: ignore[arg-type]
    assert memo.sent == [("memory", Phase.REVOKE), ("cache", Phase.FIND)]
    assert next(points) == 4
