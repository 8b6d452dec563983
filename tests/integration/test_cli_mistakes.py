"""Whatever stops a command: a line or two that say what to do, the documented exit code, and never a stack trace."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import typer
from structlog.testing import capture_logs

from orchestrator.bootstrap import open_control
from orchestrator.cli import build, failures
from orchestrator.domain.errors import JobNotFound
from orchestrator.initialise import initialise
from orchestrator.store.migrate import upgrade
from orchestrator.unusable import advice
from tests.integration.cli_harness import COMMAND, Shell, commands
from workers.main import run_dispatcher

WHO = ("--tenant", "acme", "--user", "ann")
PROJECT = ("--project", "trips")


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    state = tmp_path_factory.mktemp("mistakes") / "state"
    initialise(state)
    control = open_control(state)
    upgrade(control.database)
    control.close()
    return Shell(state)


TREE = dict(commands(typer.main.get_command(build())))


def test_tree_holds_every_family() -> None:
    assert {("request",), ("hold", "add"), ("memory", "put"), ("worker",), ("tombstone", "check")} <= TREE.keys()


def test_readme_names_every_command() -> None:
    text = (Path(__file__).parents[2] / "README.md").read_text()
    table = {name for row in text.splitlines() if row.startswith("| ") for name in re.findall(r"`([a-z -]+)`", row)}
    assert {" ".join(path) for path, command in TREE.items() if not hasattr(command, "commands")} <= table


@pytest.mark.parametrize("path", TREE, ids=" ".join)
def test_wrong_use_of_any_command_is_told_in_a_line_and_exits_2(shell: Shell, path: tuple[str, ...]) -> None:
    wrong = [(*path, "--no-such-option")]
    if any(parameter.required for parameter in TREE[path].params):
        wrong.append(path)
    if hasattr(TREE[path], "commands"):
        wrong.append((*path, "no-such-command"))
    with ThreadPoolExecutor() as pool:
        for code, out, error in pool.map(lambda words: shell(*words), wrong):
            assert code == 2, error
            lines = error.splitlines()
            assert [line.partition(":")[0] for line in lines] == [" ".join(["expunge", *path]), "what it takes"]
            assert out == ""


@pytest.mark.parametrize("path", [path for path, command in TREE.items() if hasattr(command, "commands")], ids=" ".join)
def test_group_alone_shows_its_help_and_exits_2(shell: Shell, path: tuple[str, ...]) -> None:
    code, out, error = shell(*path)
    assert (code, "Usage" in out, error) == (2, True, "")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("list", "--limit", "abc"), "--limit"),
        (("up", "--workers", "x"), "--workers"),
        (("status", "one", "two"), "unexpected extra argument"),
        (("memory", "put", "key"), "value"),
    ],
)
def test_wrong_value_names_the_option(shell: Shell, words: tuple[str, ...], told: str) -> None:
    code, _, error = shell(*words)
    assert (code, told in error, len(error.splitlines())) == (2, True, 2)


def test_missing_schema_says_what_to_run(tmp_path: Path) -> None:
    initialise(tmp_path / "state")
    code, _, error = Shell(tmp_path / "state")("list")
    assert (code, "expunge migrate" in error, len(error.splitlines())) == (1, True, 1)


@pytest.mark.parametrize(
    ("url", "code", "told"),
    [
        ("sqlite:////no/such/folder/x.db", 1, "x.db is missing: restore it from a backup"),
        ("", 2, "sqlite:///FILE"),
        ("postgresql+psycopg://nobody@127.0.0.1:1/none", 1, "cannot be reached (OperationalError)"),
        ("sqlite:///expunge.toml", 1, "cannot be reached (SQLITE_NOTADB)"),
        ("no url at all", 2, "sqlite:///FILE"),
        ("oracle+nothing://x", 2, "sqlite:///FILE"),
    ],
)
def test_database_that_cannot_be_used_is_one_line(shell: Shell, url: str, code: int, told: str) -> None:
    got, _, error = shell("list", EXPUNGE_DATABASE_URL=url)
    assert (got, told in error, len(error.splitlines())) == (code, True, 1), error


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("list", "--after", "bogus"), "--after takes an id"),
        (("hold", "list", "--after", "bogus"), "--after takes an id"),
        (("worker", "--adapters", ""), "no adapter to serve"),
        (("worker", "--adapters", " , "), "no adapter to serve"),
        (("request", "--key", "a", *WHO, "--reason", "operator", "--idempotency-key", ""), "must not be empty"),
        (("tombstone", "check", *WHO, *PROJECT, "--position", "1", "--source", "", "--text", "x"), "--source must not"),
        (("tombstone", "check", *WHO, *PROJECT, "--position", "1", "--source", "s", "--text", ""), "--text must not"),
        (("memory", "put", "a", "b", *WHO, "--source", "\udcff"), "no text in UTF-8"),
        (("list", "--tenant", "\udcff"), "no text in UTF-8"),
    ],
)
def test_value_that_says_nothing_is_refused(shell: Shell, words: tuple[str, ...], told: str) -> None:
    code, out, error = shell(*words)
    assert (code, out, told in error, len(error.splitlines())) == (2, "", True, 1), error


def test_version_is_told(shell: Shell) -> None:
    code, out, error = shell("--version")
    assert (code, re.fullmatch(r"expunge \d+\.\d+\.\d+\n", out) is not None, error) == (0, True, "")


def test_help_says_what_a_reference_may_hold(shell: Shell) -> None:
    for words in (("request", "--help"), ("hold", "add", "--help")):
        said = " ".join(re.sub("[│╭╮╰╯─]", "", shell(*words, COLUMNS="200", TERMINAL_WIDTH="200")[1]).split())
        assert "lower-case letters, digits and . _ / -" in said


@pytest.mark.parametrize("words", [("worker",), ("dispatcher",), ("up",), ("list",), ("migrate",)], ids=str)
def test_garbage_in_the_place_of_the_database_is_one_line(tmp_path: Path, words: tuple[str, ...]) -> None:
    initialise(tmp_path / "state")
    (tmp_path / "state" / "orchestrator.db").write_bytes(b"garbage " * 1000)
    code, out, error = Shell(tmp_path / "state")(*words)
    assert (code, out, "restore it from a backup" in error, len(error.splitlines())) == (1, "", True, 1), error


def test_garbage_in_the_place_of_the_memory_store_is_one_line(tmp_path: Path) -> None:
    shell = Shell(tmp_path / "state")
    assert shell("init")[0] == 0
    (shell.state / "memory.db").write_bytes(b"garbage " * 1000)
    code, out, error = shell("memory", "current", *WHO)
    assert (code, out, "[adapters.memory] url" in error, len(error.splitlines())) == (1, "", True, 1), error


@pytest.mark.parametrize("url", ["nosuch://host", "", "redis://host:port/0"])
def test_broker_that_nobody_knows_is_one_line(shell: Shell, url: str) -> None:
    for words in (("list",), ("worker",), ("dispatcher",), ("up",)):
        code, _, error = shell(*words, EXPUNGE_BROKER_URL=url)
        assert (code, "broker_url: " in error, len(error.splitlines())) == (2, True, 1), error


@pytest.mark.parametrize(
    ("name", "told"), [("SQLITE_READONLY_DIRECTORY", "cannot be written"), ("SQLITE_CORRUPT", "is damaged")]
)
def test_each_state_of_a_database_has_its_advice(name: str, told: str) -> None:
    cause = sqlite3.OperationalError("P1234567")
    cause.sqlite_errorname = name
    said = advice(sa.exc.OperationalError("SELECT", {}, cause))
    assert said is not None
    assert (told in said, "P1234567" in said) == (True, False)


def test_dispatcher_tells_of_a_failure_ever_less_often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPUNGE_ENGINE__DISPATCH_INTERVAL", "10ms")
    initialise(tmp_path / "state")
    control = open_control(tmp_path / "state")  # without a schema every turn fails
    over = threading.Event()
    with capture_logs() as logs:
        thread = threading.Thread(target=run_dispatcher, args=(control, over))
        thread.start()
        over.wait(3.5)
        failed = [line["failures"] for line in logs if line["event"] == "dispatch.failed"]
        upgrade(control.database)
        end = time.monotonic() + 20
        while not any(line["event"] == "dispatch.recovered" for line in logs) and time.monotonic() < end:
            over.wait(0.05)
        over.set()
        thread.join()
    control.close()
    assert failed[0] == 1
    assert 2 <= len(failed) <= 3, "at once, after a second, and after two more"
    assert [line["failures"] > failed[-1] for line in logs if line["event"] == "dispatch.recovered"] == [True]


def test_demo_does_not_mix_with_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("mine")
    for place in (tmp_path, tmp_path / "letter.txt"):
        code, out, error = Shell(tmp_path)("demo", "--keep", str(place))
        assert (code, out, "new or empty" in error, len(error.splitlines())) == (2, "", True, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_folder_that_cannot_be_used_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    code, _, error = Shell(tmp_path / "file" / "state")("init")
    assert (code, "Not a directory" in error, len(error.splitlines())) == (1, True, 1)


def test_defect_is_told_by_its_type_alone(shell: Shell) -> None:
    code = (
        "from orchestrator import cli\n"
        "def broken(): raise KeyError('P1234567')\n"
        "cli.start.installed = broken\n"
        "cli.main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "adapters"], env=shell.environment(), capture_output=True, timeout=60, check=False
    )
    log, line = done.stderr.decode().splitlines()
    assert (done.returncode, line.startswith("expunge: KeyError: this is a defect")) == (1, True)
    assert ('"command.failed"' in log, '"KeyError"' in log, "broken" in log) == (True, True, True)
    assert b"P1234567" not in done.stderr + done.stdout


def test_reader_that_has_gone_ends_a_command_quietly(shell: Shell) -> None:
    for words in (["adapters", "--json"], ["--help"], ["list", "--help"]):
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run(
            [*COMMAND, *words], env=shell.environment(), stdout=writing, stderr=subprocess.PIPE, timeout=60, check=False
        )
        os.close(writing)
        assert (done.returncode, done.stderr) == (130, b"")


def test_interrupted_command_ends_quietly(shell: Shell) -> None:
    control = open_control(shell.state)
    job = _file(control)
    control.close()
    process = subprocess.Popen(
        [*COMMAND, "watch", job], env=shell.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert job in process.stdout.readline().decode()
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=30)
    assert (process.returncode, error) == (130, b"")


def _file(control: Any) -> str:  # noqa: ANN401 - bootstrap.Control
    from orchestrator import Reason, Scope, Selector, SelectorKind
    from orchestrator.service.accept import Request, accept

    scope, selector = Scope(tenant="acme", user="ann"), Selector(kind=SelectorKind.KEY, value="passport")
    asked = Request(scope=scope, selector=selector, reason=Reason.OPERATOR, requested_by="tester")
    return str(accept(asked, control.acceptance)[0])


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (SystemExit(None), 0),
        (SystemExit(4), 4),
        (SystemExit("said"), 1),
        (KeyboardInterrupt(), 130),
        (typer.Abort(), 130),
        (typer.Exit(5), 5),
        (JobNotFound(), 3),
        (typer.BadParameter("wrong"), 2),
        (OSError("no file"), 1),
    ],
)
def test_everything_that_can_be_raised_has_an_exit_code(error: BaseException, code: int) -> None:
    with capture_logs():
        assert failures.tell(error) == code


def test_mistakes_are_the_framework_s_own_and_defects_are_not() -> None:
    assert issubclass(typer.BadParameter, failures.MISTAKE)
    assert failures.MISTAKE not in {Exception, BaseException}
    assert not isinstance(ValueError(str(uuid.uuid4())), failures.MISTAKE)
