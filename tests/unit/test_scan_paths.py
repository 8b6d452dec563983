"""Which files a scan comes to: folders in their order, links that lead out, and what is no file."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from orchestrator.scan.reading import look_at
from orchestrator.scan.report import Doubt, Report, Verdict
from orchestrator.scan.sieve import Sieve
from tests.unit.scan_harness import BY, CONTROL, VALUE, folder, look, of

__all__ = ["folder"]


def doubts(report: Report) -> dict[str, Doubt]:
    return {file.path.name: file.doubt for file in report.files if file.doubt is not None}


def test_pipe_that_takes_the_place_of_a_file_does_not_keep_us_waiting(folder: Path) -> None:
    (folder / "a").unlink()
    os.mkfifo(folder / "a")
    assert look_at(folder / "a", Sieve(BY, [CONTROL]), lambda _: None).doubt is Doubt.NOT_A_FILE


def test_pipes_and_sockets_below_a_folder_keep_no_bytes(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        here = Path.cwd()
        os.chdir(folder)  # the name of a socket may be no longer than a hundred bytes
        try:
            listening.bind("socket")
        finally:
            os.chdir(here)
        assert look(folder).verdict is Verdict.CLEAN
        for named in ("pipe", "socket"):
            assert doubts(look(folder / named, folder / "z")) == {named: Doubt.NOT_A_FILE}


def test_device_is_inconclusive(folder: Path) -> None:
    assert doubts(look(Path(os.devnull), folder)) == {"null": Doubt.NOT_A_FILE}


def test_link_that_is_named_is_followed(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    away = tmp_path_factory.mktemp("away")
    (away / "file").write_bytes(VALUE)
    (folder / "link").symlink_to(away)
    report = look(folder / "link", folder / "z")
    assert of(report, folder / "link" / "file").verdict is Verdict.FOUND


def test_link_on_the_way_is_not_followed_and_told_where_it_leads_out(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    away = tmp_path_factory.mktemp("away")
    (away / "file").write_bytes(VALUE)
    (folder / "below").mkdir()
    for name, target in {
        "file": folder / "a",
        "folder": folder / "below",
        "back": folder,
        "itself": folder / "itself",
        "gone": folder / "gone",
        "out": away,
        "out_file": away / "file",
        "lost": away / "none" / "none",
    }.items():
        (folder / f"to_{name}").symlink_to(target)
    report = look(folder)
    assert doubts(report) == dict.fromkeys(["to_out", "to_out_file", "to_lost"], Doubt.LEADS_OUT)
    assert report.of("job") is Verdict.INCONCLUSIVE
    report = look(folder, away)
    assert (doubts(report), report.of("job")) == ({"to_lost": Doubt.LEADS_OUT}, Verdict.FOUND)


@pytest.mark.parametrize("first", [True, False], ids=["is removed", "is made"])
def test_link_that_leads_out_only_for_a_while_is_told(folder: Path, *, first: bool) -> None:
    link = folder / "link"
    if first:
        link.symlink_to("/etc")
    change = iter([link.unlink if first else lambda: link.symlink_to("/etc")])
    report = look(folder, told=lambda *_: next(change, lambda: None)())
    assert (link.is_symlink(), doubts(report)) == (not first, {"link": Doubt.LEADS_OUT})


def test_files_come_in_the_same_order_and_once(folder: Path) -> None:
    (folder / "b").mkdir()
    for name in ("2", "10", "\udcff", "c"):
        (folder / "b" / name).write_bytes(b"")
    report = look(folder / "z", folder, folder / "b")
    order = ["z", "a", "10", "2", "c", "\udcff"]
    assert [file.path.name for file in report.files] == order
    assert [file.named.name for file in report.files] == ["z", *[folder.name] * 5]
