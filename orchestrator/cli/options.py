"""Options that several commands share, and printing for people and for machines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

StateDir = Annotated[Path | None, typer.Option("--dir", help="State directory (default: EXPUNGE_DIR, else .expunge).")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Tenant = Annotated[str | None, typer.Option(help="Only jobs of this tenant: another tenant's look missing.")]


def show(document: Any, lines: list[str], *, as_json: bool) -> None:  # noqa: ANN401 - any JSON document
    """Print the document for a machine or the lines for a person."""
    if as_json:
        typer.echo(json.dumps(document, indent=2, default=str))
    else:
        for line in lines:
            typer.echo(line)
