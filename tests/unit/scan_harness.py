"""A folder with a file to look at and the control, and a scan of it for one value."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from orchestrator import Keyring
from orchestrator.scan.fingerprints import Fingerprinter
from orchestrator.scan.report import FileReport, Report
from orchestrator.scan.scanner import scan

BY = Fingerprinter.of(Keyring(current="tk-1", keys={"tk-1": bytes(range(32))}))
VALUE = b"P1234567, the passport of Ada Lovelace"
MARKER = b"a live record that was planted"
CONTROL = BY.of_bytes(MARKER).rows
WANTED = {"job": BY.of_bytes(VALUE).rows}
NOISE = random.Random(4).randbytes(20_000)  # noqa: S311 - an example, not a secret


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Hold `a`, which is clean, and `z`, the control."""
    (tmp_path / "a").write_bytes(NOISE)
    (tmp_path / "z").write_bytes(MARKER)
    return tmp_path


def look(*paths: Path, **options: Any) -> Report:  # noqa: ANN401 - of `scan`
    return scan(paths, WANTED, by=BY, control=CONTROL, chunk=4096, **options)


def of(report: Report, path: Path) -> FileReport:
    (file,) = [file for file in report.files if file.path == path]
    return file
