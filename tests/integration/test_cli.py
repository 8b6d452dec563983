"""The commands as a user meets them: exit codes, JSON, errors that say what to do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adapters.demo.processes import Processes, wait_for


class Shell:
    """Runs `expunge` on one state directory."""

    def __init__(self, state: Path) -> None:
        self.state = state

    def __call__(self, *words: str, **variables: str) -> tuple[int, str, str]:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("EXPUNGE_")}
        done = subprocess.run(
            [sys.executable, "-m", "orchestrator.cli", *words],
            env={**environment, "EXPUNGE_DIR": str(self.state), **variables},
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert "Traceback" not in done.stderr.decode()
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def json(self, *words: str) -> Any:  # noqa: ANN401 - any JSON document
        return json.loads(self(*words, "--json")[1])


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    folder = tmp_path_factory.mktemp("cli")
    with Processes(folder) as processes:
        run = Shell(processes.state)
        assert run("init")[0] == 0
        processes.start("up")
        wait_for("the cache", (processes.state / "cache.port").exists)
        yield run


WHO = ("--tenant", "acme", "--user", "ann", "--project", "trips")


def put(shell: Shell, key: str, source: str) -> None:
    assert shell("memory", "put", key, f"{key} is P1234567", "--source", source, *WHO)[0] == 0


def test_request_is_carried_to_its_end_and_answers_with_receipts(shell: Shell) -> None:
    put(shell, "passport", "chat/turn-6")
    preview = shell.json("preview", "--source", "chat/turn-6", *WHO)
    assert preview == {"complete": True, "targets": {"memory": 1, "cache": 0}, "no_lineage": {}}
    asked = ("request", "--source", "chat/turn-6", *WHO, "--reason", "user_request", "--idempotency-key", "case-1")
    code, text, _ = shell(*asked, "--wait", "--json")
    job = json.loads(text)
    assert (code, job["state"], job["result"], job["new"]) == (0, "completed", "erased", True)
    again = shell.json(*asked)
    assert (again["id"], again["new"]) == (job["id"], False)
    receipts = shell.json("receipts", job["id"])["receipts"]
    assert {(r["adapter"], r["phase"]) for r in receipts} == {
        ("memory", "revoke"),
        ("memory", "erase"),
        ("memory", "verify"),
        ("cache", "erase"),
        ("cache", "verify"),
    }
    assert shell.json("memory", "current", *WHO)["facts"] == []
    code, _, error = shell("memory", "put", "passport", "passport is P1234567", "--source", "chat/turn-6", *WHO)
    assert (code, "forgotten" in error) == (3, True)
    gate = ("tombstone", "check", *WHO, "--position", "99", "--text", "anything")
    assert shell(*gate, "--source", "chat/turn-6")[0] == 3
    assert shell(*gate, "--source", "chat/turn-7")[0] == 0
    assert shell("watch", job["id"])[0] == 0


@pytest.mark.req("R138")
def test_foreign_and_missing_jobs_answer_alike(shell: Shell) -> None:
    job = shell.json("request", "--key", "nothing", *WHO, "--reason", "operator", "--wait")["id"]
    for command in ("status", "receipts", "watch"):
        assert shell(command, job, "--tenant", "other") == shell(command, "no-such-job", "--tenant", "acme")
        assert shell(command, job, "--tenant", "other")[0] == 3
    assert shell.json("list", "--tenant", "other")["jobs"] == []


def test_list_goes_on_page_by_page(shell: Shell) -> None:
    filed = [shell.json("request", "--key", f"k-{n}", *WHO, "--reason", "operator")["id"] for n in range(3)]
    seen, after = [], None
    while True:
        page = shell.json("list", "--limit", "2", *(["--after", after] if after else []))
        seen += [job["id"] for job in page["jobs"]]
        if (after := page["next"]) is None:
            break
    assert seen == sorted(seen)
    assert [job for job in seen if job in filed] == filed


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("request", *WHO, "--reason", "user_request"), 2, "exactly one of"),
        (("request", "--key", "a", "--subject", *WHO, "--reason", "user_request"), 2, "exactly one of"),
        (("request", "--key", "a", *WHO, "--reason", "because"), 2, "user_request"),
        (
            ("request", "--key", "a", *WHO, "--reason", "operator", "--reference", "forget P1234567"),
            2,
            "case or message",
        ),
        (("request", "--key", "", *WHO, "--reason", "operator"), 2, "non-empty"),
        (("request", "--key", "mistyped", *WHO, "--reason", "operator", "--wait"), 5, ""),
        (("preview", "--key", "mistyped", *WHO), 5, ""),
        (("list", "--state", "broken"), 2, "requested"),
        (("status", "no-such-job"), 3, "no such job"),
        (("list", "--dir", "/nowhere/at/all"), 2, "expunge init"),
        (("worker", "--adapters", "vectors"), 2, "not enabled"),
    ],
)
def test_mistake_is_one_line_and_an_exit_code(shell: Shell, words: tuple[str, ...], code: int, told: str) -> None:
    got, _, error = shell(*words)
    assert (got, told in error) == (code, True), error
    assert "P1234567" not in error


def test_idempotency_key_of_another_request_is_refused(shell: Shell) -> None:
    asked = ("request", *WHO, "--reason", "operator", "--idempotency-key", "same")
    assert shell(*asked, "--key", "one")[0] == 0
    assert shell(*asked, "--key", "two")[0] == 3


def test_unknown_variable_is_refused_with_the_nearest_known_one(shell: Shell) -> None:
    code, _, error = shell("list", EXPUNGE_ENGINE__LAESE="2s")
    assert (code, "EXPUNGE_ENGINE__LEASE" in error) == (2, True)


def test_second_init_keeps_the_keys(shell: Shell) -> None:
    before = (shell.state / "keys" / "tombstone.json").read_text()
    assert shell("init")[0] == 0
    assert (shell.state / "keys" / "tombstone.json").read_text() == before
    assert (shell.state / "keys" / "tombstone.json").stat().st_mode & 0o777 == 0o600


def test_doctor_and_adapters_answer(shell: Shell) -> None:
    assert shell("doctor")[0] == 0
    assert {a["name"] for a in shell.json("adapters")["adapters"]} >= {"memory", "cache"}


@pytest.mark.req("R134")
def test_nothing_personal_leaves_the_stores(shell: Shell) -> None:
    """The canary: a secret goes through the whole workflow, then everything that is not a store is searched."""
    secret, user, source = "Zq7canary314", "canary-user", "canary-turn-1"
    who = ("--tenant", "acme", "--user", user, "--project", "canary-project")
    assert shell("memory", "put", "canary-key", secret, "--source", source, *who)[0] == 0
    said = [shell("request", "--source", source, *who, "--reason", "user_request", "--wait", "--json")]
    job = json.loads(said[0][1])
    assert job["state"] == "completed"
    said += [shell("status", job["id"], "--json"), shell("receipts", job["id"], "--json"), shell("list")]
    words = (secret, user, source, "canary-key", "canary-project")
    threading.Event().wait(0.5)  # let the last log line reach the file
    log = (shell.state.parent / "processes.log").read_text()
    assert job["id"] in log
    texts = [log, *(text for _, out, err in said for text in (out, err))]
    texts += [p.read_text(errors="replace") for p in (shell.state / "broker").rglob("*") if p.is_file()]
    assert [word for word in words for text in texts if word in text] == []
