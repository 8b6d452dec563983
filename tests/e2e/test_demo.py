"""The demo, and each of its checks: the fault that a check is there to catch turns exactly that one false."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from adapters.demo.story import CHECKS


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


@pytest.mark.parametrize("name", CHECKS)
def test_planted_fault_is_caught_by_its_check_alone(name: str) -> None:
    code, text = demo("--json", "--break", name)
    false = [check["name"] for check in json.loads(text)["checks"] if not check["ok"]]
    assert (code, false) == (1, [name])


def test_unknown_fault_is_a_usage_error_that_names_the_known_ones() -> None:
    assert demo("--break", "nothing")[0] == 2
