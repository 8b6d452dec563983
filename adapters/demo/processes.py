"""The processes of the demo: ours, started by it and ended by it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

from orchestrator import ExpungeError

PATIENCE = 60.0
LOG = "processes.log"


class Processes:
    """Starts `expunge` commands on one state directory and ends what it started."""

    def __init__(self, folder: Path) -> None:
        self.state = folder / "state"
        self._log = (folder / LOG).open("ab")
        self._running: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._running):
            if process.poll() is None:
                process.terminate()
        for process in self._running:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._log.close()

    def start(self, *words: str, crash_at: str | None = None) -> subprocess.Popen[bytes]:
        """Start a long-running command."""
        environment = _environment() | {"REMAP_SIGTERM": "SIGQUIT"}
        if crash_at is not None:
            environment["EXPUNGE_CRASH_AT"] = crash_at
        process = subprocess.Popen(  # noqa: S603 - our own command
            self._command(*words), env=environment, stdout=self._log, stderr=self._log
        )
        self._running.append(process)
        return process

    def run(self, *words: str) -> tuple[int, Any]:
        """Run a command to its end; give its exit code and what it printed as JSON. Its log lines go to our file."""
        done = subprocess.run(  # noqa: S603 - our own command
            self._command(*words),
            env=_environment(),
            stdout=subprocess.PIPE,
            stderr=self._log,
            timeout=PATIENCE,
            check=False,
        )
        text = done.stdout.decode()
        return done.returncode, json.loads(text) if text.startswith("{") else text

    def together(self, *commands: Sequence[str]) -> list[tuple[int, Any]]:
        """Run commands that do not wait for each other at the same time; give the answers in their order."""
        with ThreadPoolExecutor(len(commands)) as pool:
            return list(pool.map(lambda words: self.run(*words), commands))

    def _command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "orchestrator.cli", *words, "--dir", str(self.state)]


def was_killed(process: subprocess.Popen[bytes]) -> bool:
    """Tell whether a process has died of SIGKILL."""
    return process.poll() == -signal.SIGKILL


def wait_for(what: str, condition: Callable[[], object]) -> None:
    """Wait until a condition holds; raise when it does not within a minute."""
    until = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() >= until:
            message = f"waited {PATIENCE:g} s in vain: {what}"
            raise ExpungeError(message)
        time.sleep(0.02)


def _environment() -> dict[str, str]:
    """Give ours without what a deployment of the reader's own may have set."""
    return {name: value for name, value in os.environ.items() if not name.startswith("EXPUNGE_")}
