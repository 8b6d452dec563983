"""`expunge memory prefer`, `resolve` and `replay`: what they print, and their exit codes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import structlog
from typer.testing import CliRunner, Result

import orchestrator
from adapters.memory import MemoryAdapter
from adapters.memory.cli import app
from orchestrator import AdapterContext, Scope
from tests.fakes import FakeClock
from tests.integration.preferences_harness import GATE

WHO = ("--tenant", "acme", "--user", "ann")
REPORTS = (*WHO, "--project", "reports")


@pytest.fixture
def adapter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryAdapter]:
    """Let each command open the store of this folder; gives one of its own."""
    context = AdapterContext(clock=FakeClock(), gate=GATE, log=structlog.get_logger(), state_dir=tmp_path)

    def open_adapter(_state_dir: Path | None, name: str) -> MemoryAdapter:
        assert name == "memory"
        return MemoryAdapter(context, url=f"sqlite:///{tmp_path / 'm.db'}")

    monkeypatch.setattr(orchestrator, "open_adapter", open_adapter)
    with closing(open_adapter(None, "memory")) as made:
        yield made


def run(*words: str) -> Result:
    return CliRunner().invoke(app, words)


def told(*words: str) -> dict[str, Any]:
    done = run(*words, "--json")
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.usefixtures("adapter")
def test_preference_is_said_resolved_and_taken_back() -> None:
    first = told("prefer", "language", "English", "--source", "turn-6", *WHO)
    assert len(first.pop("id")) == 36
    assert first == {"key": "language", "sequence": 2, "operation": "set", "source": "turn-6", "revision": 1}
    assert told("prefer", "language", "French", "--source", "turn-6", *REPORTS)["sequence"] == 3
    general = {"key": "language", "state": "value", "value": "English", "sequence": 2, "resolved_scope": "global"}
    assert told("resolve", "language", *WHO) == {**general, "marker": None}
    own = {**general, "value": "French", "sequence": 3, "resolved_scope": "project:reports", "marker": None}
    assert told("resolve", "language", *REPORTS) == own
    assert told("resolve", "language", *REPORTS, "--as-of", "2") == {**general, "marker": None}
    gone = told("prefer", "language", "--delete", "--source", "turn-6", *REPORTS)
    assert (gone["operation"], gone["sequence"]) == ("delete", 4)
    assert told("resolve", "language", *REPORTS) == {**general, "marker": 4}
    told("prefer", "language", "--delete", "--source", "turn-6", *WHO)
    after = told("resolve", "language", *WHO)
    assert (after["state"], after["value"], after["sequence"]) == ("deleted", None, 5)


@pytest.mark.usefixtures("adapter")
def test_people_get_lines() -> None:
    lines = [
        run("prefer", "language", "English\x1b[31m", "--source", "turn-6", *WHO).stdout,
        run("resolve", "language", *REPORTS).stdout,
        run("prefer", "language", "--delete", "--source", "turn-6", *REPORTS).stdout,
        run("resolve", "language", *REPORTS).stdout,
        run("prefer", "language", "--delete", "--source", "turn-6", *WHO).stdout,
        run("resolve", "language", *WHO).stdout,
        run("resolve", "tone", *WHO).stdout,
        run("replay", *WHO).stdout,
    ]
    assert lines == [
        "set language at 2\n",
        "language = English\\x1b[31m (at 2, global)\n",
        "delete language at 3\n",
        "language = English\\x1b[31m (at 2, global; deleted for the project at 3)\n",
        "delete language at 4\n",
        "language is deleted (at 4, global)\n",
        "tone is unset\n",
        "keys that changed: 0\n",
    ]


@pytest.mark.usefixtures("adapter")
def test_what_was_never_said_exits_5_and_what_was_taken_back_does_not() -> None:
    assert run("prefer", "language", "English", "--source", "turn-6", *REPORTS).exit_code == 0
    unset = run("resolve", "language", *WHO, "--json")
    assert (unset.exit_code, json.loads(unset.stdout)["state"]) == (5, "unset")
    assert run("resolve", "language", "--tenant", "other", "--user", "ann").exit_code == 5
    assert run("prefer", "language", "--delete", "--source", "turn-6", *REPORTS).exit_code == 0
    passed = run("resolve", "language", *REPORTS)
    assert (passed.exit_code, passed.stdout) == (5, "language is unset; deleted for the project at 3\n")
    assert run("prefer", "language", "--delete", "--source", "turn-6", *WHO).exit_code == 0
    assert run("resolve", "language", *WHO).exit_code == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("prefer", "language"), "give either a value or --delete"),
        (("prefer", "language", "secret", "--delete"), "give either a value or --delete"),
        (("prefer", " ", "secret"), "key must be a non-empty string"),
        (("prefer", "language", "secret" * 400), "value must be a text of 1 to 2000 characters, not all blank"),
    ],
)
def test_wrong_request_exits_2_says_what_to_do_and_leaves_no_event(
    adapter: MemoryAdapter, words: tuple[str, ...], says: str
) -> None:
    done = run(*words, "--source", "turn-6", *WHO)
    assert (done.exit_code, done.stderr) == (2, f"expunge: {says}\n")
    with adapter._engine.connect() as connection:
        assert connection.execute(sa.text("SELECT count(*) FROM preference_events")).scalar_one() == 0


@pytest.mark.usefixtures("adapter")
@pytest.mark.parametrize("as_of", ["-1", str(2**63)])
def test_as_of_that_is_no_sequence_exits_2(as_of: str) -> None:
    done = run("resolve", "language", *WHO, "--as-of", as_of)
    assert (done.exit_code, done.stderr) == (2, "expunge: as_of must be a whole number from 0 on\n")


@pytest.mark.usefixtures("adapter")
def test_source_of_another_user_exits_3_and_nothing_is_said() -> None:
    assert run("prefer", "language", "English", "--source", "turn-6", *WHO).exit_code == 0
    foreign = run("prefer", "language", "secret", "--source", "turn-6", "--tenant", "acme", "--user", "bert")
    assert (foreign.exit_code, "secret" in foreign.output) == (3, False)
    assert run("resolve", "language", "--tenant", "acme", "--user", "bert").exit_code == 5


def test_replay_tells_how_many_keys_changed(adapter: MemoryAdapter) -> None:
    for key in ("language", "tone"):
        assert run("prefer", key, "a", "--source", "turn-6", *WHO).exit_code == 0
    assert told("replay", *WHO) == {"changed": 0}
    with adapter._engine.begin() as connection:
        connection.execute(sa.text("DELETE FROM preferences WHERE key = 'tone'"))
    assert told("replay", *REPORTS) == {"changed": 0}
    assert told("replay", *WHO) == {"changed": 1}
    assert adapter.preferences.state(Scope(tenant="acme", user="ann"), "tone").value == "a"
