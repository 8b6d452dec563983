"""What the commands of this store share: options, exit codes, and how refusals are told. No error repeats a value."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated, Any, Final, cast

import typer

from adapters.memory.adapter import MemoryAdapter
from adapters.memory.sources import SourceKind
from adapters.memory.store import MemoryStore
from adapters.memory.versions import VersionConflict
from orchestrator import ErasureError, InvalidRequest, Refused, Scope

EXIT_FAILED: Final = 1
EXIT_INVALID: Final = 2
EXIT_REFUSED: Final = 3
EXIT_NOTHING: Final = 5

Source = Annotated[str, typer.Option(help="Message, document or event that says so.", show_default=False)]
Kind = Annotated[SourceKind, typer.Option(help="What the source is, if it is new.")]
DerivedFrom = Annotated[list[str] | None, typer.Option(help="A source behind a new one; repeatable.")]
Tenant = Annotated[str, typer.Option(help="Tenant.", show_default=False)]
User = Annotated[str, typer.Option(help="User whose it is.", show_default=False)]
Project = Annotated[str | None, typer.Option(help="Project; without it, what holds for the user in general.")]
State = Annotated[Path | None, typer.Option("--dir", help="State directory (default: EXPUNGE_DIR, else .expunge).")]
Json = Annotated[bool, typer.Option("--json", help="Answer in JSON.")]


@contextmanager
def opened(state: Path | None) -> Iterator[MemoryAdapter]:
    """Open the memory store as `using` does."""
    with using(state, "memory", "the memory store", hint=" Is [adapters.memory] url right?") as adapter:
        yield adapter


@contextmanager
def using(state: Path | None, name: str, what: str, *, hint: str) -> Iterator[Any]:
    """Open an adapter of the configuration; refusals and wrong requests become exit codes.

    Where it is not enabled, nothing is made: no deletion job would reach it.
    """
    from orchestrator import open_adapter  # noqa: PLC0415 - settings are read when a command runs

    try:
        with closing(cast("Any", open_adapter(state, name))) as adapter:  # each of ours can be closed
            yield adapter
    except VersionConflict as error:
        told, code = f"{error} It is at version {error.version} ({error.state}).", EXIT_REFUSED
    except Refused as error:
        told, code = str(error), EXIT_REFUSED
    except InvalidRequest as error:
        told, code = str(error), EXIT_INVALID
    except ErasureError as error:
        told, code = f"{what} cannot be used: {error}{hint} ({error.code})", EXIT_FAILED
    else:
        return
    typer.echo(f"expunge: {told}", err=True)
    raise typer.Exit(code)


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
