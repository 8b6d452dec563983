"""Sparse files: a hole costs nothing, and what lies beside it, or half in it, is found."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from orchestrator.scan.reading import extents
from orchestrator.scan.report import Verdict
from orchestrator.scan.scanner import scan
from tests.unit.scan_harness import BY, CONTROL, MARKER, NOISE, VALUE, folder, look, of

__all__ = ["folder"]


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
