"""`expunge memory submit|run|inspect`: a report that is made from facts, step by step, from a shell."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from typing import Annotated, Final

import typer

from adapters.drafts.lease import LEASE
from adapters.drafts.shell import opened
from adapters.drafts.step import Fault, Pass, Step, never
from adapters.drafts.view import Draft, JobView
from adapters.memory.shell import Json, Project, State, Tenant, User, say
from orchestrator import Scope, Target

Job = Annotated[str, typer.Argument(help="Id of the draft job; used once.", show_default=False)]
Keys = Annotated[list[str] | None, typer.Option(help="A key that this step uses; repeatable. Without any: the scope.")]


def submit(
    job: Job,
    tenant: Tenant,
    user: User,
    project: Project = None,
    collect: Keys = None,
    draft: Keys = None,
    redo: Annotated[str | None, typer.Option(help="A job to begin anew from its first step that has changed.")] = None,
    *,
    state: State = None,
    as_json: Json = False,
) -> None:
    """Submit a report over the facts that hold now. Whatever changes in the scope afterwards, it is not made.

    Of a job that is redone those checkpoints are kept whose steps were said to use the same as now.
    """
    steps = {step: keys for step, keys in ((Step.COLLECT, collect), (Step.DRAFT, draft)) if keys}
    with opened(state) as adapter:
        scope = Scope(tenant=tenant, user=user, project=project)
        told = adapter.runtime.submit(scope, job, steps=steps or None, redo=redo)
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
    with opened(state) as adapter:
        scope = Scope(tenant=tenant, user=user, project=project)
        told = adapter.runtime.run(scope, job, lease_seconds=lease_seconds, fault=_dies_at(fault))
    say(_told(told), [f"{told.state.value} {job}"], as_json=as_json)


def inspect(
    job: Job, tenant: Tenant, user: User, project: Project = None, *, state: State = None, as_json: Json = False
) -> None:
    """Show a draft job: where it stands, and what it has made so far, whether that can still be published or not."""
    with opened(state) as adapter:
        told = adapter.runtime.inspect(Scope(tenant=tenant, user=user, project=project), job)
    lines = [f"{job}: {told.state.value}" if told.failure is None else f"{job}: {told.state.value}: {told.failure}"]
    lines += [f"{draft.step.value}: {draft.text}" for draft in told.drafts if draft is not told.report]
    lines.append("published: none" if told.report is None else f"published: {told.report.text}")
    say(_told(told), lines, as_json=as_json)


_WHO: Final = "--tenant acme --user ann --project trips"
COMMANDS: Final[Mapping[Callable[..., None], str]] = {
    submit: f"Example: expunge memory submit report-2 --redo report-1 --collect theme --draft language {_WHO}",
    run: f"Example: expunge memory run report-1 {_WHO}",
    inspect: f"Example: expunge memory inspect report-1 {_WHO}",
}
"""What each of these is registered with."""


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
