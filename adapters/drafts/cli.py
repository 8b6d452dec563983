"""`expunge memory submit|run|inspect`: a report that is made from facts, step by step, from a shell."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, cast

import typer

from adapters.drafts.adapter import NAME, DraftsAdapter
from adapters.drafts.lease import LEASE
from adapters.drafts.runtime import DraftRuntime
from adapters.drafts.step import Fault, Pass, never
from adapters.drafts.view import Draft, JobView
from adapters.memory.shell import EXIT_FAILED, EXIT_INVALID, EXIT_REFUSED, Json, State, Tenant, User, say
from orchestrator import ErasureError, InvalidRequest, Refused, Scope, Target

Job = Annotated[str, typer.Argument(help="Id of the draft job; used once.", show_default=False)]
Project = Annotated[str | None, typer.Option(help="Project; without it, what holds for the user in general.")]


def submit(
    job: Job, tenant: Tenant, user: User, project: Project = None, *, state: State = None, as_json: Json = False
) -> None:
    """Submit a report over the facts that hold now. Whatever changes in the scope afterwards, it is not made."""
    with _opened(state) as runtime:
        told = runtime.submit(Scope(tenant=tenant, user=user, project=project), job)
    end = "never" if told.memory_expires is None else f"{told.memory_expires:.0f}"
    line = f"submitted {job}: facts used {len(told.used)}, revision {told.memory_rev}, expires {end}"
    say(_told(told), [line], as_json=as_json)


def run(
    job: Job,
    tenant: Tenant,
    user: User,
    project: Project = None,
    lease_seconds: Annotated[float, typer.Option(help="After so long another runner may take over.")] = LEASE,
    fault: Annotated[Fault | None, typer.Option(help="For trying out: die here, as by kill -9.")] = None,
    *,
    state: State = None,
    as_json: Json = False,
) -> None:
    """Do what is left of a draft job and publish it. Exit 3 where its facts have changed, or another runner has it."""
    with _opened(state) as runtime:
        scope = Scope(tenant=tenant, user=user, project=project)
        told = runtime.run(scope, job, lease_seconds=lease_seconds, fault=_dies_at(fault))
    say(_told(told), [f"{told.state.value} {job}"], as_json=as_json)


def inspect(
    job: Job, tenant: Tenant, user: User, project: Project = None, *, state: State = None, as_json: Json = False
) -> None:
    """Show a draft job: where it stands, and what it has made so far, whether that can still be published or not."""
    with _opened(state) as runtime:
        told = runtime.inspect(Scope(tenant=tenant, user=user, project=project), job)
    lines = [f"{job}: {told.state.value}" if told.failure is None else f"{job}: {told.state.value}: {told.failure}"]
    lines += [f"{draft.step.value}: {draft.text}" for draft in told.drafts if draft is not told.report]
    lines.append("published: none" if told.report is None else f"published: {told.report.text}")
    say(_told(told), lines, as_json=as_json)


@contextmanager
def _opened(state: Path | None) -> Iterator[DraftRuntime]:
    """Open the configured adapter; refusals and wrong requests become exit codes.

    Where it is not enabled, nothing is made: no deletion job would reach it.
    """
    from orchestrator import open_adapter  # noqa: PLC0415 - settings are read when a command runs

    try:
        adapter = cast("DraftsAdapter", open_adapter(state, NAME))
        try:
            yield adapter.runtime
        finally:
            adapter.close()
    except Refused as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(EXIT_REFUSED) from None
    except InvalidRequest as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(EXIT_INVALID) from None
    except ErasureError as error:
        typer.echo(f"the drafts cannot be reached: {error} Is [adapters.{NAME}] url right? ({error.code})", err=True)
        raise typer.Exit(EXIT_FAILED) from None


def _dies_at(fault: Fault | None) -> Pass:
    def die(passed: Fault) -> None:
        if passed is fault:
            os.kill(os.getpid(), signal.SIGKILL)

    return never if fault is None else die


def _told(told: JobView) -> dict[str, object]:
    return {
        "job": told.job,
        "state": told.state.value,
        "failure": told.failure,
        "memory_rev": told.memory_rev,
        "memory_expires": told.memory_expires,
        "lease_until": None if told.lease_until_us is None else told.lease_until_us / 1_000_000,
        "used": [_name(target) for target in told.used],
        "checkpoints": [_shown(draft) for draft in told.drafts if draft is not told.report],
        "published": None if told.report is None else _shown(told.report),
    }


def _shown(draft: Draft) -> dict[str, object]:
    used = [_name(target) for target in draft.used]
    return {"step": draft.step.value, "id": draft.target.id, "text": draft.text, "used": used}


def _name(target: Target) -> dict[str, object]:
    return {"kind": target.kind, "id": target.id, "version": target.version}
