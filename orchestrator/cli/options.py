"""Options that several commands share, opening what they read, and printing for people and for machines."""

from __future__ import annotations

import getpass
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from orchestrator.bootstrap import Control, open_control
from orchestrator.domain.errors import InvalidRequest
from orchestrator.settings import state_dir

StateDir = Annotated[Path | None, typer.Option("--dir", help="State directory (default: EXPUNGE_DIR, else .expunge).")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Tenant = Annotated[str | None, typer.Option(help="Only jobs of this tenant: another tenant's look missing.")]


@contextmanager
def opened(directory: Path | None) -> Iterator[Control]:
    """Open the control database of the chosen state directory, and give it back at the end."""
    control = open_control(state_dir(directory))
    try:
        yield control
    finally:
        control.close()


def requester() -> str:
    """Name who runs this command; the ledger keeps a keyed hash of it alone."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may run under a number that has no name
        return f"uid {os.getuid()}"


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
