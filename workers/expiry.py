"""`expunge purge-expired`: the look for what has expired, now instead of in the next turn of a worker."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from orchestrator.bootstrap import open_control, open_engine
from orchestrator.domain.abilities import ExpiringSource
from orchestrator.service.expire import look
from orchestrator.settings import state_dir
from workers.main import StateDir


def purge_expired(
    directory: StateDir = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,  # noqa: FBT002 - a flag
) -> None:
    """Open a job for each scope in which something has expired; workers carry them to their end.

    Workers look by themselves, every `expiry.every`. What an open job is at already
    gets no second one.
    """
    control = open_control(state_dir(directory), create=False)
    try:
        adapters = open_engine(control).adapters.values()
        sources = [adapter for adapter in adapters if isinstance(adapter, ExpiringSource)]
        jobs = [str(job) for source in sources for job in look(source, control.acceptance)]
        for adapter in adapters:
            adapter.close()
    finally:
        control.close()
    if as_json:
        typer.echo(json.dumps({"jobs": jobs}, indent=2))
        return
    for job in jobs:
        typer.echo(f"job {job}: filed (expunge status {job} tells where it is)")
    if not jobs:
        typer.echo("nothing has expired that no open job is at already")
