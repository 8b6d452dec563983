"""How far something long has come: on standard error, on a terminal alone, and wiped out at the end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress

Told = Callable[[int, int | None], None]
"""Called with the bytes that are done and those of the whole, None where nobody knows."""


@contextmanager
def of_bytes(what: str) -> Iterator[Told | None]:
    """Show a bar over the bytes of files; None where there is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, DownloadColumn, TimeRemainingColumn, TransferSpeedColumn  # noqa: PLC0415

    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with _drawn(*columns) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, whole: bar.update(task, completed=done, total=whole)


@contextmanager
def of_waiting() -> Iterator[Callable[[str], None] | None]:
    """Show what is being waited for, and for how long already; None where there is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415 - only where there is one
    from rich.table import Column  # noqa: PLC0415

    what = TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True))
    with _drawn(SpinnerColumn(), TimeElapsedColumn(), what) as bar:
        task = bar.add_task("", total=None)
        yield lambda text: bar.update(task, description=text)


def _drawn(*columns: Any) -> Progress:  # noqa: ANN401 - the columns of Rich have no common public name
    from rich.console import Console  # noqa: PLC0415 - only where there is a terminal
    from rich.progress import Progress  # noqa: PLC0415

    # What is printed meanwhile goes above the bar, or to where it was sent: never from one stream to the other.
    return Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=sys.stdout.isatty())
