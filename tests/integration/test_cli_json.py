"""Every `--json` document fits its schema in docs/json, which names each of its fields and no other."""

from __future__ import annotations

import contextlib
import getpass
import io
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import typer

from adapters.backup.manifest import Policy
from adapters.context import Assembler, by_words
from orchestrator.cli import build, main
from orchestrator.domain import codes
from orchestrator.domain.contract import Reach
from orchestrator.domain.job import Purpose, Result, Trigger
from orchestrator.domain.retry import Park
from orchestrator.domain.selector import SelectorKind
from orchestrator.domain.states import JobState
from orchestrator.domain.unit import Failed, Outcome, Phase
from orchestrator.service.outstanding import Why
from orchestrator.service.report import Standing
from tests.integration.cli_harness import COMMAND
from tests.integration.context_harness import person
from tests.integration.five_stores import ANNA, BERTA, TURN_6, Five, five_in
from tests.integration.json_harness import NAMES, SCHEMAS, changed, fields, misfits
from tests.servers import fake_redis

# A run of the demo takes a minute, and has tests of its own.
RUN_ELSEWHERE = {"demo"}
WHO = ("--tenant", "acme", "--user", "anna")
TRIPS = (*WHO, "--project", "trips")
OF_TASK = (*WHO, "--task", "trips")


class Said:
    """The documents of each command, run in this process on one state directory."""

    def __init__(self, patch: pytest.MonkeyPatch, state: Path) -> None:
        self.documents: dict[str, list[Any]] = {}
        self._patch = patch
        patch.setenv("EXPUNGE_DIR", str(state))
        patch.setattr(getpass, "getuser", lambda: "operator")

    def __call__(self, name: str, *words: str, exits: int | None = 0) -> Any:  # noqa: ANN401 - any JSON
        command = (
            name.replace("-", " ") if name not in {"request-file", "purge-expired"} else name.removesuffix("-file")
        )
        self._patch.setattr(sys, "argv", ["expunge", *command.split(" "), *words, "--json"])
        out, error = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error), pytest.raises(SystemExit) as stop:
            main()
        assert exits in {None, stop.value.code}, (name, error.getvalue())
        lines = name in {"watch", "request-file"}
        found = [json.loads(line) for line in out.getvalue().splitlines()] if lines else [json.loads(out.getvalue())]
        self.documents.setdefault(name, []).extend(found)
        return found[-1]


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, list[Any]]]:
    folder = tmp_path_factory.mktemp("json")
    with fake_redis() as url, fake_redis() as empty, pytest.MonkeyPatch.context() as patch:
        words = ["bench", "--subjects", "1", "--repeats", "1", "--tasks", "1", "--redis-url", empty, "--json"]
        said = Said(patch, folder / "state")
        with (
            (folder / "bench").open("wb") as out,
            subprocess.Popen([*COMMAND, *words], stdout=out, stderr=subprocess.DEVNULL),
        ):
            said("init", "--dir", str(folder / "other"))
            with five_in(folder / "state", url) as five:
                five.clock.at = datetime.now(UTC)
                tell_of_stores(said, five, folder)
                tell_of_jobs(said, five, folder)
                copied = said.documents["backup-take"][0]["file"]
                said("restore", str(folder / "state" / "backups" / copied), "--yes")
        said.documents["bench"] = [json.loads((folder / "bench").read_text())]
        yield said.documents


def tell_of_stores(said: Said, five: Five, folder: Path) -> None:
    """Run the commands that are about stores and files."""
    for name in ("migrate", "adapters"):
        said(name)
    said("doctor", exits=None)  # red or not: what it says has the same form
    said("backup-take")
    said("memory-put", "passport", "P1234567", "--source", "anna/turn-1", *TRIPS)
    said("memory-put", "code", "P7654321", "--source", "anna/turn-1", *TRIPS, "--expires", str(time.time() + 0.5))
    said("memory-current", *TRIPS)
    proposed = ("--source", "anna/turn-1", "--by", "extractor-7", *TRIPS)
    waiting = [said("memory-candidate-propose", "meal", value, *proposed)["id"] for value in ("fish", "rice")]
    for words in ((), ("--limit", "1")):
        said("memory-candidate-list", *words, *TRIPS)
    confirmed = ("--source", "anna/turn-2", "--expected-version", "0", *TRIPS)
    said("memory-candidate-accept", waiting[0], *confirmed)
    said("memory-candidate-reject", waiting[1], *TRIPS)
    first = said("memory-remember", "Sits at the aisle.", "--source", "anna/turn-1", *OF_TASK)["id"]
    second = said("memory-correct", str(first), "Sits at the window.", "--source", "anna/turn-2", *OF_TASK)["id"]
    said("memory-history", str(second), *OF_TASK)
    said("memory-recall", "window", *OF_TASK)
    said("memory-prefer", "language", "English", "--source", "anna/turn-1", *WHO)
    said("memory-prefer", "language", "French", "--source", "anna/turn-1", *TRIPS)
    said("memory-prefer", "language", "--delete", "--source", "anna/turn-2", *TRIPS)
    said("memory-resolve", "language", *TRIPS)
    said("memory-resolve", "tone", *TRIPS, exits=5)
    said("memory-replay", *TRIPS)
    said("memory-submit", "job-1", *TRIPS)
    said("memory-run", "job-1", *TRIPS)
    said("memory-inspect", "job-1", *TRIPS)
    asked = said("memory-approve-request", "mail-1", "--action", "send-mail", "--report", "job-1", *TRIPS)
    said("memory-approve-decide", "mail-1", "approve", *TRIPS)
    said("memory-approve-request", "mail-2", "--action", "send-mail", "--report", "job-1", *TRIPS)
    said("memory-approve-cancel", "mail-2", *TRIPS)
    for words in ((), ("--limit", "1")):
        said("memory-approve-list", *words, *TRIPS)
    said("memory-approve-receipt", asked["operation_key"], *TRIPS)
    made = Assembler(five.drafts, person(ANNA))
    made.assemble("turn-1", by_words("Which?"), project="trips", preferences=["answer_detail"])
    five.memory.preferences.prefer(ANNA, "answer_detail", "brief", "anna/turn-1")
    said("memory-why", "answer_detail", *TRIPS, "--as-of", "1", exits=5)
    said("memory-why", "answer_detail", *TRIPS, "--input", "turn-1", exits=1)
    said("memory-forget", "seat", *TRIPS, exits=5)
    five.learn(BERTA)
    five.backup.take(Policy.WINDOW, five.clock.at + timedelta(days=30))
    said("backup-list")
    values = folder / "values.txt"
    values.write_text("P1234567 is a passport\n\nab\n")
    said("scan", str(values), "--fingerprints-of", str(values), exits=1)
    said("purge-expired")


def tell_of_jobs(said: Said, five: Five, folder: Path) -> None:
    """Run the commands that are about jobs and holds, where each has something to tell."""
    said("preview", "--subject", *WHO, "--timeout", "0.1", exits=4)
    done = said("request", "--subject", "--tenant", "acme", "--user", "berta", "--reason", "operator")["id"]
    five.run()
    said("waive", done, "--adapter", "backup", "--reason", "operator")
    for name in ("watch", "receipts", "report"):
        said(name, done)
    said("backup-unseen", said.documents["backup-take"][0]["handle"])
    rows = folder / "rows.csv"
    rows.write_text("tenant,user,reason,key\nacme,anna,operator,a\nacme,anna,operator,a\nacme,anna,operator,\n")
    said("request-file", "--file", str(rows), exits=1)
    held = said("hold-add", "--subject", *WHO, "--reason", "dispute")["holds"][0]["id"]
    waiting = said.documents["request-file"][0]["job"]
    for name in ("report", "status"):
        said(name, waiting)
    for words in ((), ("--limit", "1")):
        said("hold-list", *words)
    said("hold-release", held)
    park(five)
    for name in ("status", "report", "retry", "status"):
        said(name, waiting)
    said("cancel", said("request", "--key", "b", *WHO, "--reason", "operator")["id"])
    five.clock.at -= timedelta(days=60)
    five.request()
    five.clock.at += timedelta(days=60)
    said("overdue")
    for words in ((), ("--limit", "1")):
        said("list", *words)
    gate = ("tombstone-check", "--project", "trips", "--position", "1", "--text", "anything", "--tenant", "acme")
    said(*gate, "--user", "anna", "--source", "chat/turn-9")
    said(*gate, "--user", "berta", "--source", f"berta/{TURN_6}", exits=3)


def park(five: Five) -> None:
    """Have the source fail for good."""
    owner = str(uuid4())
    units = five.control.ledger.load(owner, five.control.ledger.claim("memory", Phase.REVOKE, owner=owner, limit=99))
    park = Park(reason=codes.Parked.PERMANENT_ERROR)
    failed = [Failed(claimed=unit, code=codes.ErrorCode.PERMANENT, then=park) for unit in units]
    five.control.ledger.commit(owner, failed, started_at=five.clock.now())


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[str]:  # noqa: ANN401 - the framework's own
    """Name every command that takes --json, as its schema is named."""
    if any("--json" in getattr(parameter, "opts", ()) for parameter in command.params):
        yield "-".join(path)
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, (*path, name))


def test_every_command_with_json_has_a_schema_and_every_schema_a_command() -> None:
    assert sorted([*commands(typer.main.get_command(build())), "request-file"]) == NAMES


def test_every_command_was_run(documents: Mapping[str, list[Any]]) -> None:
    assert sorted(documents) == sorted(set(NAMES) - RUN_ELSEWHERE)


@pytest.mark.parametrize("name", sorted(set(NAMES) - RUN_ELSEWHERE))
def test_document_of_every_command_fits_its_schema_and_none_of_its_fields_may_go(
    documents: Mapping[str, list[Any]], name: str
) -> None:
    for document in documents[name]:
        assert list(misfits(document, SCHEMAS[name])) == []
        named = list(fields(document, SCHEMAS[name]))
        fit = [made for made in changed(document, SCHEMAS[name]) if not list(misfits(made, SCHEMAS[name]))]
        assert (len(named) > 0, fit) == (True, [])


def test_parts_that_only_some_documents_have_were_seen(documents: Mapping[str, list[Any]]) -> None:
    reports = documents["report"]
    for part in ("stores", "outstanding", "windows", "waived"):
        assert any(report[part] for report in reports), part
    assert {entry["why"] for report in reports for entry in report["outstanding"]} >= {"held", "parked"}
    for name in ("list", "memory-approve-list"):
        assert [bool(page["next"]) for page in documents[name]] == [False, True], name
    assert {status["next_attempt_at"] is None for status in documents["status"]} == {True, False}
    assert {line["outcome"] for line in documents["request-file"]} == {"accepted", "known", "refused"}
    for name in ("overdue", "purge-expired"):
        assert documents[name][-1]["jobs"], name


WORDS: Mapping[str, type[StrEnum]] = {
    "job_state": JobState,
    "purpose": Purpose,
    "trigger": Trigger,
    "result": Result,
    "selector": SelectorKind,
    "phase": Phase,
    "outcome": Outcome,
    "reach": Reach,
    "reason": codes.Reason,
    "hold_reason": codes.HoldReason,
    "waiver_reason": codes.WaiverReason,
    "parked": codes.Parked,
    "error": codes.ErrorCode,
    "residual": codes.Residual,
    "refusal": codes.Refusal,
    "standing": Standing,
    "why": Why,
}


def test_words_of_the_schemas_are_those_of_the_code() -> None:
    named = {name for name, part in SCHEMAS["common"]["$defs"].items() if "enum" in part}
    assert named == WORDS.keys()
    for name, words in WORDS.items():
        assert SCHEMAS["common"]["$defs"][name]["enum"] == [word.value for word in words], name


@pytest.mark.parametrize("name", NAMES)
def test_schema_names_its_command_and_says_what_it_tells(name: str) -> None:
    schema = SCHEMAS[name]
    command = {"request-file": "request --file", "purge-expired": "purge-expired"}.get(name, name.replace("-", " "))
    assert schema["title"] == f"expunge {command} --json"
    assert re.fullmatch(r"[A-Z].*\.", schema["description"])
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        (True, {"type": "integer"}),
        (1.5, {"type": "integer"}),
        (-1, {"type": "integer", "minimum": 0}),
        ("no", {"type": "string", "format": "date-time"}),
        ("no", {"type": "string", "format": "uuid"}),
        ("c", {"type": "string", "enum": ["a", "b"]}),
        (None, {"anyOf": [{"type": "string"}, {"type": "object"}]}),
        ([1, "a"], {"type": "array", "items": {"type": "integer"}}),
        ({"a": "b"}, {"type": "object", "additionalProperties": {"type": "integer"}}),
        ({"a": 1}, {"type": "object", "properties": {}, "additionalProperties": False}),
        (
            {},
            {"type": "object", "properties": {"a": {"type": "null"}}, "required": ["a"], "additionalProperties": False},
        ),
    ],
)
def test_value_that_does_not_fit_is_told(value: Any, schema: Mapping[str, Any]) -> None:  # noqa: ANN401
    assert len(list(misfits(value, schema))) == 1
