"""`expunge report`: what a privacy officer answers with. It says no more than the receipts, and names nobody."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final, NamedTuple

import typer

from orchestrator.cli.follow import JobId, job_document
from orchestrator.cli.options import AsJson, StateDir, Tenant, minute, opened, printable, show
from orchestrator.counted import counted
from orchestrator.domain.codes import Reason
from orchestrator.domain.contract import Reach
from orchestrator.domain.errors import InvalidRequest
from orchestrator.domain.job import Purpose
from orchestrator.registry import installed
from orchestrator.service.outstanding import Outstanding
from orchestrator.service.report import NotCovered, Report, StoreReport, report
from orchestrator.store import report as reading

WIDTH: Final = 80
REACHES: Final = {
    Reach.LOGICAL: "reach logical: what can be read, and not the bytes of the files",
    Reach.PHYSICAL: "reach physical: the live files too; the scan saw its own marker there and nothing of this",
    None: "how far it reached was not written down",
}


class Section(NamedTuple):
    """A heading, and items with lines of their own below them."""

    title: str
    items: Sequence[tuple[str, Sequence[str]]]


def add_to(app: typer.Typer) -> None:
    """Add the command of this family."""
    app.command("report", epilog="Example: expunge report JOB --markdown")(report_job)


def report_job(
    job: JobId,
    tenant: Tenant = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown instead of plain text.")] = False,  # noqa: FBT002 - a flag of the command line
    directory: StateDir = None,
    as_json: AsJson = False,  # noqa: FBT002
) -> None:
    """Tell what is done in each store, what is outstanding, which copies wait until when, and what is not covered.

    It says no more than the receipts, and names ids, codes and counts.

    The list not_covered of the section report in expunge.toml stands in every
    report: places of yours that no adapter reaches.
    """
    with opened(directory) as control:
        facts = reading.read(control.database, job, tenant=tenant)
        if facts.job.purpose is Purpose.PREVIEW:
            message = "this job is a preview, which erases nothing: report takes the id of a forget request"
            raise InvalidRequest(message, field="job")
        told = report(
            facts,
            at=control.clock.now(),
            enabled=list(control.settings.adapters),
            installed=installed(),
            told=control.settings.report.not_covered,
        )
    show(document(told), list(_markdown(told) if markdown else _plain(told)), as_json=as_json)


def document(told: Report) -> dict[str, Any]:
    """Give a report as JSON."""
    return {**dataclasses.asdict(told), "job": job_document(told.job)}


def _plain(told: Report) -> Iterator[str]:
    """Give a report in lines of at most 80 columns, where no single word is longer."""
    yield from _wrapped(f"Report of job {told.job.id}", "")
    for line in _about(told):
        yield from _wrapped(line, "  ")
    yield from ["", *_wrapped(told.headline, ""), *_wrapped(told.says, "  ")]
    for section in _sections(told):
        yield from ["", section.title]
        for item, lines in section.items or [("nothing", ())]:
            yield from _wrapped(item, "  ")
            for line in lines:
                yield from _wrapped(line, "    ")


def _markdown(told: Report) -> Iterator[str]:
    yield f"# Report of job {told.job.id}"
    yield from ["", f"**{told.headline}.** {told.says}", ""]
    yield from (f"- {line}" for line in _about(told))
    for section in _sections(told):
        yield from ["", f"## {section.title}", ""]
        for item, lines in section.items or [("nothing", ())]:
            yield f"- {item}"
            yield from (f"  - {line}" for line in lines)


def _wrapped(text: str, indent: str) -> list[str]:
    # Escaped before it is wrapped: an escape is longer than what it stands for.
    return textwrap.wrap(
        printable(text),
        WIDTH,
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _about(told: Report) -> Iterator[str]:
    job = told.job
    yield f"told on {minute(told.at)}, from what is written down of it"
    result = f", result {job.result.value}" if job.result else ""
    yield f"tenant {job.tenant}, selector {job.selector}, round {job.round}, state {job.state.value}{result}"
    yield f"reason {job.reason}: {Reason(job.reason).sentence}"
    if job.reference is not None:
        yield f"reference {job.reference}"
    yield f"filed on {minute(job.requested_at)}, due on {minute(job.due_at)}{' - LATE' if told.late else ''}"
    if job.verified_at is not None:
        completed = "not yet completed" if job.completed_at is None else f"completed on {minute(job.completed_at)}"
        yield f"verified on {minute(job.verified_at)}, {completed}"


def _sections(told: Report) -> list[Section]:
    windows = [
        f"{w.adapter} copy {w.copy} "
        + (
            f"{'outlives its date' if w.overdue else 'lives until'} {minute(w.until)}"
            if w.closed_at is None
            else f"was seen to be gone on {minute(w.closed_at)}"
        )
        for w in told.windows
    ]
    waived = [
        (
            f"{w.adapter}: {w.reason.value}, on {minute(w.at)}",
            [w.reason.sentence, f"by the person of reference {w.granted_by_ref}"],
        )
        for w in told.waived
    ]
    return [
        Section("Stores", [(f"{s.name}: {s.standing.value}", list(_store(s))) for s in told.stores]),
        Section("Outstanding", [_outstanding(each) for each in told.outstanding]),
        Section("Copies that cannot be edited", [(line, ()) for line in windows]),
        Section("Waived by name", waived),
        Section("Not covered", [(line, ()) for line in _not_covered(told.not_covered)]),
    ]


def _store(store: StoreReport) -> Iterator[str]:
    yield store.standing.sentence
    if store.revoked is not None and store.revoked_at is not None:
        yield f"revoked: {store.revoked}, the last answer on {minute(store.revoked_at)}"
    if store.nothing_found:
        yield f"erased: 0; nothing was found but what was already absent ({store.already_absent})"
    elif store.erased or store.already_absent or store.scheduled:
        extra = f" (of these {store.extra} arrived while it was at work)" if store.extra else ""
        yield f"erased: {store.erased}{extra}; already absent: {store.already_absent}; scheduled: {store.scheduled}"
    if store.last_look is not None:
        seen = f"{store.last_look.remaining} still seen" if store.last_look.remaining else "nothing seen"
        yield f"last look: {seen}, on {minute(store.last_look.at)}; {REACHES[store.last_look.reach]}"
    yield from (f"may be left: {code.value}. {code.sentence}" for code in store.residuals)


def _outstanding(each: Outstanding) -> tuple[str, list[str]]:
    lines = [each.why.sentence]
    if each.parked is not None:
        lines.append(f"{each.parked.value}: {each.parked.sentence}")
    if each.last_error is not None:
        lines.append(f"last error {each.last_error.value}: {each.last_error.sentence} Attempts: {each.attempts}")
    if each.next_attempt_at is not None:
        lines.append(f"{'due' if each.last_error is None else 'next attempt'}: {minute(each.next_attempt_at)}")
    lines += [f"hold {hold.id}, {hold.reason.value}: {hold.reason.sentence}" for hold in each.holds]
    if each.to_do is not None:
        lines.append(each.to_do)
    return f"{each.adapter} {each.phase.value}: {each.why.value}, units {each.units}", lines


def _not_covered(left: NotCovered) -> Iterator[str]:
    yield left.model_weights
    for name, count in left.no_lineage.items():
        copies = counted(count, "copy that names", "copies that name")
        yield f"{name}: {copies} no origin; which may be of this request or not"
    for name in left.logical_only:
        yield f"{name}: the bytes of its files; the look reached what can be read"
    for name in left.not_asked:
        yield f"{name}: enabled, and not asked by this job"
    for name in left.not_enabled:
        yield f"{name}: installed, and not enabled here"
    yield from left.told
