"""The page of the memory store is run as it stands, its program and then its request."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

from tests.integration.cli_harness import COMMAND, Shell
from tests.servers import fake_redis

PAGE = (Path(__file__).parents[2] / "adapters" / "memory" / "README.md").read_text(encoding="utf-8")
SAID = [
    "conflict: 2 active",
    "Constraint(key='length', reach=<Reach.ANSWER: 'answer'>)",
    "tone: dry",
    "{'language': 'en', 'meal': 'vegetarian'}",
]


def test_program_of_the_page_says_what_holds_and_its_request_erases_one_key(tmp_path: Path) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (request,) = re.findall(r"```sh\nexpunge (.*?)\n```", PAGE, re.DOTALL)
    shell = Shell(tmp_path / ".expunge")
    assert shell("init")[0] == 0
    assert run(program, tmp_path) == SAID
    with fake_redis() as url:
        config = shell.state / "expunge.toml"
        config.write_text(config.read_text().replace("redis://127.0.0.1:0/0", url))
        with subprocess.Popen([*COMMAND, "up"], env=shell.environment(), stderr=subprocess.DEVNULL) as up:
            try:
                assert shell(*shlex.split(request))[0] == 0
            finally:
                up.terminate()
    left = shell("memory", "current", "--tenant", "acme", "--user", "ann", "--project", "trips")
    assert left[1].splitlines() == ["meal = vegetarian (version 1, from chat/turn-8)"]


def test_page_names_every_state_of_a_conflict() -> None:
    from adapters.memory.versions import KeyState

    assert f"({', '.join(f'`{state}`' for state in KeyState)})" in " ".join(PAGE.split())


def run(program: str, folder: Path) -> list[str]:
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().splitlines()
