"""The demo as a person runs it. What turns each of its checks false is in `tests/chaos`, run by `make crash`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from types import SimpleNamespace
from typing import cast

from adapters.demo.story import CHECKS, Story
from adapters.demo.world import SECRET


def demo(*words: str) -> tuple[int, str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("EXPUNGE_")}
    done = subprocess.run(
        [sys.executable, "-m", "orchestrator.cli", "demo", *words],
        env=environment,
        capture_output=True,
        timeout=110,
        check=False,
    )
    return done.returncode, done.stdout.decode()


def test_demo_is_true_and_says_so_as_json() -> None:
    code, text = demo("--json")
    said = json.loads(text)
    assert (code, said["ok"]) == (0, True)
    assert {"ok", "jobs", "receipts", "checks", "seconds"} <= said.keys()
    assert [job["state"] for job in said["jobs"]] == ["completed", "completed"]
    assert said["jobs"][0]["attempts"] == 2
    assert len(said["checks"]) >= 8
    assert all(set(check) == {"name", "ok", "detail"} for check in said["checks"])


def test_what_the_command_shows_is_what_the_demo_looks_at() -> None:
    said = {"facts": [{"key": "passport", "value": SECRET}]}
    story = SimpleNamespace(
        world=SimpleNamespace(facts=dict),
        processes=SimpleNamespace(run=lambda *words: (0, said if "current" in words else {})),
    )
    assert CHECKS["memory_gives_nothing"](cast("Story", story))[0] is False
    said["facts"] = []
    assert CHECKS["memory_gives_nothing"](cast("Story", story))[0] is True


def test_unknown_fault_is_a_usage_error_that_names_the_known_ones() -> None:
    assert demo("--break", "nothing")[0] == 2
