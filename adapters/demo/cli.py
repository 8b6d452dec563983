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
    """Forget two facts for real, kill a worker on the way, and check every claim. Exit 1 if anything is false."""
    # The story loads every store's driver, which no other command needs.
    from adapters.demo.story import tell  # noqa: PLC0415

    if keep is not None and keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        message = "--keep takes a folder that is new or empty: what lies in this one would be mixed with the demo's"
        raise InvalidRequest(message, field="keep")
    folder = Path(tempfile.mkdtemp(prefix="expunge-demo-")) if keep is None else keep
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    began = time.monotonic()
    say = (lambda _line: None) if as_json else typer.echo
    try:
        story, checks = tell(folder, fault, say)
    finally:
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)
    document = {
        "ok": all(check.ok for check in checks),
        "jobs": [{key: job[key] for key in ("id", "state", "selector", "attempts")} for job in story.jobs],
        "receipts": story.receipts,
        "checks": [{"name": check.name, "ok": check.ok, "detail": check.detail} for check in checks],
        "not_covered": ["transcript.txt: a file outside the registered stores"],
        "raw_file_hits": story.hits,
        "seconds": round(time.monotonic() - began, 1),
    }
    if as_json:
        typer.echo(json.dumps(document, indent=2))
    else:
        for check in checks:
            typer.echo(f"{'ok    ' if check.ok else 'FALSE '} {check.name}: {check.detail}")
        typer.echo("not covered: transcript.txt, a file outside the registered stores")
        typer.echo(f"{'all true' if document['ok'] else 'something is false'} after {document['seconds']} s")
    raise typer.Exit(0 if document["ok"] else 1)
