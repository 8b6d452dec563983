"""What the commands of drafts share: the configured adapter."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from adapters.drafts.adapter import NAME, DraftsAdapter
from adapters.memory.shell import using


@contextmanager
def opened(state: Path | None) -> Iterator[DraftsAdapter]:
    """Open the drafts as `using` does."""
    with using(state, NAME, "the drafts", hint=f" Is [adapters.{NAME}] url right?") as adapter:
        yield adapter
