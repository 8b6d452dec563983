"""How the demo tells what happens: live on a terminal, line by line anywhere else, not at all for a program."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress


class Narrator:
    """Hears of each act when it begins, and of each thing that was done or seen; this one keeps it to itself."""

    def act(self, title: str) -> None:
        """Begin the next act."""

    def say(self, line: str) -> None:
        """Tell what was done or seen."""


class Plain(Narrator):
    """Writes lines to standard error."""

    def act(self, title: str) -> None:
        """Write the title."""
        sys.stderr.write(f"{title}\n")

    def say(self, line: str) -> None:
        """Write the line below it."""
        sys.stderr.write(f"  {line}\n")


class Live(Narrator):
    """Shows the act that goes on, with a clock, below the lines that were told."""

    def __init__(self, progress: Progress, acts: int) -> None:
        """Bind it to what is shown."""
        self._progress = progress
        self._task = progress.add_task("", total=acts)
        self._begun = 0

    def act(self, title: str) -> None:
        """Show the title until the next one."""
        self._progress.update(self._task, description=title, completed=self._begun)
        self._begun += 1

    def say(self, line: str) -> None:
        """Leave a line above it."""
        self._progress.console.print(line, markup=False, highlight=False)


@contextmanager
def narrating(acts: int, *, quiet: bool) -> Iterator[Narrator]:
    """Give who tells the story of so many acts; standard output is left to the result."""
    if quiet:
        yield Narrator()
    elif not sys.stderr.isatty():
        yield Plain()
    else:
        from rich.console import Console  # noqa: PLC0415 - only where there is a terminal
        from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

        columns = (SpinnerColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
        with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True) as progress:
            yield Live(progress, acts)
