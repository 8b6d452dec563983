"""`expunge retry`, `cancel`, `waive` and `overdue`: what a person does where a job does not move by itself."""

from __future__ import annotations

from typing import Annotated, Final

import structlog
import typer

from orchestrator.cli.follow import JobId, job_document, job_lines
from orchestrator.cli.options import AsJson, StateDir, Tenant, chosen, opened, requester, show
from orchestrator.counted import counted
from orchestrator.domain.codes import WaiverReason
from orchestrator.domain.job import Waiver

NOTHING_WAITS: Final = "nothing of this job was parked or waiting for another attempt"


def add_to(app: typer.Typer) -> None:
    """Add the commands of this family."""
    app.command(epilog="Example: expunge retry JOB")(retry)
    app.command(epilog="Example: expunge cancel JOB --tenant acme")(cancel)
    app.command(epilog="Example: expunge waive JOB --adapter cache --reason store_gone")(waive)
    app.command(epilog="Example: expunge overdue --tenant acme --json")(overdue)


def retry(job: JobId, tenant: Tenant = None, directory: StateDir = None, as_json: AsJson = False) -> None:  # noqa: FBT002
    """Have every parked or waiting unit of a job tried again now, with its attempts counted afresh."""
    with opened(directory) as control:
        count = control.ledger.retry(job, tenant=tenant)
    structlog.get_logger().info("job.retried", job_id=job, units=count)
    said = f"{counted(count, 'unit is', 'units are')} due again" if count else NOTHING_WAITS
    show({"job": job, "units": count}, [said], as_json=as_json)


def cancel(job: JobId, tenant: Tenant = None, directory: StateDir = None, as_json: AsJson = False) -> None:  # noqa: FBT002
    """Cancel a job of which nothing was begun; refused (3) once a worker has taken it up."""
    with opened(directory) as control:
        control.ledger.cancel(job, tenant=tenant)
        view = control.ledger.job(job)
    structlog.get_logger().info("job.cancelled", job_id=view.id)
    show(job_document(view), job_lines(view), as_json=as_json)


def waive(
    job: JobId,
    adapter: Annotated[str, typer.Option(help="The store that the job may pass.")],
    reason: Annotated[str, typer.Option(help=f"One of: {', '.join(WaiverReason)}.")],
    tenant: Tenant = None,
    directory: StateDir = None,
    as_json: AsJson = False,  # noqa: FBT002
) -> None:
    """Let a job pass one store by name. What is left there stays; the job's result says `waived`."""
    with opened(directory) as control:
        by_ref = control.acceptance.ref("requester", requester())
        waiver = Waiver(
            adapter=adapter, reason=WaiverReason(chosen("reason", reason, WaiverReason)), granted_by_ref=by_ref
        )
        new = control.ledger.waive(job, waiver, tenant=tenant)
        view = control.ledger.job(job)
    if new:
        structlog.get_logger().info("job.waived", job_id=view.id, adapter=adapter, reason=waiver.reason.value)
    show(job_document(view), job_lines(view), as_json=as_json)


def overdue(
    tenant: Tenant = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Longest list.")] = 50,
    directory: StateDir = None,
    as_json: AsJson = False,  # noqa: FBT002
) -> None:
    """List jobs that are past their deadline or due within `deadline.warn`, with what keeps each.

    A verified job is among them while one of its copies outlives its window.
    """
    with opened(directory) as control:
        now = control.clock.now()
        jobs = control.ledger.overdue(tenant=tenant, before=now + control.settings.deadline.warn, limit=limit)
    lines = []
    for view in jobs:
        late = (now - view.due_at).total_seconds() / 86_400
        when = f"{late:.1f} days overdue" if late > 0 else f"due in {-late:.1f} days"
        outlived = [w for w in view.windows if w.closed_at is None and w.until < now]
        if outlived:
            late = max((now - w.until).total_seconds() for w in outlived) / 86_400
            when = f"{late:.1f} days overdue"
        keeps = [f"{a} {p} parked ({r})" for a, p, r in view.parked] + (["held"] if view.held else [])
        keeps += [f"{w.adapter} copy {w.copy} outlives its window" for w in outlived]
        why = "; ".join(keeps) or (
            f"{view.failed_in}: last error {view.last_error}" if view.last_error else "under way"
        )
        lines.append(f"{view.id}  {view.tenant}  {view.state.value}  {when}: {why}")
    show({"jobs": [job_document(view) for view in jobs]}, lines or ["nothing is overdue or due soon"], as_json=as_json)
