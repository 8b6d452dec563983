"""Options that several commands share, opening what they read, and printing for people and for machines."""

from __future__ import annotations

import getpass
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from orchestrator.bootstrap import Control, open_control
from orchestrator.domain.errors import InvalidRequest
from orchestrator.settings import state_dir

StateDir = Annotated[Path | None, typer.Option("--dir", help="State directory (default: EXPUNGE_DIR, else .expunge).")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Tenant = Annotated[str | None, typer.Option(help="Only what is of this tenant: another tenant's looks missing.")]
TenantName = Annotated[str, typer.Option("--tenant", help="Organisation of the user.")]
UserName = Annotated[str, typer.Option("--user", help="Whose data.")]
# Not the pattern itself: brackets are markup to what prints the help.
REFERENCE = "Case or message id: lower-case letters, digits and . _ / -"

_ID: Final = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@contextmanager
def opened(directory: Path | None, *, create: bool = False) -> Iterator[Control]:
    """Open the control database of the chosen state directory, and give it back at the end."""
    control = open_control(state_dir(directory), create=create)
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


def given_id(name: str, text: str | None) -> str | None:
    """Give an id as it was printed; raise `InvalidRequest` for what is none."""
    if text is not None and _ID.fullmatch(text) is None:
        raise InvalidRequest(f"--{name} takes an id as it was printed", field=name)
    return text


def show(document: Any, lines: list[str], *, as_json: bool) -> None:  # noqa: ANN401 - any JSON document
    """Print the document for a machine or the lines for a person."""
    if as_json:
        typer.echo(as_text(document, indent=2))
    else:
        for line in lines:
            typer.echo(printable(line))


def as_text(document: Any, indent: int | None = None) -> str:  # noqa: ANN401 - any JSON document
    """Give a document as JSON; times are in the form of ISO 8601."""
    return json.dumps(document, indent=indent, default=_plain)


def printable(text: str) -> str:
    """Escape what would move the cursor or colour a terminal: whoever names a tenant or a key must not write there."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def minute(at: datetime) -> str:
    """Give a time to the minute, in UTC."""
    return f"{at:%Y-%m-%d %H:%M} UTC"


def _plain(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
