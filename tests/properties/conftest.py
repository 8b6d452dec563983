"""A folder for tests that commit many thousand times, and are about none of what a disk does."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of its own is made in it


@pytest.fixture
def quick_path(tmp_path: Path) -> Iterator[Path]:
    """Give an empty folder that lies in memory where the machine has a place for that."""
    if not os.access(MEMORY, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        yield Path(folder)
