"""`expunge memory remember|correct|history|recall`: what they print, their exit codes, and what no error says."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import structlog
from typer.testing import CliRunner, Result

import orchestrator
from adapters.memory import MemoryAdapter
from adapters.memory.cli import app
from orchestrator import AdapterContext, EraseOrder, Gate, Keyring, Scope, Selector, SelectorKind
from tests.fakes import FakeClock

WHO = ("--tenant", "acme", "--user", "alice", "--task", "trips")
SECRET = "The passport number is P1234567."
AT = datetime(2026, 11, 1, tzinfo=UTC)


@pytest.fixture
def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AdapterContext:
    gate = Gate(Keyring.create())
    made = AdapterContext(clock=FakeClock(AT), gate=gate, log=structlog.get_logger(), state_dir=tmp_path)
    monkeypatch.setattr(orchestrator, "open_adapter", lambda _state, _name: opened(made))
    return made


def opened(context: AdapterContext) -> MemoryAdapter:
    return MemoryAdapter(context, url=f"sqlite:///{context.state_dir / 'm.db'}")


def run(*words: str, who: tuple[str, ...] = WHO, as_json: bool = True) -> Result:
    return CliRunner().invoke(app, [*words, *who, *(["--json"] if as_json else [])])


def told(*words: str) -> Any:  # noqa: ANN401 - a JSON document
    result = run(*words)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.usefixtures("context")
def test_a_memory_is_remembered_corrected_told_and_recalled() -> None:
    assert told("remember", SECRET, "--source", "turn-1", "--ttl-days", "7") == {
        "id": 1,
        "chain": 1,
        "source": "turn-1",
    }
    corrected = told("correct", "1", "The passport number is P7654321.", "--source", "turn-2")
    assert corrected == {"id": 2, "chain": 1, "supersedes": 1, "source": "turn-2"}
    versions = told("history", "2")
    assert versions["chain"] == 1
    created = AT.isoformat()
    first = {"id": 1, "text": SECRET, "source": "turn-1", "created_at": created, "supersedes": None}
    assert versions["versions"][0] == first
    assert [version["supersedes"] for version in versions["versions"]] == [None, 1]
    (memory,) = told("recall", "Which passport number?")["memories"]
    assert (memory["id"], memory["level"], memory["score"], memory["expires_at"]) == (2, "task", 2, None)
    assert told("recall", "nothing of the kind")["memories"] == []
    of_user = told("remember", "Eats fish.", "--source", "turn-3", "--level", "user", "--ttl-days", "7")
    (memory,) = told("recall", "fish")["memories"]
    assert (memory["id"], memory["level"]) == (of_user["id"], "user")
    assert memory["expires_at"] == (AT + timedelta(days=7)).isoformat()


@pytest.mark.usefixtures("context")
def test_people_get_lines_and_a_stored_text_moves_no_cursor() -> None:
    assert run("remember", "red \x1b[31m", "--source", "turn-1", as_json=False).stdout == "remembered 1\n"
    line = run("correct", "1", "blue \x1b[34m", "--source", "turn-2", as_json=False).stdout
    assert line == "corrected 1 by 2; the chain is 1\n"
    lines = "1: red \\x1b[31m (from turn-1)\n2: blue \\x1b[34m (from turn-2)\n"
    assert run("history", "1", as_json=False).stdout == lines
    assert run("recall", "blue", as_json=False).stdout == "2: blue \\x1b[34m (score 1, from turn-2)\n"
    assert run("recall", "green", as_json=False).stdout == "no memories\n"


def test_what_is_refused_exits_3_and_what_is_wrong_2_and_no_error_says_a_text(context: AdapterContext) -> None:
    told("remember", SECRET, "--source", "turn-1")
    told("correct", "1", "None any more.", "--source", "turn-2")
    somebody = ("--tenant", "acme", "--user", "bob", "--task", "trips")
    refused = [
        (run("correct", "1", SECRET, "--source", "turn-2"), 2, "already corrected by 2; correct the newest\n"),
        (run("correct", "2", SECRET, "--source", "bob-1", who=somebody), 3, "no memory 2 in this scope\n"),
        (run("history", "2", who=somebody), 3, "no memory 2 in this scope\n"),
        (run("history", "0"), 3, "no memory 0 in this scope\n"),
        (run("remember", f" {SECRET * 100}", "--source", "turn-2"), 2, "text must be a text of 1 to 2000 characters"),
        (run("remember", SECRET, "--source", "turn-2", "--ttl-days", "0"), 2, "ttl_days must be a whole number"),
        (run("remember", SECRET, "--source", "turn-2", "--level", "all"), 2, ""),
        (run("recall", SECRET, "--limit", "21"), 2, "limit must be a whole number"),
        (run("recall", SECRET, who=("--tenant", "acme", "--user", "B B", "--task", "t")), 2, "user must be an identif"),
    ]
    with closing(opened(context)) as adapter:
        scope = Scope(tenant="acme", user="alice")
        selector = Selector(kind=SelectorKind.SOURCE, value="turn-1")
        adapter.revoke([EraseOrder(job=uuid4(), unit=uuid4(), key="k", scope=scope, selector=selector, deadline=AT)])
    refused += [
        (run("history", "1"), 3, "no memory 1 in this scope\n"),
        (run("remember", SECRET, "--source", "turn-1"), 3, "The source, or one it was derived from, was forgotten.\n"),
        (run("remember", SECRET, "--source", "turn-2"), 3, "This text was forgotten and is not freshly confirmed.\n"),
    ]
    for result, code, line in refused:
        assert result.exit_code == code
        assert line in result.stderr
        assert "P1234567" not in result.output
    fresh = told("remember", SECRET, "--source", "turn-9")
    assert [m["id"] for m in told("recall", "passport")["memories"]] == [fresh["id"]]
    summary = ("--source", "summary", "--kind", "model", "--derived-from", "turn-9")
    assert told("remember", "Has a passport.", *summary)["source"] == "summary"
