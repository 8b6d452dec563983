"""Running `expunge` as a user does: a process of its own on one state directory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

COMMAND = [sys.executable, "-m", "orchestrator.cli"]


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:  # noqa: ANN401
    """Walk the tree of commands; its classes are the framework's own and have no public name."""
    yield path, command
    for name, inner in sorted(getattr(command, "commands", {}).items()):
        yield from commands(inner, (*path, name))


class Shell:
    """Runs `expunge` on one state directory."""

    def __init__(self, state: Path) -> None:
        self.state = state

    def environment(self, **variables: str) -> dict[str, str]:
        ours = {k: v for k, v in os.environ.items() if not k.startswith("EXPUNGE_")}
        return {**ours, "EXPUNGE_DIR": str(self.state), **variables}

    def __call__(self, *words: str, **variables: str) -> tuple[int, str, str]:
        done = subprocess.run(
            [*COMMAND, *words], env=self.environment(**variables), capture_output=True, timeout=60, check=False
        )
        assert "Traceback" not in done.stderr.decode()
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def json(self, *words: str) -> Any:  # noqa: ANN401 - any JSON document
        return json.loads(self(*words, "--json")[1])
