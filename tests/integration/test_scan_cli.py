"""`expunge scan` at a shell: what it tells of files and values, its exit codes, and that no value leaves it."""

from __future__ import annotations

import gzip
import json
import os
import pty
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.cli_harness import COMMAND

ADA = "P1234567, the passport of Ada Lovelace"
ZOE = 'Zo\u00eb said: "\u4e2d\u6587 is what I read at home"'
SECRETS = [ADA, "P1234567", "Lovelace", ZOE, "Zo\u00eb", "\u4e2d\u6587", "\\u4e2d", "short one"]


class Scan:
    """Runs `expunge scan` in a folder, and sees that nothing it prints holds a value and that nothing stays behind."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "files"
        self.folder.mkdir()
        self.values = folder / "values"
        self.temporary = folder / "temporary"
        self.temporary.mkdir()
        self.look_for(ADA, ZOE)

    def look_for(self, *values: str) -> None:
        self.values.write_text("".join(f"{value}\n" for value in values))

    def __call__(self, *paths: object, **options: Any) -> tuple[int, str, str]:  # noqa: ANN401 - of subprocess
        words = [*COMMAND, "scan", "--fingerprints-of", str(options.pop("values", self.values)), *map(str, paths)]
        environment = {k: v for k, v in os.environ.items() if not k.startswith("EXPUNGE_")}
        environment |= {"TMPDIR": str(self.temporary), "EXPUNGE_DIR": str(self.folder / "no-state")}
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        done = subprocess.run(words, env=environment, cwd=self.folder, timeout=60, check=False, **options)
        out, error = (done.stdout or b"").decode(), (done.stderr or b"").decode()
        assert "Traceback" not in error
        assert not any(secret in out + error for secret in SECRETS)
        assert [*self.temporary.iterdir()] == []
        return done.returncode, out, error

    def json(self, *paths: object) -> tuple[int, Any]:
        code, out, _ = self(*paths, "--json")
        return code, json.loads(out)


@pytest.fixture
def scan(tmp_path: Path) -> Scan:
    return Scan(tmp_path)


def test_nothing_there_is_0_and_the_control_is_told(scan: Scan) -> None:
    (scan.folder / "a").write_text("nothing of theirs")
    assert scan("a") == (
        0,
        "clean          a: files 1, bytes 17\ncontrol: seen, in a temporary file that was planted for this run\n",
        "",
    )


@pytest.mark.parametrize(
    "stored",
    [
        ZOE.encode(),
        ZOE.encode("utf-16-le"),
        ZOE.encode("utf-16-be"),
        json.dumps({"said": ZOE}).encode(),
        json.dumps({"said": ZOE}, ensure_ascii=False).encode(),
    ],
    ids=["utf-8", "utf-16-le", "utf-16-be", "json-ascii", "json"],
)
def test_found_is_1_and_names_file_and_line(scan: Scan, stored: bytes) -> None:
    (scan.folder / "below").mkdir()
    (scan.folder / "below" / "a").write_bytes(b"\xff" * 5000 + stored)
    (scan.folder / "below" / "b").write_bytes(b"\xff" * 5000)
    code, out, error = scan("below")
    lines = out.splitlines()
    assert (code, error, len(lines)) == (1, "", 3)
    assert lines[0].startswith("found          below: files 2, bytes ")
    assert lines[1].startswith("  found          below/a: ")
    assert lines[1].endswith(", of the values in line 2")


def test_json_tells_paths_files_and_hits_by_line(scan: Scan) -> None:
    (scan.folder / "a").write_text(ADA)
    (scan.folder / "b.gz").write_bytes(gzip.compress(ADA.encode()))
    (scan.folder / "link").symlink_to(scan.values)
    scan.look_for("", ADA, "short one", "  ", ZOE)
    code, document = scan.json(".", "a")
    hits = document["hits"]["2"]
    assert (code, hits > 0) == (1, True)
    folder = {"verdict": "found", "files": 3, "hits": {"2": hits}, "bytes": len(ADA) + document["files"][1]["bytes"]}
    assert document == {
        "verdict": "found",
        "control_found": True,
        "values": 3,
        "not_probeable": {"3": ["utf_8"]},
        "hits": {"2": hits},
        "paths": [
            {"path": ".", **folder},
            {"path": "a", "verdict": "found", "files": 1, "hits": {"2": hits}, "bytes": len(ADA)},
        ],
        "files": [
            {"path": "a", "verdict": "found", "bytes": len(ADA), "hits": {"2": hits}, "doubt": None, "format": None},
            {**document["files"][1], "path": "b.gz", "verdict": "not_scannable", "doubt": None, "format": "gzip"},
            {"path": "link", "verdict": "inconclusive", "bytes": 0, "hits": {}, "doubt": "leads_out", "format": None},
        ],
    }


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda path: path.write_bytes(gzip.compress(ADA.encode())), "  not_scannable  ./b (gzip)"),
        (lambda path: path.symlink_to("/etc"), "  inconclusive   ./b (leads_out)"),
        (lambda path: path.symlink_to("b"), None),
    ],
    ids=["compressed", "link that leads out", "link to itself"],
)
def test_what_could_not_be_looked_at_is_4(scan: Scan, make: Callable[[Path], object], told: str | None) -> None:
    (scan.folder / "a").write_text("nothing of theirs")
    make(scan.folder / "b")
    code, out, _ = scan("./") if told else scan("b")
    assert (code, (told or "  inconclusive   b (unreadable)").replace("./", "") in out.splitlines()) == (4, True), out
    (scan.folder / "a").write_text(ADA)
    assert scan(".", "b")[0] == 1, "what was found comes first"


@pytest.mark.parametrize(("length", "code"), [(15, 4), (16, 0), (17, 0)])
def test_value_under_16_bytes_is_named_by_its_line_and_exits_4(scan: Scan, length: int, code: int) -> None:
    (scan.folder / "a").write_text("nothing of theirs")
    scan.look_for(ADA, "short one, or not so"[:length])
    got, out, _ = scan("a")
    assert (got, "not_probeable  line 2: " in out, "in utf_8" in out) == (code, code == 4, code == 4)


@pytest.mark.parametrize("around", ["{}", "{}\n", "{}\r\n\r\n", "\ufeff{}\n"], ids=["bare", "line", "CRLF", "BOM"])
@pytest.mark.parametrize("length", [15, 16])
def test_values_come_from_standard_input_as_any_editor_writes_them(scan: Scan, around: str, length: int) -> None:
    (scan.folder / "a").write_text(ADA[:length])
    code, out, _ = scan("a", "--json", values="-", input=around.format(ADA[:length]).encode())
    document = json.loads(out)
    assert (code, document["hits"], document["not_probeable"]) == (
        (1, {"1": 1}, {}) if length == 16 else (4, {}, {"1": ["utf_8"]})
    )


def test_value_in_the_name_of_a_file_is_not_printed(scan: Scan) -> None:
    (scan.folder / f"of {ADA}").mkdir()
    (scan.folder / f"of {ADA}" / f"{ADA}.txt").write_text(ADA)
    code, out, _ = scan(".")
    assert (code, "  found          of (line 1)/(line 1).txt: " in out) == (1, True)
    assert scan.json(".")[1]["files"][0]["path"] == "of (line 1)/(line 1).txt"


def test_path_that_is_named_twice_is_looked_at_once(scan: Scan) -> None:
    (scan.folder / "a").write_text("nothing of theirs")
    assert len(scan.json("a", "./a", "a")[1]["files"]) == 1


@pytest.mark.parametrize(
    ("values", "content", "told"),
    [
        ("none", None, "--fingerprints-of names: No such file or directory"),
        (".", None, "--fingerprints-of names: Is a directory"),
        (ADA, None, "--fingerprints-of names: No such file or directory"),
        ("-", b"", "no value to look for"),
        ("-", b"\n  \n\r\n", "no value to look for"),
        ("-", ADA.encode() + b"\nLovelace \xff\n", "line 2 of the values is no text in UTF-8"),
    ],
    ids=["missing", "folder", "a value in its place", "empty", "blank", "no text"],
)
def test_values_that_cannot_be_read_are_one_line_and_2(
    scan: Scan, values: str, content: bytes | None, told: str
) -> None:
    (scan.folder / "a").write_text(ADA)
    code, out, error = scan("a", values=values, input=content)
    assert (code, out, told in error, len(error.splitlines())) == (2, "", True, 1), error


@pytest.mark.parametrize(("path", "why"), [("none", "No such file"), ("a/b", "Not a directory")])
def test_missing_path_is_one_line_and_2(scan: Scan, path: str, why: str) -> None:
    (scan.folder / "a").write_text("nothing of theirs")
    code, out, error = scan("a", path)
    assert (code, out, len(error.splitlines())) == (2, "", 1)
    assert f"cannot look at {path}: {why}" in error


def test_full_temporary_folder_is_one_line_and_1(scan: Scan) -> None:
    (scan.folder / "a").write_text("nothing of theirs")
    code, out, error = scan("a", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)))
    assert (code, out, "cannot plant the control" in error, len(error.splitlines())) == (1, "", True, 1), error


@pytest.mark.parametrize("as_json", [False, True])
def test_control_that_is_not_seen_leaves_nothing_clean(scan: Scan, *, as_json: bool) -> None:
    (scan.folder / "a").write_text("nothing of theirs")
    code = (
        "from orchestrator import cli\n"
        "whole = cli.scan.forms\n"
        "cli.scan.forms = lambda text: [*whole(text)][:-1]\n"  # the last encoding is not planted
        "cli.main()\n"
    )
    words = [sys.executable, "-c", code, "scan", "--fingerprints-of", str(scan.values), str(scan.folder)]
    done = subprocess.run([*words, "--json"] if as_json else words, capture_output=True, timeout=60, check=False)
    assert done.returncode == 4
    if as_json:
        document = json.loads(done.stdout)
        assert (document["control_found"], document["verdict"]) == (False, "inconclusive")
        assert [file["doubt"] for file in document["files"]] == ["no_control"]
    else:
        first, last = done.stdout.decode().splitlines()
        assert (first.startswith("inconclusive "), last.startswith("control: not seen")) == (True, True)
        (scan.folder / "a").write_text(ADA)
        done = subprocess.run(words, capture_output=True, timeout=60, check=False)
        assert [line[:7] for line in done.stdout.decode().splitlines()] == ["found  ", "  found", "control"]
        assert done.returncode == 1


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    ends = pty.openpty()
    yield ends
    for end in ends:
        os.close(end)


def test_progress_is_shown_on_a_terminal_alone(
    scan: Scan, terminal: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")  # on one that says that it is dumb nothing is drawn
    (scan.folder / "a").write_bytes(b"nothing of theirs" * 100_000)
    code, out, _ = scan("a", stderr=terminal[1])
    shown = os.read(terminal[0], 65_536)
    assert (code, out.startswith("clean "), b"MB" in shown) == (0, True, True)
    assert scan("a")[2] == ""


def test_no_other_command_loads_numpy() -> None:
    code = "import sys, orchestrator, orchestrator.cli; orchestrator.cli.build(); print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, b"False\n")
