"""`expunge demo`."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer

from orchestrator import InvalidRequest


def demo(
    fault: Annotated[
        str | None,
        typer.Option(
            "--break", help="Plant the fault that this check is there to catch; `--break ?` names the checks."
        ),
    ] = None,
    keep: Annotated[Path | None, typer.Option(help="Leave everything in this new folder for inspection.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,  # noqa: FBT002
) -> None:
    """Forget for real in five stores, through a crash, a hold and a kept copy, and check every claim.

    The exit code is 1 where one of them is false.

    Example: expunge demo --keep demo-state
    """
    # The story loads every store's driver, which no other command needs.
    from adapters.demo.checks import CHECKS, look  # noqa: PLC0415
    from adapters.demo.progress import narrating  # noqa: PLC0415
    from adapters.demo.report import document, show  # noqa: PLC0415
    from adapters.demo.story import ACTS, played  # noqa: PLC0415

    if fault is not None and fault not in CHECKS:
        raise InvalidRequest(f"--break takes one of: {', '.join(CHECKS)}", field="break")
    if keep is not None and keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        message = "--keep takes a folder that is new or empty: what lies in this one would be mixed with the demo's"
        raise InvalidRequest(message, field="keep")
    folder = Path(tempfile.mkdtemp(prefix="expunge-demo-")) if keep is None else keep
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    began = time.monotonic()
    try:
        with narrating(ACTS, quiet=as_json) as narrator, played(folder, fault, narrator) as stage:
            verdicts = look(stage, fault)
            told = document(stage, verdicts, time.monotonic() - began)
    finally:
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)
    if as_json:
        typer.echo(json.dumps(told, indent=2))
    else:
        show(told)
    raise typer.Exit(0 if told["ok"] else 1)
