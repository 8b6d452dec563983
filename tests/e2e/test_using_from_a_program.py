"""The page for applications is run as it stands, against a cache that is up; what it stored is forgotten by a job."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.integration.cli_harness import COMMAND, Shell
from tests.servers import fake_redis

PAGE = (Path(__file__).parents[2] / "docs" / "using-from-a-program.md").read_text(encoding="utf-8")


def test_program_of_the_page_stores_reads_and_is_refused_what_was_forgotten(tmp_path: Path) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    shell = Shell(tmp_path / ".expunge")
    assert shell("init")[0] == 0
    with fake_redis() as url:
        config = shell.state / "expunge.toml"
        config.write_text(config.read_text().replace("redis://127.0.0.1:0/0", url))
        assert run(program, tmp_path) == ["You said: The passport number is P1234567."]
        who = ("--tenant", "acme", "--user", "ann", "--project", "trips")
        with subprocess.Popen([*COMMAND, "up"], env=shell.environment(), stderr=subprocess.DEVNULL) as up:
            try:
                asked = ("request", "--source", "chat/turn-6", *who, "--reason", "user_request", "--wait")
                assert shell(*asked)[0] == 0
            finally:
                up.terminate()
        assert run(program, tmp_path) == ["refused: source_tombstoned", "None"]


def run(program: str, folder: Path) -> list[str]:
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().splitlines()
