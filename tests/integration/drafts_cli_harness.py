"""The commands of drafts and approvals, run in this process on one database."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest
import structlog
from typer.testing import CliRunner, Result

import orchestrator
from adapters.drafts import DraftsAdapter
from adapters.memory import MemoryAdapter
from adapters.memory.cli import app
from orchestrator import AdapterContext, Gate, Keyring, Scope, StorageAdapter
from tests.fakes import FakeClock
from tests.integration.drafts_harness import EPOCH

WHO: Final = ("--tenant", "tenant-a", "--user", "user-1", "--project", "agent-research")
SCOPE: Final = Scope(tenant=WHO[1], user=WHO[3], project=WHO[5])


@pytest.fixture
def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AdapterContext:
    gate = Gate(Keyring.create())
    made = AdapterContext(clock=FakeClock(EPOCH), gate=gate, log=structlog.get_logger(), state_dir=tmp_path)

    def open_adapter(_state: Path | None, name: str) -> StorageAdapter:
        url = f"sqlite:///{tmp_path / 'm.db'}"
        return DraftsAdapter(made, url=url) if name == "drafts" else MemoryAdapter(made, url=url)

    monkeypatch.setattr(orchestrator, "open_adapter", open_adapter)
    return made


def run(*words: str) -> Result:
    return CliRunner().invoke(app, [*words, *WHO])


def told(*words: str) -> Any:  # noqa: ANN401 - a JSON document
    result = run(*words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout.splitlines()[-1])
