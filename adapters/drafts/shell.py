"""What the commands of drafts share: the configured adapter, and how refusals are told. No error repeats a value."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, cast

import typer

from adapters.drafts.adapter import NAME, DraftsAdapter
from adapters.memory.shell import EXIT_FAILED, EXIT_INVALID, EXIT_REFUSED
from orchestrator import ErasureError, InvalidRequest, Refused

Project = Annotated[str | None, typer.Option(help="Project; without it, what holds for the user in general.")]


@contextmanager
def opened(state: Path | None) -> Iterator[DraftsAdapter]:
    """Open the configured adapter; refusals and wrong requests become exit codes.

    Where it is not enabled, nothing is made: no deletion job would reach it.
    """
    from orchestrator import open_adapter  # noqa: PLC0415 - settings are read when a command runs

    try:
        adapter = cast("DraftsAdapter", open_adapter(state, NAME))
        try:
            yield adapter
        finally:
            adapter.close()
    except Refused as error:
        typer.echo(f"expunge: {error}", err=True)
        raise typer.Exit(EXIT_REFUSED) from None
    except InvalidRequest as error:
        typer.echo(f"expunge: {error}", err=True)
        raise typer.Exit(EXIT_INVALID) from None
    except ErasureError as error:
        typer.echo(
            f"expunge: the drafts cannot be reached: {error} Is [adapters.{NAME}] url right? ({error.code})", err=True
        )
        raise typer.Exit(EXIT_FAILED) from None
