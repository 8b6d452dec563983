"""A file of requests and the command that files it, in this process."""

from __future__ import annotations

import getpass
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import structlog

from orchestrator.bootstrap import Control, open_control
from orchestrator.cli import main
from orchestrator.initialise import initialise
from orchestrator.store.migrate import upgrade

HEADER = "tenant,user,project,key,memory,source,subject,reason,reference,idempotency_key"
CANARY = "zq7canary"
Run = Callable[..., tuple[object, str, str]]
Write = Callable[..., Path]


@pytest.fixture
def control(tmp_path: Path) -> Iterator[Control]:
    initialise(tmp_path / "state")
    made = open_control(tmp_path / "state")
    upgrade(made.database)
    yield made
    made.close()
    structlog.reset_defaults()


@pytest.fixture
def run(control: Control, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run `expunge request --file` in this process; nothing that it prints repeats what stands in the file."""
    monkeypatch.setenv("EXPUNGE_DIR", str(control.settings.state_dir))
    monkeypatch.setattr(getpass, "getuser", lambda: "operator")

    def call(name: str | Path, *words: str) -> tuple[object, str, str]:
        monkeypatch.setattr(sys, "argv", ["expunge", "request", "--file", str(name), *words])
        with pytest.raises(SystemExit) as stop:
            main()
        out, error = capsys.readouterr()
        assert CANARY not in (out + error).casefold()
        return stop.value.code, out, error

    return call


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
