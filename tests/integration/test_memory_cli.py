"""`expunge memory`: what the commands print, and their exit codes."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest
import structlog
from typer.testing import CliRunner, Result

import orchestrator
from adapters.memory import MemoryAdapter
from adapters.memory.cli import app
from orchestrator import AdapterContext, EraseOrder, Gate, Keyring, Scope, Selector, SelectorKind

SCOPE = ("--tenant", "tenant-a", "--user", "reader-A", "--project", "trip-planning", "--json")


class At:
    def now(self) -> datetime:
        return datetime(2026, 11, 1, tzinfo=UTC)


@pytest.fixture
def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AdapterContext:
    made = AdapterContext(clock=At(), gate=Gate(Keyring.create()), log=structlog.get_logger(), state_dir=tmp_path)

    def open_adapter(state_dir: Path | None, name: str) -> MemoryAdapter:
        assert (state_dir, name) == (tmp_path, "memory")
        return MemoryAdapter(made, url=f"sqlite:///{tmp_path / 'm.db'}")

    monkeypatch.setattr(orchestrator, "open_adapter", open_adapter)
    return made


def run(context: AdapterContext, *words: str) -> Result:
    return CliRunner().invoke(app, [*words, *SCOPE, "--dir", str(context.state_dir)])


def test_a_fact_is_put_read_and_forgotten(context: AdapterContext) -> None:
    put = run(context, "put", "language", "zh-CN", "--source", "turn-6")
    assert json.loads(put.stdout) == {"key": "language", "version": 1, "source": "turn-6", "revision": 1}
    read = json.loads(run(context, "current").stdout)
    fact = read["facts"][0]
    assert fact.pop("id")
    assert read == {"revision": 1, "facts": [fact]}
    assert fact == {"key": "language", "version": 1, "value": "zh-CN", "source": "turn-6", "expires": None}
    assert json.loads(run(context, "forget", "language").stdout) == {
        "outcome": "revoked",
        "versions": 1,
        "revision": 2,
        "outstanding": ["vectors", "drafts", "caches", "backups"],
    }
    assert json.loads(run(context, "forget", "language").stdout)["outcome"] == "nothing_found"
    assert json.loads(run(context, "current").stdout) == {"revision": 2, "facts": []}


def test_a_refusal_by_the_gate_says_why_and_exits_3(context: AdapterContext, tmp_path: Path) -> None:
    assert run(context, "put", "passport", "P1234567", "--source", "turn-6").exit_code == 0
    summary = ("--source", "summary-9", "--kind", "model", "--derived-from", "turn-6")
    assert run(context, "put", "document", "P1234567", *summary).exit_code == 0
    adapter = MemoryAdapter(context, url=f"sqlite:///{tmp_path / 'm.db'}")
    job, scope = context.clock.now(), Scope(tenant="tenant-a", user="reader-A", project="trip-planning")
    selector = Selector(kind=SelectorKind.SOURCE, value="turn-6")
    adapter.revoke([EraseOrder(job=uuid4(), unit=uuid4(), key="k", scope=scope, selector=selector, deadline=job)])
    adapter.close()
    for words in (("passport", "P1234567", "--source", "turn-6"), ("x", "y", *summary)):
        refused = run(context, "put", *words)
        assert refused.exit_code == 3
        assert refused.stderr == "expunge: The source, or one it was derived from, was forgotten.\n"
    unknown = run(context, "put", "x", "y", "--source", "s", "--derived-from", "never-seen")
    assert unknown.exit_code == 3


def test_a_wrong_request_exits_2(context: AdapterContext) -> None:
    assert run(context, "put", " ", "zh-CN", "--source", "turn-6").exit_code == 2
    assert run(context, "put", "language", "x" * 2001, "--source", "turn-6").exit_code == 2


def test_people_get_lines(context: AdapterContext) -> None:
    words = [*SCOPE[:-1], "--dir", str(context.state_dir)]
    put = CliRunner().invoke(app, ["put", "language", "zh-CN", "--source", "turn-6", *words])
    assert put.stdout == "stored language version 1\n"
    assert CliRunner().invoke(app, ["current", *words]).stdout == "language = zh-CN (version 1, from turn-6)\n"


def test_a_file_that_nobody_has_open_can_be_verified(context: AdapterContext, tmp_path: Path) -> None:
    assert run(context, "put", "passport", "P1234567", "--source", "turn-6").exit_code == 0
    assert not (tmp_path / "m.db-wal").exists(), "the last connection has closed the log"
    adapter = MemoryAdapter(context, url=f"sqlite:///{tmp_path / 'm.db'}")
    scope = Scope(tenant="tenant-a", user="reader-A")
    order = EraseOrder(
        job=uuid4(),
        unit=uuid4(),
        key="k",
        scope=scope,
        selector=Selector(kind=SelectorKind.SUBJECT),
        deadline=context.clock.now(),
    )
    assert adapter.verify([order])[0].remaining == 1
    adapter.close()
