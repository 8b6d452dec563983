"""`expunge purge-expired`: the look for what has expired, now instead of in the next turn of a worker."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import Annotated

import typer

from orchestrator.bootstrap import open_control, open_engine
from orchestrator.domain.abilities import ExpiringSource
from orchestrator.registry import naming
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

    Example: expunge purge-expired --json
    """
    control = open_control(state_dir(directory), create=False)
    try:
        jobs = []
        with ExitStack() as opened:
            adapters = open_engine(control).adapters
            for adapter in adapters.values():
                opened.callback(adapter.close)
            for name, source in adapters.items():
                if isinstance(source, ExpiringSource):
                    with naming(name):
                        jobs += [str(job) for job in look(source, control.acceptance)]
    finally:
        control.close()
    if as_json:
        typer.echo(json.dumps({"jobs": jobs}, indent=2))
        return
    for job in jobs:
        typer.echo(f"job {job}: filed (expunge status {job} tells where it is)")
    if not jobs:
        typer.echo("nothing has expired that no open job is at already")
