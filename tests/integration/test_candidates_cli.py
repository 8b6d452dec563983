"""`expunge memory candidate` and `memory put --expected-version`: what they print, and their exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import orchestrator
from adapters.memory import MemoryAdapter
from adapters.memory.cli import app
from tests.integration.candidates_harness import open_adapter

WHO = ("--tenant", "tenant-a", "--user", "user-1", "--project", "agent-research")
OTHER = ("--tenant", "tenant-a", "--user", "user-2", "--project", "agent-research")


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    def opened(state_dir: Path | None, name: str) -> MemoryAdapter:
        assert (state_dir, name) == (tmp_path, "memory")
        return open_adapter(f"sqlite:///{tmp_path / 'm.db'}")

    monkeypatch.setattr(orchestrator, "open_adapter", opened)
    return tmp_path


def run(state: Path, *words: str, exits: int = 0) -> Result:
    done = CliRunner().invoke(app, [*words, "--dir", str(state)])
    assert done.exit_code == exits, done.output
    return done


def read(state: Path, *words: str, exits: int = 0) -> Any:  # noqa: ANN401 - any JSON
    return json.loads(run(state, *words, "--json", exits=exits).stdout)


def propose(state: Path, key: str, value: str) -> Any:  # noqa: ANN401 - as above
    words = ("candidate", "propose", key, value, "--source", "user-message-42", "--by", "extractor-7")
    return read(state, *words, *WHO)


def test_candidate_is_proposed_listed_accepted_and_rejected(state: Path) -> None:
    run(state, "put", "language", "zh-CN", "--source", "user-message-41", *WHO)
    made, other = propose(state, "language", "en"), propose(state, "theme", "dark")
    assert made == {
        "id": made["id"],
        "key": "language",
        "value": "en",
        "source": "user-message-42",
        "expires": None,
        "proposed_by": "extractor-7",
        "proposed_at": "2026-11-01T00:00:00+00:00",
        "state": "pending",
    }
    assert read(state, "current", *WHO)["facts"][0]["value"] == "zh-CN"
    first, second = sorted((made, other), key=lambda each: str(each["id"]))
    assert read(state, "candidate", "list", *WHO) == {"candidates": [first, second], "next": None}
    assert read(state, "candidate", "list", "--limit", "1", *WHO) == {"candidates": [first], "next": first["id"]}
    page = read(state, "candidate", "list", "--limit", "1", "--after", first["id"], *WHO)
    assert page == {"candidates": [second], "next": None}
    confirmed = ("--source", "user-message-43", "--expected-version", "1")
    for _ in range(2):
        assert read(state, "candidate", "accept", made["id"], *confirmed, *WHO) == {
            "id": made["id"],
            "version": 2,
            "source": "user-message-43",
            "revision": 2,
        }
        assert read(state, "candidate", "reject", other["id"], *WHO) == {"id": other["id"], "state": "rejected"}
    assert read(state, "candidate", "list", *WHO) == {"candidates": [], "next": None}
    facts = read(state, "current", *WHO)["facts"]
    assert [(fact["key"], fact["value"], fact["source"]) for fact in facts] == [("language", "en", "user-message-43")]
    assert propose(state, "theme", "dark")["state"] == "rejected"


def test_people_get_lines(state: Path) -> None:
    assert run(state, "candidate", "list", *WHO).stdout == "no candidates\n"
    words = ("candidate", "propose", "theme", "da\x1brk", "--source", "user-message-42", "--by", "extractor-7")
    made = run(state, *words, *WHO).stdout
    name = made.split()[1]
    assert made == f"pending {name}\n"
    told = f"{name}: theme = da\\x1brk (from user-message-42, by extractor-7)\n"
    assert run(state, "candidate", "list", *WHO).stdout == told
    propose(state, "theme", "light")
    assert run(state, "candidate", "list", "--limit", "1", *WHO).stdout.splitlines()[1].startswith("more: --after ")
    accepted = run(state, "candidate", "accept", name, "--source", "yes", "--expected-version", "0", *WHO)
    assert accepted.stdout == f"accepted {name} as version 1\n"
    last = read(state, "candidate", "list", *WHO)["candidates"][0]["id"]
    assert run(state, "candidate", "reject", last, *WHO).stdout == f"rejected {last}\n"


def test_what_a_rule_refuses_exits_3_and_wrong_use_exits_2(state: Path) -> None:
    name = propose(state, "theme", "dark")["id"]
    confirmed = ("--source", "user-message-43", "--expected-version")
    theirs = ("--source", "theirs", "--expected-version", "0")
    for words in (("accept", name, *theirs), ("reject", name), ("reject", "0" * 32)):
        refused = run(state, "candidate", *words, *OTHER, exits=3)
        assert (refused.stdout, refused.stderr) == ("", "expunge: There is no such candidate.\n")
    conflict = run(state, "candidate", "accept", name, *confirmed, "4", *WHO, exits=3)
    assert conflict.stderr == (
        "expunge: The key is at another version than expected: read it again, and ask, before anything is replaced."
        " It is at version 0 (none).\n"
    )
    for wrong in (("accept", name, *confirmed, "-1"), ("list", "--limit", "0")):
        assert run(state, "candidate", *wrong, *WHO, exits=2).stdout == ""
    bad_name = ("candidate", "propose", "theme", "dark", "--source", "s", "--by", "Some Body")
    assert "Some" not in run(state, *bad_name, *WHO, exits=2).stderr
    run(state, "candidate", "accept", name, "--expected-version", "0", *WHO, exits=2)
    assert len(read(state, "candidate", "list", *WHO)["candidates"]) == 1


def test_put_with_an_expected_version_replaces_it_or_says_where_the_key_stands(state: Path) -> None:
    def put(value: str, expected: str, exits: int = 0) -> Result:
        words = ("put", "language", value, "--source", "user-message-42", "--expected-version", expected, "--json")
        return run(state, *words, *WHO, exits=exits)

    assert json.loads(put("en", "0").stdout)["version"] == 1
    assert json.loads(put("zh-CN", "1").stdout) == {
        "key": "language",
        "version": 2,
        "source": "user-message-42",
        "revision": 2,
    }
    for expected in ("0", "1", "3"):
        conflict = put("de", expected, exits=3)
        assert conflict.stdout == ""
        assert conflict.stderr.endswith(" It is at version 2 (active).\n")
        assert "zh-CN" not in conflict.stderr
    run(state, "forget", "language", *WHO)
    assert put("de", "2", exits=3).stderr.endswith(" It is at version 2 (revoked).\n")
    put("de", "-1", exits=2)
    assert read(state, "current", *WHO) == {"revision": 3, "facts": []}
    run(state, "put", "language", "de", "--source", "user-message-44", *WHO)
    assert [fact["version"] for fact in read(state, "current", *WHO)["facts"]] == [3]
