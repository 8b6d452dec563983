"""`expunge request` and `expunge preview`: filing, and seeing beforehand what would go."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from orchestrator.bootstrap import Control
from orchestrator.cli.follow import NOTHING, PARKED, exit_code, job_document, job_lines, pause_after, why_not
from orchestrator.cli.options import (
    REFERENCE,
    AsJson,
    StateDir,
    TenantName,
    UserName,
    chosen,
    opened,
    requester,
    show,
)
from orchestrator.cli.progress import of_waiting
from orchestrator.cli.request_file import file_rows
from orchestrator.cli.rows import COLUMNS
from orchestrator.domain.codes import Reason
from orchestrator.domain.errors import InvalidRequest
from orchestrator.domain.job import JobView, Purpose
from orchestrator.domain.scope import Scope
from orchestrator.domain.selector import Selector, SelectorKind
from orchestrator.domain.states import OVER, JobState
from orchestrator.service.accept import Request, accept
from orchestrator.store import report as reading

FILE = "File each row of this CSV file (or .jsonl) in UTF-8; - is CSV on standard input."

Key = Annotated[str | None, typer.Option(help="Forget this key, all its versions.")]
Memory = Annotated[str | None, typer.Option(help="Forget this record, by the source's own handle.")]
Source = Annotated[str | None, typer.Option(help="Forget all that was learned from this source.")]
Subject = Annotated[bool, typer.Option("--subject", help="Forget everything of the user.")]
Project = Annotated[str | None, typer.Option(help="One project of the user (default: every project).")]
Timeout = Annotated[float, typer.Option(help="Longest wait in seconds.", min=0.1)]


def add_to(app: typer.Typer) -> None:
    """Add the commands of this family."""
    app.command(
        epilog="Example: expunge request --source chat/turn-6 --tenant acme --user ann --reason user_request --wait"
        "\n\nExample: expunge request --file requests.csv --json"
    )(request)
    app.command(epilog="Example: expunge preview --subject --tenant acme --user ann")(preview)


def request(
    tenant: Annotated[str | None, typer.Option(help="Organisation of the user.")] = None,
    user: Annotated[str | None, typer.Option(help="Whose data.")] = None,
    reason: Annotated[str | None, typer.Option(help=f"One of: {', '.join(Reason)}.")] = None,
    key: Key = None,
    memory: Memory = None,
    source: Source = None,
    subject: Subject = False,  # noqa: FBT002 - a flag of the command line
    project: Project = None,
    reference: Annotated[str | None, typer.Option(help=REFERENCE)] = None,
    idempotency_key: Annotated[str | None, typer.Option(help="Filing again with this key files nothing new.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until verified, parked or held.")] = False,  # noqa: FBT002
    timeout: Timeout = 300,
    file: Annotated[str | None, typer.Option(metavar="FILE", help=f"{FILE} Columns: {', '.join(COLUMNS)}.")] = None,
    directory: StateDir = None,
    as_json: AsJson = False,  # noqa: FBT002
) -> None:
    """File a forget request for one user, or for each row of a file.

    With --wait the exit code is 0 verified, 4 parked or held, 5 nothing found.

    With --file each row is accepted, known (filed before) or refused (exit 1).
    Running a file again files nothing twice: a row without idempotency_key gets
    one that is made of all that it says.
    """
    if file is not None:
        given = (tenant, user, reason, key, memory, source, project, reference, idempotency_key)
        if subject or wait or any(value is not None for value in given):
            message = "the rows of --file say what is asked for: leave out every other option but --dir and --json"
            raise InvalidRequest(message, field="file")
        raise typer.Exit(file_rows(file, directory, as_json=as_json))
    if tenant is None or user is None or reason is None:
        message = "name --tenant, --user and --reason, or a --file of requests"
        raise InvalidRequest(message, field="tenant")
    if idempotency_key == "":
        message = "--idempotency-key must not be empty: leave it out, or give a key of your own"
        raise InvalidRequest(message, field="idempotency_key")
    with opened(directory) as control:
        asked = Request(
            scope=Scope(tenant=tenant, user=user, project=project),
            selector=_selector(key, memory, source, subject=subject),
            reason=Reason(chosen("reason", reason, Reason)),
            requested_by=requester(),
            reference=reference,
            idempotency_key=idempotency_key,
        )
        job, new = accept(asked, control.acceptance)
        if not new and not as_json:
            typer.echo("this idempotency key has filed this request before: here is its job", err=True)
        if wait:
            # Whoever stops waiting can still follow it.
            filed = "filed job" if new else "job"
            typer.echo(f"{filed} {job}; waiting (expunge status {job} tells where it is)", err=True)
        view = _wait(control, str(job), timeout) if wait else control.ledger.job(str(job))
    show({**job_document(view), "new": new}, job_lines(view), as_json=as_json)
    raise typer.Exit(exit_code(view) if wait else 0)


def preview(
    tenant: TenantName,
    user: UserName,
    key: Key = None,
    memory: Memory = None,
    source: Source = None,
    subject: Subject = False,  # noqa: FBT002
    project: Project = None,
    timeout: Timeout = 60,
    directory: StateDir = None,
    as_json: AsJson = False,  # noqa: FBT002
) -> None:
    """Count what a request would erase in each store; nothing is changed. A worker does the looking."""
    with opened(directory) as control:
        asked = Request(
            scope=Scope(tenant=tenant, user=user, project=project),
            selector=_selector(key, memory, source, subject=subject),
            reason=Reason.OPERATOR,
            requested_by=requester(),
            purpose=Purpose.PREVIEW,
        )
        job, _ = accept(asked, control.acceptance)
        view = _wait(control, str(job), timeout)
        counted: dict[str, int] = {store.name: 0 for store in control.ledger.rules.stores} | control.ledger.counts(
            str(job)
        )
        unknown = control.ledger.no_lineage(str(job))
    whole = view.state is JobState.CANCELLED
    lines = [f"{name}: {count}" for name, count in counted.items()]
    lines += [f"{name}: {count} more without a known origin" for name, count in unknown.items()]
    if not whole:
        lines.append(f"the counts are not complete: {why_not(view)}")
    show({"complete": whole, "targets": counted, "no_lineage": unknown}, lines, as_json=as_json)
    found = sum(counted.values())
    raise typer.Exit(PARKED if not whole else 0 if found else NOTHING)


def _selector(key: str | None, memory: str | None, source: str | None, *, subject: bool) -> Selector:
    given = {SelectorKind.KEY: key, SelectorKind.MEMORY: memory, SelectorKind.SOURCE: source}
    chosen = [Selector(kind=kind, value=value) for kind, value in given.items() if value is not None]
    if subject:
        chosen.append(Selector(kind=SelectorKind.SUBJECT))
    if len(chosen) != 1:
        message = "name exactly one of --key, --memory, --source, --subject"
        raise InvalidRequest(message, field="selector")
    return chosen[0]


def _wait(control: Control, job: str, timeout: float) -> JobView:
    """Read the job until nothing moves it on by itself, or the time is over."""
    began = time.monotonic()
    with of_waiting() as told:
        while True:
            now = time.monotonic()
            view = control.ledger.job(job)
            if view.state in OVER or view.waits_for_a_person:
                return view
            if now >= began + timeout:
                break
            if told is not None:
                told(f"{view.state.value}, waits for {_waits_for(control, job)}")
            time.sleep(min(pause_after(now - began), began + timeout - now))
    typer.echo(f"not verified after {timeout:g} s: {why_not(view)}", err=True)
    return view


def _waits_for(control: Control, job: str) -> str:
    """Name the phases and stores of what is not done."""
    _, undone = reading.undone(control.database, job)
    return ", ".join(sorted({f"{each.phase.value} {each.adapter}" for each in undone})) or "its next step"
