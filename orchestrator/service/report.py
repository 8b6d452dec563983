"""The report of a job: what is done in each store, what is outstanding, which copies wait, and what is not covered.

Principle: it may say less than is known, and never more. A store counts as done only by a look of
the job's last round that has seen nothing left; all else is called what it is. It names nobody:
ids, codes, counts and times.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from orchestrator.domain.codes import Code, Residual, WaiverReason
from orchestrator.domain.contract import Reach
from orchestrator.domain.job import JobView, ReceiptView
from orchestrator.domain.states import OVER, JobState
from orchestrator.domain.unit import Outcome, Phase
from orchestrator.service.outstanding import Outstanding, Undone, outstanding

MODEL_WEIGHTS: Final = "Model weights are not changed: what a model has learned from the data stays in it."
_SAYS: Final[Mapping[JobState, str]] = {
    JobState.REQUESTED: "The request is accepted; no source has confirmed yet that it hands nothing out any more.",
    JobState.SOURCE_REVOKED: "The sources hand it out no more, but for what is held; copies may exist.",
    JobState.DERIVED_CLEANUP: "The sources hand it out no more, but for what is held; copies are being erased.",
    JobState.VERIFIED: (
        "In every required store a look has found nothing left, or a copy waits for its date, or the store was waived."
    ),
    JobState.COMPLETED: "In every required store a look has found nothing left, or the store was waived by name.",
    JobState.CANCELLED: "The request was taken back before a source was asked; nothing was erased.",
}


class Standing(Code):
    """How a store stands to a job."""

    DONE = "done", "A look by another road, after the erasing, has found nothing left."
    SCHEDULED = "scheduled", "Copies wait for their dates; a look has found nothing else left."
    OUTSTANDING = "outstanding", "Something is still to be done here, or the last look is still to come."
    WAIVED = "waived", "The job may pass this store by name; what is there stays."
    LEFT_UNDONE = "left_undone", "The store is not required, and the job ended without it; what is there stays."
    NOT_ASKED = "not_asked", "The job has asked this store for nothing."


@dataclass(frozen=True, kw_only=True)
class WaiverView:
    """Somebody's word that the job may pass a store; who it was is a keyed hash."""

    adapter: str
    reason: WaiverReason
    granted_by_ref: str
    at: datetime


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What is written down of a job. `revoked` counts what each source has named, `no_lineage` what names no origin."""

    job: JobView
    receipts: tuple[ReceiptView, ...] = ()
    undone: tuple[Undone, ...] = ()
    waivers: tuple[WaiverView, ...] = ()
    revoked: Mapping[str, int]
    no_lineage: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class Look:
    """The last look at a store: how many copies it saw, how far all of it reached, and when it ended."""

    remaining: int
    reach: Reach | None  # None: receipts of the first release do not tell it
    at: datetime


@dataclass(frozen=True, kw_only=True)
class StoreReport:
    """What was done in one store, over all pages and rounds.

    `already_absent` leaves out what an earlier round of this job has erased, `extra` is what arrived while it was
    at work and went with the rest. `residuals` may be left although all went well.
    """

    name: str
    standing: Standing
    revoked: int | None  # None: no source, or it has not answered
    revoked_at: datetime | None
    erased: int
    already_absent: int
    extra: int
    scheduled: int
    nothing_found: bool
    last_look: Look | None
    residuals: tuple[Residual, ...]


@dataclass(frozen=True, kw_only=True)
class Window:
    """A copy that cannot be edited; `overdue` while it outlives its date."""

    adapter: str
    copy: str
    until: datetime
    closed_at: datetime | None
    overdue: bool


@dataclass(frozen=True, kw_only=True)
class NotCovered:
    """What the job says nothing about. `told` is what the operator has written down."""

    no_lineage: Mapping[str, int]
    logical_only: tuple[str, ...]
    not_asked: tuple[str, ...]
    not_enabled: tuple[str, ...]
    told: tuple[str, ...]
    model_weights: str = MODEL_WEIGHTS


@dataclass(frozen=True, kw_only=True)
class Report:
    """All that can be answered of a job. `late`: it is not verified by its deadline, or was not."""

    at: datetime
    job: JobView
    headline: str
    says: str
    late: bool
    stores: tuple[StoreReport, ...]
    outstanding: tuple[Outstanding, ...]
    windows: tuple[Window, ...]
    waived: tuple[WaiverView, ...]
    not_covered: NotCovered


def report(
    facts: Facts, *, at: datetime, enabled: Sequence[str], installed: Collection[str], told: Sequence[str]
) -> Report:
    """Tell how a job stands at a time. `enabled` and `installed` name adapters, `told` is in the operator's words."""
    job = facts.job
    known = {r.adapter for r in facts.receipts} | {u.adapter for u in facts.undone}
    # A store that has been taken out of the configuration since has still done what its receipts say.
    names = [*enabled, *sorted(known - set(enabled))]
    windows = tuple(
        Window(
            adapter=w.adapter,
            copy=w.copy,
            until=w.until,
            closed_at=w.closed_at,
            overdue=w.closed_at is None and w.until < at,
        )
        for w in job.windows
    )
    stores = tuple(_store(name, facts, known) for name in names)
    return Report(
        at=at,
        job=job,
        headline=_headline(stores, [w for w in windows if w.closed_at is None]),
        says=_SAYS[job.state],
        late=job.state is not JobState.CANCELLED and (job.verified_at or at) > job.due_at,
        stores=stores,
        outstanding=tuple(outstanding(undone, job) for undone in facts.undone),
        windows=windows,
        waived=facts.waivers,
        not_covered=NotCovered(
            no_lineage=facts.no_lineage,
            logical_only=tuple(s.name for s in stores if s.last_look and s.last_look.reach is not Reach.PHYSICAL),
            not_asked=tuple(s.name for s in stores if s.standing is Standing.NOT_ASKED),
            not_enabled=tuple(sorted(set(installed) - set(names))),
            told=tuple(told),
        ),
    )


def _store(name: str, facts: Facts, known: Collection[str]) -> StoreReport:
    mine = [r for r in facts.receipts if r.adapter == name]
    erases = [r for r in mine if r.phase == Phase.ERASE]
    revokes = [r for r in mine if r.phase == Phase.REVOKE]
    looks = [r for r in mine if r.phase == Phase.VERIFY and r.round == facts.job.round]
    look = _look(looks)
    # What an earlier look could not tell, the last one may have seen; what an erase has left behind stays.
    codes = {code for r in (*revokes, *erases, *looks) for code in r.residuals}
    last = [r for r in erases if r.round == max(e.round for e in erases)]
    gone = sum(r.erased - r.extra for r in erases if r not in last)
    return StoreReport(
        name=name,
        standing=_standing(name, facts, look, asked=name in known),
        revoked=facts.revoked.get(name, 0) if revokes else None,
        revoked_at=max((r.finished_at for r in revokes), default=None),
        erased=sum(r.erased for r in erases),
        # A round is asked for all that the one before was asked for.
        already_absent=max(0, sum(r.already_absent for r in last) - gone),
        extra=sum(r.extra for r in erases),
        scheduled=sum(r.scheduled for r in last),
        nothing_found=bool(erases) and all(r.outcome == Outcome.NOTHING_FOUND for r in erases),
        last_look=look,
        residuals=tuple(sorted(Residual(code) for code in codes)),
    )


def _look(looks: Sequence[ReceiptView]) -> Look | None:
    if not looks:
        return None
    reaches = {r.reach for r in looks}
    # One page that was seen less of makes the whole look reach no farther.
    reach = None if None in reaches else Reach.PHYSICAL if reaches == {Reach.PHYSICAL} else Reach.LOGICAL
    return Look(remaining=sum(r.remaining for r in looks), reach=reach, at=max(r.finished_at for r in looks))


def _standing(name: str, facts: Facts, look: Look | None, *, asked: bool) -> Standing:
    job = facts.job
    undone = any(u.adapter == name and u.phase is not Phase.CLOSE for u in facts.undone)
    clean = look is not None and look.remaining == 0 and not undone
    waits = any(w.adapter == name and w.closed_at is None for w in job.windows)
    if clean and not waits:
        return Standing.DONE
    if name in job.waived:
        return Standing.WAIVED
    if clean:
        return Standing.SCHEDULED
    if job.state not in OVER:
        return Standing.OUTSTANDING
    return Standing.LEFT_UNDONE if asked else Standing.NOT_ASKED


def _headline(stores: Sequence[StoreReport], waiting: Sequence[Window]) -> str:
    """Say in one line how many stores are done, and what there is of the others."""
    told = [f"{sum(s.standing is Standing.DONE for s in stores)} done"]
    for standing in (Standing.OUTSTANDING, Standing.WAIVED, Standing.LEFT_UNDONE):
        names = [s.name for s in stores if s.standing is standing]
        if names:
            told.append(f"{len(names)} {standing.value.replace('_', ' ')} ({', '.join(names)})")
    for store in stores:
        if store.standing is Standing.SCHEDULED:
            mine = [w for w in waiting if w.adapter == store.name]
            late = " (overdue)" if any(w.overdue for w in mine) else ""
            told.append(f"{store.name} until {max(w.until for w in mine):%Y-%m-%d}{late}")
    return ", ".join(told)
