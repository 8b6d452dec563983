"""The commands as a user meets them: exit codes, JSON, errors that say what to do."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from adapters.demo.processes import Processes, wait_for
from tests.integration.cli_harness import Shell


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
        foreign = shell(command, job, "--tenant", "other")
        assert foreign == shell(command, "no-such-job", "--tenant", "acme")
        assert foreign[0] == 3
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


def test_doctor_and_adapters_answer(shell: Shell, tmp_path: Path) -> None:
    assert shell("doctor")[0] == 0
    assert {(a["name"], a["enabled"]) for a in shell.json("adapters")["adapters"]} >= {
        ("memory", True),
        ("cache", True),
    }
    nowhere = Shell(tmp_path / "nowhere")
    assert {a["enabled"] for a in nowhere.json("adapters")["adapters"]} == {False}
    assert shell("adapters", "--dir", str(tmp_path / "nowhere"))[0] == 2


def test_init_and_migrate_answer_as_json(tmp_path: Path) -> None:
    state = tmp_path / "state"
    run = Shell(state)
    first = run.json("init")
    assert first.pop("schema")
    files = ["expunge.toml", "keys/tombstone.json", "keys/reference.key"]
    assert first == {"state_dir": str(state), "written": [str(state / name) for name in files]}
    assert run.json("init")["written"] == []
    assert run.json("migrate")["changed"] is False
    (state / "orchestrator.db").unlink()
    assert run.json("migrate")["changed"] is True
    assert run.json("list") == {"jobs": [], "next": None}


def test_watch_prints_one_document_a_line(shell: Shell) -> None:
    put(shell, "watched", "chat/turn-90")
    job = shell.json("request", "--key", "watched", *WHO, "--reason", "operator")["id"]
    code, out, _ = shell("watch", job, "--json")
    seen = [json.loads(line) for line in out.splitlines()]
    assert (code, {s["id"] for s in seen}, seen[-1]["state"]) == (0, {job}, "completed")


def raw_hits(state: Path, words: Iterable[str]) -> set[tuple[str, str]]:
    """Name the words, and the files of a state directory in whose bytes they stand."""
    found = set()
    for path in (p for p in state.rglob("*") if p.is_file()):
        with contextlib.suppress(FileNotFoundError):  # a message that was taken meanwhile
            content = path.read_bytes()
            found |= {(w, path.name) for w in words for form in ("utf-8", "utf-16-le") if w.encode(form) in content}
    return found


def outside_stores(hits: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Leave out what stands in the memory store's own files: where the data is held as long as it is wanted."""
    return {(word, name) for word, name in hits if not name.startswith("memory.db")}


@pytest.mark.req("R134")
def test_nothing_personal_leaves_the_stores(shell: Shell) -> None:
    """The canary: a secret goes through every command, then everything that is not a store is searched."""
    secret, user, source, key, project = "Zq7canary314", "canary-user", "canary-turn-1", "canary-key", "canary-project"
    words = (secret, user, source, key, project)
    who = ("--tenant", "acme", "--user", user, "--project", project)
    why = ("--reason", "user_request")
    said = []

    def tell(*command: str, code: int = 0) -> Any:  # noqa: ANN401 - any JSON document
        said.append(shell(*command, "--json"))
        assert said[-1][0] == code, said[-1]
        return json.loads(said[-1][1])

    assert shell("memory", "put", key, secret, "--source", source, *who)[0] == 0
    hold = tell("hold", "add", "--subject", "--tenant", "acme", "--user", user, "--reason", "dispute")["holds"][0]["id"]
    job = tell("request", "--source", source, *who, *why)["id"]
    other = tell("request", "--key", key, *who, *why)["id"]
    unwanted = tell("request", "--key", key, *who, *why)["id"]
    tell("request", "--subject", *who, *why, "--wait", code=4)
    tell("retry", job)
    tell("cancel", unwanted)
    tell("waive", job, "--adapter", "cache", "--reason", "operator")
    tell("preview", "--source", source, *who)
    tell("status", job)
    for look in (("hold", "list"), ("overdue",), ("list",)):
        tell(*look)
    control = raw_hits(shell.state, words)
    assert {word for word, _ in outside_stores(control)} == {user, source, key, project}, (
        "the search finds what is there"
    )
    assert secret in {word for word, _ in control}

    tell("hold", "release", hold)
    for ident in (job, other):
        assert shell("watch", ident)[0] == 0
        assert tell("status", ident)["state"] == "completed"
        tell("receipts", ident)
    subject = shell.json("list", "--limit", "1000")["jobs"][-1]["id"]
    assert shell("watch", subject)[0] == 0
    # The last sweep empties the log of the database; until then it holds what its rows held.
    end = time.monotonic() + 15
    while (hits := outside_stores(raw_hits(shell.state, words))) and time.monotonic() < end:
        threading.Event().wait(0.2)
    assert hits == set()
    log = (shell.state.parent / "processes.log").read_text()
    assert job in log
    texts = [log, *(text for _, out, err in said for text in (out, err))]
    assert [word for word in words for text in texts if word in text] == []
