"""A file of requests and the command that files it, in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from orchestrator.bootstrap import Control
from tests.integration.commands_harness import Run

HEADER = "tenant,user,project,key,memory,source,subject,reason,reference,idempotency_key"
Write = Callable[..., Path]


@pytest.fixture
def file(run: Run) -> Run:
    """Run `expunge request --file`; nothing that it prints repeats what stands in the file."""
    return lambda name, *words: run("request", "--file", str(name), *words)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Give what writes lines, below a header, into a file."""

    def write(*lines: str, header: str = HEADER, name: str = "requests.csv", start: bytes = b"") -> Path:
        path = tmp_path / name
        path.write_bytes(start + "".join(f"{line}\n" for line in (header, *lines) if line).encode())
        return path

    return write


def told(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def outcomes(out: str) -> list[tuple[int, str]]:
    return [(line["row"], line["outcome"]) for line in told(out)]


def jobs(control: Control, columns: str = "id") -> list[tuple[Any, ...]]:
    with control.database.begin() as connection:
        query = sa.text(f"SELECT {columns} FROM deletion_jobs ORDER BY id")  # noqa: S608 - of this file
        return [tuple(row) for row in connection.execute(query)]
