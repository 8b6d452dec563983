"""Options that several commands share, and printing for people and for machines."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from orchestrator.domain.errors import InvalidRequest

StateDir = Annotated[Path | None, typer.Option("--dir", help="State directory (default: EXPUNGE_DIR, else .expunge).")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Tenant = Annotated[str | None, typer.Option(help="Only jobs of this tenant: another tenant's look missing.")]


def chosen(name: str, text: str, among: type[StrEnum]) -> str:
    """Give the text if it is one of these words; raise `InvalidRequest` with all of them if not."""
    if text not in list(among):
        raise InvalidRequest(f"the {name} must be one of: {', '.join(among)}", field=name)
    return text


def show(document: Any, lines: list[str], *, as_json: bool) -> None:  # noqa: ANN401 - any JSON document
    """Print the document for a machine or the lines for a person."""
    if as_json:
        typer.echo(json.dumps(document, indent=2, default=str))
    else:
        for line in lines:
            typer.echo(line)
