"""What the commands of drafts share: the configured adapter, and the option for a project."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from adapters.drafts.adapter import NAME, DraftsAdapter
from adapters.memory.shell import using

Project = Annotated[str | None, typer.Option(help="Project; without it, what holds for the user in general.")]


@contextmanager
def opened(state: Path | None) -> Iterator[DraftsAdapter]:
    """Open the drafts as `using` does."""
    with using(state, NAME, "the drafts", hint=f" Is [adapters.{NAME}] url right?") as adapter:
        yield adapter
