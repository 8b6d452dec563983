"""The page about LangGraph is run as it stands; and nobody who does not ask for LangGraph loads it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator import Reason, Scope, Selector, SelectorKind
from orchestrator.domain.job import Result
from orchestrator.domain.states import JobState
from orchestrator.service.accept import Request, accept
from tests.integration.jobs_harness import Deployment, deployment

__all__ = ["deployment"]

PAGE = (Path(__file__).parents[2] / "docs" / "langgraph.md").read_text(encoding="utf-8")
LOAD = """
import json, sys
from importlib.metadata import entry_points
loaded = [e.load() for g in ("adapters", "services", "commands") for e in entry_points(group=f"expunge.{g}")]
import orchestrator.bootstrap, orchestrator.testing, workers.main
print(json.dumps([len(loaded), sorted(m for m in sys.modules if m.startswith(("lang", "adapters.lang")))]))
"""


@pytest.mark.parametrize("deployment", ["sqlite"], indirect=True)
def test_program_of_the_page_stores_finds_and_is_refused_what_was_forgotten(deployment: Deployment) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    state = deployment.control.settings.state_dir
    key = '["papers","passport"]'
    assert run(program, state) == ["['The passport number is P1234567.']", key]
    # By the key that it has printed, as the page says; then by the source.
    for kind, value, result, refusal in (
        (SelectorKind.KEY, key, Result.ERASED, "key_tombstoned"),
        (SelectorKind.SOURCE, "chat/turn-6", Result.NOTHING_FOUND, "source_tombstoned"),
    ):
        ann = Scope(tenant="acme", user="ann", project="trips")
        selector = Selector(kind=kind, value=value)
        asked = Request(scope=ann, selector=selector, reason=Reason.USER_REQUEST, requested_by="tester")
        job = str(accept(asked, deployment.control.acceptance)[0])
        deployment.run()
        assert deployment.ended(job) == (JobState.COMPLETED, result)
        assert run(program, state) == [f"refused: {refusal}", "[]", key]


def test_nobody_loads_langgraph_who_does_not_ask_for_it() -> None:
    done = subprocess.run([sys.executable, "-c", LOAD], capture_output=True, timeout=60, check=True)
    count, loaded = json.loads(done.stdout)
    assert count >= 10
    assert loaded == []


def run(program: str, state: Path) -> list[str]:
    there = program.replace('".expunge"', repr(str(state)))
    assert there != program
    done = subprocess.run([sys.executable, "-c", there], capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().splitlines()
