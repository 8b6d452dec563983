"""Files that do not hold still, cannot be read, or hide their bytes: told as such, and never called clean."""

from __future__ import annotations

import os
import random
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from orchestrator import Keyring
from orchestrator.scan.fingerprints import Fingerprinter
from orchestrator.scan.reading import TICK, Stamp, look_at
from orchestrator.scan.report import Doubt, FileReport, Report, Verdict
from orchestrator.scan.scanner import scan
from orchestrator.scan.sieve import Sieve

BY = Fingerprinter.of(Keyring(current="tk-1", keys={"tk-1": bytes(range(32))}))
VALUE = b"P1234567, the passport of Ada Lovelace"
MARKER = b"a live record that was planted"
CONTROL = BY.of_bytes(MARKER).rows
WANTED = {"job": BY.of_bytes(VALUE).rows}
NOISE = random.Random(4).randbytes(20_000)  # noqa: S311 - an example, not a secret
PROC = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads a file of /proc")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Hold `a`, which is clean, and `z`, the control."""
    (tmp_path / "a").write_bytes(NOISE)
    (tmp_path / "z").write_bytes(MARKER)
    return tmp_path


def look(*paths: Path, at_byte: tuple[int, Callable[[], object]] | None = None, **said: Any) -> Report:  # noqa: ANN401
    """Scan in pieces of 4,096 bytes; `at_byte` runs something once when so many bytes are read."""
    waiting = [at_byte] if at_byte else []

    def told(done: int, _whole: int) -> None:
        if waiting and done >= waiting[0][0]:
            waiting.pop()[1]()

    return scan(paths, WANTED, by=BY, control=CONTROL, chunk=4096, told=told, **said)


def of(report: Report, path: Path) -> FileReport:
    (file,) = [file for file in report.files if file.path == path]
    return file


def doubts(report: Report) -> dict[str, Doubt]:
    return {file.path.name: file.doubt for file in report.files if file.doubt is not None}


def rewrite(path: Path, place: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(place)
        file.write(content)


def move_over(path: Path) -> None:
    (path.parent.parent / "new").write_bytes(NOISE)
    (path.parent.parent / "new").replace(path)


@pytest.mark.parametrize(
    ("what", "doubt"),
    [
        (lambda path: rewrite(path, len(NOISE), NOISE), Doubt.CHANGED),
        (lambda path: os.truncate(path, 9000), Doubt.CHANGED),
        (lambda path: os.truncate(path, 4096), Doubt.CHANGED),
        (lambda path: rewrite(path, 100, VALUE), Doubt.CHANGED),
        (move_over, Doubt.CHANGED),
        (Path.unlink, Doubt.VANISHED),
    ],
    ids=["grows", "shrinks behind", "shrinks to where we are", "is written to", "is replaced", "goes away"],
)
@pytest.mark.parametrize("when", [4096, 20_000], ids=["while it is read", "after it was read"])
def test_file_that_does_not_hold_still_is_inconclusive(
    tmp_path: Path, what: Callable[[Path], object], doubt: Doubt, when: int
) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    (folder / "a").write_bytes(NOISE)
    (folder / "z").write_bytes(MARKER)
    report = look(folder, at_byte=(when, lambda: what(folder / "a")))
    assert doubts(report) == {"a": doubt}
    assert (report.control_found, report.of("job")) == (True, Verdict.INCONCLUSIVE)


def test_file_that_ends_before_its_size_is_inconclusive(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "preadv", lambda *_: 0)
    assert doubts(look(folder))["a"] is Doubt.CHANGED


@pytest.mark.parametrize("part", [1, 2, 6, 8, 9], ids=["number", "device", "size", "written", "changed"])
def test_each_part_of_a_stamp_tells_two_files_apart(part: int) -> None:
    status = [stat.S_IFREG, *range(1, 10)]
    before = Stamp.of(os.stat_result(status, {"st_mtime_ns": status[8], "st_ctime_ns": status[9]}))
    status[part] += 100
    assert Stamp.of(os.stat_result(status, {"st_mtime_ns": status[8], "st_ctime_ns": status[9]})) != before


def test_file_that_was_written_to_just_now_waits_until_another_write_would_show(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    changed = (folder / "a").stat().st_ctime_ns
    monkeypatch.setattr(time, "sleep", waited.append)
    for age, waits in ((0.0, [TICK]), (TICK * 0.9, [TICK]), (TICK * 1.1, []), (-3600.0, [])):
        monkeypatch.setattr(time, "time_ns", lambda age=age: changed + int(age * 1e9))
        look_at(folder / "a", Sieve(BY, [CONTROL]), lambda _: None)
        assert waited == waits
        waited.clear()


def test_what_was_found_in_a_file_that_changes_stays_found(folder: Path) -> None:
    (folder / "a").write_bytes(VALUE + NOISE)
    report = look(folder, at_byte=(4096, (folder / "a").unlink))
    assert (of(report, folder / "a").verdict, of(report, folder / "a").doubt) == (Verdict.FOUND, Doubt.VANISHED)


def test_file_that_appears_meanwhile_is_inconclusive(folder: Path) -> None:
    report = look(folder, at_byte=(4096, lambda: (folder / "b").write_bytes(VALUE)))
    assert doubts(report) == {"b": Doubt.APPEARED}
    assert report.of("job") is Verdict.INCONCLUSIVE


def test_file_that_vanishes_before_its_turn_is_inconclusive(folder: Path) -> None:
    report = look(folder, at_byte=(4096, (folder / "z").unlink))
    assert (doubts(report)["z"], report.control_found) == (Doubt.VANISHED, False)


def test_named_file_that_goes_away_is_told_once(folder: Path) -> None:
    report = look(folder / "a", folder / "z", at_byte=(4096, (folder / "a").unlink))
    assert of(report, folder / "a").doubt is Doubt.VANISHED


def test_missing_path_is_inconclusive_and_the_others_are_looked_at(folder: Path) -> None:
    (folder / "a").write_bytes(VALUE)
    report = look(folder / "none", folder / "a" / "below", folder)
    assert doubts(report) == {"none": Doubt.VANISHED, "below": Doubt.VANISHED}
    assert report.of("job") is Verdict.FOUND


@contextmanager
def not_root() -> Iterator[None]:
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


def test_what_may_not_be_read_is_inconclusive(folder: Path) -> None:
    closed = folder / "closed"
    closed.mkdir()
    (folder / "a").chmod(0)
    for path in (closed, *folder.parents):
        if path.stat().st_uid == os.geteuid() and path.name.startswith(("pytest", "test", "popen")):
            path.chmod(0o755)
    folder.chmod(0o755)
    closed.chmod(0)
    try:
        with not_root():
            report = look(folder)
    finally:
        closed.chmod(0o700)
    assert doubts(report) == {"a": Doubt.UNREADABLE, "closed": Doubt.UNREADABLE}
    assert (report.control_found, report.of("job")) == (True, Verdict.INCONCLUSIVE)


def test_path_that_the_system_refuses_is_inconclusive(folder: Path) -> None:
    (folder / "loop").symlink_to("loop")
    report = look(folder / ("x" * 300), folder / "loop", folder / "z")
    assert set(doubts(report).values()) == {Doubt.UNREADABLE}


@PROC
def test_error_in_the_middle_of_a_file_is_inconclusive() -> None:
    seen = look_at(Path("/proc/self/mem"), Sieve(BY, [CONTROL]), lambda _: None)
    assert seen.doubt is Doubt.UNREADABLE


@PROC
def test_file_that_hides_its_size_is_inconclusive(folder: Path) -> None:
    report = look(Path("/proc/self/status"), folder)
    assert doubts(report) == {"status": Doubt.CHANGED}


def test_scan_writes_nothing(folder: Path) -> None:
    before = {path: (path.stat().st_mtime_ns, stat.S_IMODE(path.stat().st_mode)) for path in folder.iterdir()}
    look(folder)
    assert {path: (path.stat().st_mtime_ns, stat.S_IMODE(path.stat().st_mode)) for path in folder.iterdir()} == before
