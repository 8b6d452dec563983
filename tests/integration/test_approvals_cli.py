"""`expunge memory approve` and `submit --redo`, as they are typed."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from adapters.drafts import ApprovalState, DraftsAdapter, Fault
from adapters.drafts.approvals.cancel import EXTERNAL_COPY
from orchestrator import AdapterContext, InvalidRequest
from tests.integration.approvals_harness import FileTool
from tests.integration.drafts_cli_harness import SCOPE, context, run, told
from tests.integration.json_harness import SCHEMAS

__all__ = ["context"]
VOID = "What this approval was asked about has changed, has expired or is not allowed any more: ask under a new id.\n"


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


def test_approvals_are_listed_page_by_page(context: AdapterContext, tmp_path: Path) -> None:
    published()
    names = [f"mail-{number}" for number in (1, 2, 3)]
    for name in names:
        assert run("approve", "request", name, "--action", "send-mail", "--report", "report-001").exit_code == 0
    pages: list[list[str]] = []
    after: tuple[str, ...] = ()
    while True:
        page = told("approve", "list", "--limit", "2", *after)
        pages.append([approval["approval"] for approval in page["approvals"]])
        if page["next"] is None:
            break
        after = ("--after", page["next"])
    assert pages == [names[:2], names[2:]]
    assert run("approve", "list", "--limit", "2").stdout.splitlines()[-1] == "more: --after mail-2"
    assert told("approve", "list", "--limit", "3")["next"] is None
    assert "more" not in run("approve", "list", "--limit", "3").stdout
    assert run("approve", "list", "--after", "mail-3").stdout == "no approvals\n"
    assert run("approve", "list", "--limit", "0").exit_code == 2
    assert run("approve", "list", "--after", "Mail 1").exit_code == 2
    with closing(DraftsAdapter(context, url=f"sqlite:///{tmp_path / 'm.db'}")) as adapter:
        approvals = adapter.approvals(lambda _scope: True)
        assert [approval.name for approval in approvals.list(SCOPE)] == names, "a program that names no limit gets all"
        assert [approval.name for approval in approvals.list(SCOPE, after="mail-1", limit=1)] == names[1:2]
        with pytest.raises(InvalidRequest, match="limit must be 1 or more"):
            approvals.list(SCOPE, limit=0)


@pytest.mark.req("R61")
def test_action_is_cancelled_and_one_that_was_sent_is_told_as_outstanding(
    context: AdapterContext, tmp_path: Path
) -> None:
    asked()
    for _ in range(2):
        assert told("approve", "cancel", "mail-1") == {"approval": "mail-1", "state": "void", "outstanding": []}
    void = run("approve", "decide", "mail-1", "approve")
    assert (void.exit_code, void.stderr) == (3, f"expunge: {VOID}")
    request = ("approve", "request", "mail-2", "--action", "send-mail", "--report", "report-001")
    assert run(*request).exit_code == 0
    assert run("approve", "decide", "mail-2", "approve").exit_code == 0
    adapter = DraftsAdapter(context, url=f"sqlite:///{tmp_path / 'm.db'}")
    adapter.gateway(FileTool(tmp_path / "tool"), lambda _scope: True).dispatch(SCOPE, "mail-2", 1)
    adapter.close()
    late = run("approve", "cancel", "mail-2")
    assert (late.exit_code, late.stdout) == (3, "mail-2: dispatched; outstanding: external_copy\n")
    assert run(*request[:2], "mail-3", *request[3:]).exit_code == 0
    assert run("approve", "decide", "mail-3", "refuse").exit_code == 0
    ended = run("approve", "cancel", "mail-3")
    assert (ended.exit_code, ended.stdout) == (3, "mail-3: refused\n")
    unknown = run("approve", "cancel", "mail-9")
    assert (unknown.exit_code, unknown.stderr) == (3, "expunge: There is no such approval in this scope.\n")


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
    words = SCHEMAS["memory-approve-list"]["$defs"]
    assert sorted(words["state"]["enum"]) == sorted(ApprovalState)
    assert words["outstanding"]["items"]["enum"] == [EXTERNAL_COPY]


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
