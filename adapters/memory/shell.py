"""What the commands of this store share: options, exit codes, and how refusals are told. No error repeats a value."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final, cast

import typer

from adapters.memory.adapter import MemoryAdapter
from adapters.memory.sources import SourceKind
from adapters.memory.store import MemoryStore
from adapters.memory.versions import VersionConflict
from orchestrator import ErasureError, InvalidRequest, Refused, Scope

EXIT_FAILED: Final = 1
EXIT_INVALID: Final = 2
EXIT_REFUSED: Final = 3

Source = Annotated[str, typer.Option(help="Message, document or event that says so.", show_default=False)]
Kind = Annotated[SourceKind, typer.Option(help="What the source is, if it is new.")]
DerivedFrom = Annotated[list[str] | None, typer.Option(help="A source behind a new one; repeatable.")]
Tenant = Annotated[str, typer.Option(help="Tenant.", show_default=False)]
User = Annotated[str, typer.Option(help="User whose it is.", show_default=False)]
State = Annotated[Path | None, typer.Option("--dir", help="State directory (default: EXPUNGE_DIR, else .expunge).")]
Json = Annotated[bool, typer.Option("--json", help="Answer in JSON.")]


@contextmanager
def opened(state: Path | None) -> Iterator[MemoryAdapter]:
    """Open the installed adapter; refusals and wrong requests become exit codes."""
    from orchestrator import open_adapter  # noqa: PLC0415 - settings are read when a command runs

    try:
        adapter = cast("MemoryAdapter", open_adapter(state, "memory"))
        try:
            yield adapter
        finally:
            adapter.close()
    except VersionConflict as error:
        typer.echo(f"expunge: {error} It is at version {error.version} ({error.state}).", err=True)
        raise typer.Exit(EXIT_REFUSED) from None
    except Refused as error:
        typer.echo(f"expunge: {error}", err=True)
        raise typer.Exit(EXIT_REFUSED) from None
    except InvalidRequest as error:
        typer.echo(f"expunge: {error}", err=True)
        raise typer.Exit(EXIT_INVALID) from None
    except ErasureError as error:
        told = f"the memory store cannot be used: {error} Is [adapters.memory] url right? ({error.code})"
        typer.echo(f"expunge: {told}", err=True)
        raise typer.Exit(EXIT_FAILED) from None


def register(store: MemoryStore, scope: Scope, source: str, kind: SourceKind, derived_from: list[str] | None) -> None:
    """Register a source that is new; one that is known stays as it is."""
    if not store.knows_source(scope, source):
        store.register_source(scope, source, kind=kind, derived_from=derived_from or ())


def say(answer: dict[str, object], lines: list[str], *, as_json: bool) -> None:
    """Print an answer, for a program or for a person."""
    for line in [json.dumps(answer, ensure_ascii=False)] if as_json else lines:
        typer.echo(line if as_json else _printable(line))


def _printable(line: str) -> str:
    """Escape what would move the cursor or colour a terminal: a stored text must not write there."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)
