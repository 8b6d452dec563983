"""`expunge memory approve` and `submit --redo`, as they are typed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import structlog
from typer.testing import CliRunner, Result

import orchestrator
from adapters.drafts import ApprovalState, DraftsAdapter, Fault
from adapters.drafts.approvals.cancel import EXTERNAL_COPY
from adapters.memory import MemoryAdapter
from adapters.memory.cli import app
from orchestrator import AdapterContext, Gate, Keyring, Scope, StorageAdapter
from tests.fakes import FakeClock
from tests.integration.approvals_harness import FileTool
from tests.integration.drafts_harness import EPOCH
from tests.integration.json_harness import SCHEMAS

WHO = ("--tenant", "tenant-a", "--user", "user-1", "--project", "agent-research")
SCOPE = Scope(tenant=WHO[1], user=WHO[3], project=WHO[5])
VOID = "What this approval was asked about has changed, has expired or is not allowed any more: ask under a new id.\n"


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


def published() -> None:
    assert run("put", "language", "zh-CN", "--source", "turn-6").exit_code == 0
    assert run("submit", "report-001").exit_code == 0
    assert run("run", "report-001").exit_code == 0


def asked() -> str:
    """Have a report be sent when somebody approves; give the operation key."""
    published()
    line = run("approve", "request", "mail-1", "--action", "send-mail", "--report", "report-001").stdout
    name, _, key = line.strip().rpartition(" ")
    assert name == "mail-1: send-mail pending, operation"
    return key


@pytest.mark.usefixtures("context")
def test_action_is_asked_for_listed_and_approved() -> None:
    assert run("approve", "list").stdout == "no approvals\n"
    key = asked()
    head, payload = run("approve", "list").stdout.splitlines()
    assert (head, payload) == (f"mail-1: send-mail pending, operation {key}", "  Report\\n\\nlanguage: zh-CN")
    decided = run("approve", "decide", "mail-1", "approve")
    assert decided.stdout.splitlines()[-1] == f"mail-1: send-mail approved, operation {key}"
    (document,) = told("approve", "list")["approvals"]
    assert (document["state"], document["decided_at"], document["receipt"]) == ("approved", 0, None)
    assert document["payload"] == "Report\n\nlanguage: zh-CN"
    refused = run("approve", "decide", "mail-1", "refuse")
    assert (refused.exit_code, refused.stderr) == (
        3,
        "expunge: This action was decided otherwise: ask under a new id.\n",
    )


@pytest.mark.req("R57")
@pytest.mark.usefixtures("context")
def test_action_whose_memory_was_forgotten_is_not_approved() -> None:
    key = asked()
    assert run("forget", "language").exit_code == 0
    refused = run("approve", "decide", "mail-1", "approve")
    assert (refused.exit_code, refused.stderr) == (3, f"expunge: {VOID}")
    assert run("approve", "list").stdout == f"mail-1: send-mail void, operation {key}\n"


@pytest.mark.req("R59")
@pytest.mark.req("R61")
def test_receipt_is_shown_after_the_memory_was_forgotten(context: AdapterContext, tmp_path: Path) -> None:
    key = asked()
    assert run("approve", "receipt", key).stdout.splitlines()[0] == "receipt: none"
    assert run("approve", "decide", "mail-1", "approve").exit_code == 0
    adapter = DraftsAdapter(context, url=f"sqlite:///{tmp_path / 'm.db'}")
    adapter.gateway(FileTool(tmp_path / "tool"), lambda _scope: True).dispatch(SCOPE, "mail-1", 1)
    adapter.close()
    assert run("forget", "language").exit_code == 0
    document = told("approve", "receipt", key)
    assert (document["operation_key"], document["receipt"]) == (key, "msg_1")
    assert run("approve", "receipt", key).stdout == f"receipt: msg_1\ndigest: {document['digest']}\n"
    listed = run("approve", "list").stdout
    assert listed == f"mail-1: send-mail dispatched, operation {key}; outstanding: external_copy\n"


@pytest.mark.usefixtures("context")
def test_wrong_use_is_told_with_what_to_do() -> None:
    unknown = run("approve", "decide", "mail-9", "approve")
    assert (unknown.exit_code, unknown.stderr) == (3, "expunge: There is no such approval in this scope.\n")
    assert run("approve", "receipt", "0" * 32).exit_code == 3
    published()
    no_name = run("approve", "request", "Mail 1", "--action", "send-mail", "--report", "report-001")
    assert no_name.exit_code == 2
    assert no_name.stderr == "expunge: approval must be 1 to 64 of a-z, 0-9 and -, and begin with none\n"
    no_report = run("approve", "request", "mail-1", "--action", "send-mail", "--report", "report-002")
    assert no_report.exit_code == 3
    answer = run("approve", "decide", "mail-1", "perhaps")
    assert answer.exit_code == 2
    assert (
        run("submit", "report-003", "--collect", "seat").stderr
        == "expunge: keys must name facts that hold now in this scope\n"
    )
    assert run("submit", "report-003", "--redo", "report-002").exit_code == 3


def test_words_of_the_schema_are_those_of_the_code() -> None:
    fields = SCHEMAS["memory-approve-list"]["$defs"]["approval"]["properties"]
    assert sorted(fields["state"]["enum"]) == sorted(ApprovalState)
    assert fields["outstanding"]["items"]["enum"] == [EXTERNAL_COPY]


@pytest.mark.req("R54")
def test_job_is_redone_from_its_draft_on(context: AdapterContext, tmp_path: Path) -> None:
    steps = ("--collect", "theme", "--draft", "language")
    assert run("put", "theme", "dark", "--source", "turn-1").exit_code == 0
    assert run("put", "language", "en", "--source", "turn-2").exit_code == 0
    assert run("submit", "report-001", *steps).exit_code == 0
    adapter = DraftsAdapter(context, url=f"sqlite:///{tmp_path / 'm.db'}")
    with pytest.raises(KeyboardInterrupt):
        adapter.runtime.run(SCOPE, "report-001", fault=dies_after_draft)
    adapter.close()
    assert run("put", "language", "zh-CN", "--source", "turn-3").exit_code == 0
    begun = told("submit", "report-002", "--redo", "report-001", *steps)
    assert [(c["step"], c["text"]) for c in begun["checkpoints"]] == [("collect", "theme: dark")]
    done = told("run", "report-002")
    assert done["published"]["text"] == "Report\n\ntheme: dark\nlanguage: zh-CN"
    assert done["checkpoints"][0]["id"] == begun["checkpoints"][0]["id"]


def dies_after_draft(passed: Fault) -> None:
    if passed is Fault.AFTER_DRAFT:
        raise KeyboardInterrupt
