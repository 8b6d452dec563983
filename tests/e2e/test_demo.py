"""The demo as a person runs it. What turns each of its checks false is in `test_demo_faults.py`."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from rich.console import Console
from rich.progress import Progress

from adapters.demo import checks, report
from adapters.demo.checks import CHECKS
from adapters.demo.people import SECRET
from adapters.demo.progress import Live, Narrator, narrating
from adapters.demo.stage import Stage
from adapters.demo.story import ACTS
from tests.integration.json_harness import SCHEMAS, misfits

COLUMNS = 80


def demo(*words: str) -> tuple[int, str, str]:
    """Run the command; give its exit code and what it wrote to each of its two outputs."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("EXPUNGE_")}
    done = subprocess.run(
        [sys.executable, "-m", "orchestrator.cli", "demo", *words],
        env=environment | {"COLUMNS": str(COLUMNS)},
        capture_output=True,
        timeout=280,
        check=False,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.mark.timeout(300)
def test_demo_is_true_and_says_so_as_json(tmp_path: Path) -> None:
    code, text, told = demo("--json", "--keep", str(tmp_path / "kept"))
    said = json.loads(text)
    assert [check for check in said["checks"] if not check["ok"]] == []
    assert list(misfits(said, SCHEMAS["demo"])) == []
    assert (code, said["ok"], told) == (0, True, "")
    assert {"ok", "jobs", "receipts", "checks", "seconds", "not_covered"} <= said.keys()
    jobs = {(job["selector"], job["trigger"]): job for job in said["jobs"]}
    assert {job["state"] for job in said["jobs"]} == {"completed"}
    assert jobs.keys() == {(kind, "request") for kind in ("source", "key", "subject")} | {("expired", "expiry")}
    assert jobs["source", "request"]["attempts"] == 2
    assert len(said["checks"]) >= 20
    assert all(set(check) == {"name", "ok", "detail"} for check in said["checks"])
    assert {receipt["adapter"] for receipt in said["receipts"]} == {"memory", "vector", "cache", "drafts", "backup"}
    assert {receipt["phase"] for receipt in said["receipts"]} == {"revoke", "erase", "verify", "close"}
    assert all(said["traces_before"].values())
    assert {"state", "set-aside.db", "processes.log"} <= {path.name for path in (tmp_path / "kept").iterdir()}


def test_unknown_fault_is_a_usage_error_that_names_the_known_ones() -> None:
    code, text, told = demo("--break", "?")
    assert (code, text) == (2, "")
    assert all(name in told for name in CHECKS)


def test_what_the_command_shows_is_what_the_demo_looks_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adapters.demo.sight.facts", lambda _path: {"of-another": ("tenant-b", "reader-d", "note")})
    told = SimpleNamespace(current={"passport": SECRET})
    stage = cast("Stage", SimpleNamespace(world=SimpleNamespace(source=Path("memory.db")), told=told))
    assert CHECKS["memory_gives_nothing"].look(stage)[0] is False
    told.current.clear()
    assert CHECKS["memory_gives_nothing"].look(stage)[0] is True


def test_table_of_checks_is_readable_in_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    words = "verified 4.2 s before its end; 1 of 1 windows closed in time [not markup] " * 2
    checks = [{"name": name, "ok": name != "cache_gives_nothing", "detail": words} for name in CHECKS]
    report.show({"checks": checks, "not_covered": list(report.NOT_COVERED), "seconds": 17.3})
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= COLUMNS
    assert all(any(line.split()[1:2] == [name] for line in lines) for name in CHECKS), "every name stands as a whole"
    assert [line.split()[1] for line in lines if line.startswith("FALSE")] == ["cache_gives_nothing"]
    shown = " ".join(line[-(COLUMNS - 38) :].strip() for line in lines)
    assert "[not markup]" in shown, "nothing of what was seen is taken for markup"
    assert "not covered: transcript.txt" in "\n".join(lines)
    assert lines[-1] == f"1 of {len(CHECKS)} checks are false after 17.3 s"


def test_story_is_told_in_lines_where_there_is_no_terminal_and_not_at_all_to_a_program(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for quiet in (True, False):
        with narrating(ACTS, quiet=quiet) as narrator:
            narrator.act("Something begins")
            narrator.say("something was seen")
        assert type(narrator) is Narrator if quiet else not isinstance(narrator, Live)
        written = capsys.readouterr()
        assert (written.out, written.err) == ("", "" if quiet else "Something begins\n  something was seen\n")


def test_story_is_told_live_on_a_terminal() -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=COLUMNS)
    with Progress(console=console, auto_refresh=False) as progress:
        live = Live(progress, ACTS)
        live.act("The first act")
        live.say("seen [1 of 2]")
        live.act("The second act")
        progress.refresh()
        (task,) = progress.tasks
        assert (task.description, task.completed, task.total) == ("The second act", 1, ACTS)
    assert "seen [1 of 2]" in screen.getvalue()
    assert "The second act" in screen.getvalue()


def test_terminal_gets_the_live_one(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stderr", screen := Terminal())
    with narrating(ACTS, quiet=False) as narrator:
        assert isinstance(narrator, Live)
        narrator.act("The first act")
        narrator.say("something was seen")
    assert "something was seen" in screen.getvalue()


def test_every_check_names_itself_once_and_can_be_broken() -> None:
    modules = sorted(path.stem for path in Path(checks.__file__).parent.glob("checks_*.py"))
    named = [check.name for module in modules for check in import_module(f"adapters.demo.{module}").CHECKS]
    assert (sorted(named), len(named) >= 20) == (sorted(CHECKS), True)
    on_the_way = {name for name, check in CHECKS.items() if check.plant is None}
    assert on_the_way == {"killed_worker_is_survived", "hold_keeps_everything"}, "these faults act in the story"
