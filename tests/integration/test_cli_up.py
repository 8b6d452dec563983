"""`expunge up` is alone on its state directory, and what it has started ends with it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from adapters.demo.processes import wait_for
from tests.integration.cli_harness import COMMAND, Shell


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 40
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def of(state: Path) -> dict[int, str]:
    """Name the running processes whose command line has a folder."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if str(state).encode() in words:
            found[int(folder.name)] = " ".join(word.decode() for word in words)
    return found


@pytest.fixture
def up(tmp_path: Path) -> Iterator[tuple[Shell, subprocess.Popen[bytes], Path]]:
    run, log = Shell(tmp_path / "state"), tmp_path / "up.log"
    assert run("init")[0] == 0
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*COMMAND, "up", "--dir", str(run.state)], env=run.environment(), stdout=out, stderr=out
        )
    try:
        wait_for("the cache", (run.state / "cache.port").exists)
        yield run, process, log
    finally:
        process.terminate()
        process.wait(40)


def test_second_one_is_refused_and_harms_nothing(up: tuple[Shell, subprocess.Popen[bytes], Path]) -> None:
    run, process, _ = up
    port = (run.state / "cache.port").read_text()
    began = time.monotonic()
    code, out, error = run("up")
    assert (code, out, "runs already" in error, len(error.splitlines())) == (3, "", True, 1)
    assert time.monotonic() - began < 30
    assert process.poll() is None
    assert (run.state / "cache.port").read_text() == port


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="looks for processes where Linux shows them")
def test_what_it_has_started_ends_when_it_is_killed(up: tuple[Shell, subprocess.Popen[bytes], Path]) -> None:
    run, process, log = up
    until(lambda: len(of(run.state)) == 4)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    until(lambda: of(run.state) == {})
    assert "Traceback" not in log.read_text()
    # The kernel has let go of the lock: the next one may begin.
    successor = subprocess.Popen([*COMMAND, "up"], env=run.environment(), stderr=subprocess.PIPE)
    try:
        wait_for("the cache", (run.state / "cache.port").exists)
    finally:
        successor.terminate()
        successor.communicate(timeout=40)


def test_its_lines_are_json_and_no_banner(up: tuple[Shell, subprocess.Popen[bytes], Path]) -> None:
    run, process, log = up
    job = ("request", "--key", "nothing", "--tenant", "acme", "--user", "ann", "--reason", "operator", "--wait")
    assert run(*job)[0] == 5, "the worker is at work"
    assert process.poll() is None
    assert [line for line in log.read_text().splitlines() if not line.startswith('{"')] == []
