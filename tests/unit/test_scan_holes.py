"""Sparse files: a hole costs nothing, and what lies beside it, or half in it, is found."""

from __future__ import annotations

import errno
import os
import random
from pathlib import Path
from typing import Any

import pytest

from orchestrator import Keyring
from orchestrator.scan.fingerprints import Fingerprinter
from orchestrator.scan.reading import extents
from orchestrator.scan.report import FileReport, Report, Verdict
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


def test_hole_of_a_sparse_file_is_passed_over_and_what_is_beside_it_is_found(folder: Path) -> None:
    shown = b"P1234567 of Ada Lovelace"
    with (folder / "sparse").open("wb") as file:
        for place in (2**30, 2**31 - 15, 2**32 - len(shown)):
            file.seek(place)
            file.write(shown)
        file.truncate(2**33)
    assert (folder / "sparse").stat().st_blocks * 512 < 2**20
    told: list[tuple[int, int]] = []
    # The zeros before and after lie in the holes, for the first and for the last of the three.
    wanted = {
        "job": [row for start in range(16) for row in BY.of_bytes((bytes(16) + shown + bytes(16))[start:], 1).rows]
    }
    report = scan([folder], wanted, by=BY, control=CONTROL, told=lambda *both: told.append(both))
    assert of(report, folder / "sparse").size == 2**33
    assert report.hits == {"job": 3 * len(set(wanted["job"]))}
    assert told[-1] == (2**33 + len(NOISE) + len(MARKER),) * 2


def test_parts_between_holes_overlap_by_a_window_and_count_no_position_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [(0, 100), (110, 200), (400, 500), (516, 520)]

    def seek(_: int, place: int, whence: int) -> int:
        for start, end in parts:
            if place < end:
                return max(start, place) if whence == os.SEEK_DATA else end
        raise OSError(errno.ENXIO, "a hole up to the end")

    monkeypatch.setattr(os, "lseek", seek)
    assert [*extents(0, 1000)] == [(0, 115), (100, 215), (385, 515), (501, 535)]
    assert [*extents(0, 525)][-1] == (501, 525)


def test_file_that_is_all_hole_is_clean(folder: Path) -> None:
    with (folder / "sparse").open("wb") as file:
        file.truncate(2**34)
    assert look(folder).verdict is Verdict.CLEAN


def test_file_system_that_knows_no_holes_is_read_from_end_to_end(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.EINVAL, "no such whence")

    monkeypatch.setattr(os, "lseek", refuse)
    (folder / "a").write_bytes(NOISE + VALUE)
    assert look(folder).of("job") is Verdict.FOUND
