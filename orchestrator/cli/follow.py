"""`expunge list`, `status`, `watch` and `receipts`: what is known of a job, in ids, codes, counts and times."""

from __future__ import annotations

import dataclasses
import time
from typing import Annotated, Any

import typer

from orchestrator.cli.failures import FAILED
from orchestrator.cli.options import (
    AsJson,
    StateDir,
    Tenant,
    as_text,
    chosen,
    given_id,
    minute,
    opened,
    printable,
    show,
)
from orchestrator.domain.codes import Residual
from orchestrator.domain.job import JobView, Result
from orchestrator.domain.states import OVER, JobState
from orchestrator.service.outstanding import outstanding
from orchestrator.store import report as reading

PARKED, NOTHING = 4, 5
ENDED = frozenset({JobState.COMPLETED, JobState.CANCELLED})
SHARE, SHORTEST_PAUSE, LONGEST_PAUSE = 0.1, 0.05, 1.0

JobId = Annotated[str, typer.Argument(help="Id of the job.", metavar="JOB")]


def add_to(app: typer.Typer) -> None:
    """Add the commands of this family."""
    app.command("list", epilog="Example: expunge list --tenant acme --state derived_cleanup --limit 100")(list_jobs)
    app.command(epilog="Example: expunge status JOB --tenant acme")(status)
    app.command(epilog="Example: expunge watch JOB --timeout 600")(watch)
    app.command(epilog="Example: expunge receipts JOB --json")(receipts)


def list_jobs(
    tenant: Tenant = None,
    state: Annotated[str | None, typer.Option(help=f"Only this state: {', '.join(JobState)}.")] = None,
    after: Annotated[str | None, typer.Option(help="Go on after this job: `next` of the last page.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Jobs on a page.")] = 50,
    directory: StateDir = None,
    as_json: AsJson = False,  # noqa: FBT002 - a flag of the command line
) -> None:
    """List jobs, oldest first, page by page. Previews are not listed."""
    after = given_id("after", after)
    only = None if state is None else JobState(chosen("state", state, JobState))
    with opened(directory) as control:
        jobs = control.ledger.jobs(tenant=tenant, state=only, after=after, limit=limit + 1)
    page, more = jobs[:limit], len(jobs) > limit
    following = page[-1].id if more else None
    lines = [f"{job.id}  {job.state.value:15}  {job.selector:7}  {job.tenant}" for job in page]
    if more:
        lines.append(f"more: --after {following}")
    show({"jobs": [job_document(job) for job in page], "next": following}, lines, as_json=as_json)


def status(job: JobId, tenant: Tenant = None, directory: StateDir = None, as_json: AsJson = False) -> None:  # noqa: FBT002
    """Show where a job is, why it is not moving, and when the next attempt comes."""
    with opened(directory) as control:
        view, undone = reading.undone(control.database, job, tenant=tenant)
    left = [outstanding(each, view) for each in undone]
    coming = [(each.next_attempt_at, each) for each in left if each.next_attempt_at is not None]
    lines = [
        f"{'due' if each.last_error is None else 'next attempt'}: {each.adapter} {each.phase.value}, {minute(at)}"
        for at, each in coming
    ]
    document = {**job_document(view), "next_attempt_at": min((at for at, _ in coming), default=None)}
    show(document, [*job_lines(view), *lines], as_json=as_json)


def watch(
    job: JobId,
    tenant: Tenant = None,
    timeout: Annotated[float, typer.Option(help="Longest wait in seconds.", min=0.1)] = 3600,
    directory: StateDir = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document a line.")] = False,  # noqa: FBT002
) -> None:
    """Print each move of a job until it has ended (0), is parked or held (4), or the time is over (1)."""
    began, shown = time.monotonic(), ""
    with opened(directory) as control:
        while True:
            now = time.monotonic()
            view = control.ledger.job(job, tenant=tenant)
            line = "; ".join(job_lines(view))
            if line != shown:
                typer.echo(as_text(job_document(view)) if as_json else printable(line))
                shown = line
            if view.state in ENDED or view.waits_for_a_person:
                raise typer.Exit(exit_code(view))
            if now >= began + timeout:
                typer.echo(f"not completed after {timeout:g} s: {why_not(view)}", err=True)
                raise typer.Exit(FAILED)
            time.sleep(min(pause_after(now - began), began + timeout - now))


def receipts(job: JobId, tenant: Tenant = None, directory: StateDir = None, as_json: AsJson = False) -> None:  # noqa: FBT002
    """Show the receipts of a job: what each store did, held against what was found before."""
    with opened(directory) as control:
        found = control.ledger.receipts(job, tenant=tenant)
    lines = []
    for r in found:
        lines.append(
            f"{r.adapter:10} {r.phase:7} {r.outcome:14} expected {r.expected}, erased {r.erased}, "
            f"already absent {r.already_absent}, remaining {r.remaining}{f', reach {r.reach}' if r.reach else ''} "
            f"(attempt {r.attempt}, round {r.round})"
        )
        lines += [f"{'':10} may be left: {code}. {Residual(code).sentence}" for code in r.residuals]
    show({"receipts": [dataclasses.asdict(r) for r in found]}, lines, as_json=as_json)


def pause_after(waited: float) -> float:
    """Give how many seconds to wait before the next look: short for a short job, and longer the longer it takes."""
    return min(max(waited * SHARE, SHORTEST_PAUSE), LONGEST_PAUSE)


def job_document(view: JobView) -> dict[str, Any]:
    """Give a job as JSON; which store failed last is for people, and stands in the report for machines."""
    parked = [{"adapter": adapter, "phase": phase, "reason": reason} for adapter, phase, reason in view.parked]
    told = {**dataclasses.asdict(view), "parked": parked}
    del told["failed_in"]
    return told


def exit_code(view: JobView) -> int:
    """Give the exit code that tells how a job stands once nothing moves it by itself."""
    if view.waits_for_a_person:
        return PARKED
    if view.state not in OVER:
        return FAILED
    return NOTHING if view.result is Result.NOTHING_FOUND else 0


def why_not(view: JobView) -> str:
    """Say what may keep a job that nobody has stopped."""
    if view.last_error is not None:
        return f"the last attempt of {view.failed_in} failed ({view.last_error}), and it is tried again by itself"
    return "no worker may be running (expunge up), or a store takes long to answer (`expunge doctor` asks each)"


def job_lines(view: JobView) -> list[str]:
    """Give a job in lines for a person."""
    lines = [f"job {view.id}: {view.state.value}" + (f", {view.result.value}" if view.result else "")]
    if view.result == "nothing_found":
        lines.append("nothing was found: is the selector spelled as the source spells it?")
    if view.last_error is not None and not view.parked and view.state not in ENDED:
        lines.append(f"not moving yet: {why_not(view)}")
    lines += [f"parked: {adapter} {phase} ({reason})" for adapter, phase, reason in view.parked]
    if view.held:
        lines.append("held: a legal hold keeps some or all of it waiting (expunge hold list)")
    lines += [f"waived: {adapter}; what is left there stays" for adapter in view.waived]
    for window in view.windows:
        told = f"is to be gone by {window.until:%Y-%m-%d %H:%M}" if window.closed_at is None else "was seen to be gone"
        lines.append(f"scheduled: {window.adapter} copy {window.copy} {told}")
    return lines
