"""`expunge memory submit|run|inspect`: the story of a report that a revocation stops, and what is printed."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from adapters.drafts import DraftsAdapter, Fault
from adapters.memory.cli import app
from orchestrator import AdapterContext
from orchestrator.initialise import initialise
from tests.integration.cli_harness import Shell
from tests.integration.drafts_cli_harness import SCOPE, WHO, context, run, told
from tests.integration.drafts_harness import with_drafts

__all__ = ["context"]
FAILURE = "memory_changed_or_expired: submit a new job id"
LEASE = 2


@pytest.mark.req("R53")
@pytest.mark.req("R45")
def test_story_of_six_commands_and_a_wait(tmp_path: Path) -> None:
    shell = Shell(tmp_path / "state")
    assert shell("init")[0] == 0
    with_drafts(shell.state)
    assert shell("memory", "put", "language", "zh-CN", "--source", "turn-6", *WHO)[0] == 0
    code, out, _ = shell("memory", "submit", "report-001", *WHO)
    assert (code, out) == (0, "submitted report-001: facts used 1, revision 1, expires never\n")
    code, out, _ = shell("memory", "run", "report-001", "--lease-seconds", f"{LEASE}", "--fault", "after_draft", *WHO)
    died = time.monotonic()
    assert (code, out) == (-signal.SIGKILL, "")
    assert shell("memory", "forget", "language", *WHO)[0] == 0
    time.sleep(max(0.0, died + LEASE - time.monotonic()))
    code, out, said = shell("memory", "run", "report-001", *WHO)
    assert (code, out, said.splitlines()[-1]) == (3, "", f"expunge: {FAILURE}")
    seen = json.loads(shell("memory", "inspect", "report-001", *WHO, "--json")[1])
    assert (seen["state"], seen["failure"], seen["published"]) == ("failed", FAILURE, None)
    assert [(c["step"], "zh-CN" in c["text"]) for c in seen["checkpoints"]] == [("collect", True), ("draft", True)]


@pytest.mark.req("R46")
@pytest.mark.usefixtures("context")
def test_new_id_gives_a_report_without_what_was_forgotten() -> None:
    for key, value in (("language", "zh-CN"), ("theme", "dark")):
        assert run("put", key, value, "--source", "turn-6", "--expires", "100").exit_code == 0
    submitted = told("submit", "report-001")
    assert (submitted["memory_rev"], submitted["memory_expires"], len(submitted["used"])) == (2, 100, 2)
    assert run("forget", "language").exit_code == 0
    for command in ("run", "submit"):
        assert run(command, "report-001").exit_code == 3
    assert run("submit", "report-002").stdout == "submitted report-002: facts used 1, revision 3, expires 100\n"
    document = told("run", "report-002")
    assert (document["state"], document["lease_until"]) == ("published", None)
    assert document["published"]["text"] == "Report\n\ntheme: dark"
    assert {used["kind"] for used in document["published"]["used"]} == {"fact", "checkpoint"}
    assert run("inspect", "report-001").stdout == f"report-001: failed: {FAILURE}\npublished: none\n"
    lines = run("inspect", "report-002").stdout.splitlines()
    text = "Report\\n\\ntheme: dark"
    assert lines == ["report-002: published", "collect: theme: dark", f"draft: {text}", f"published: {text}"]


def test_lease_of_another_runner_exits_3_and_says_when_it_is_free(context: AdapterContext, tmp_path: Path) -> None:
    adapter = DraftsAdapter(context, url=f"sqlite:///{tmp_path / 'm.db'}")

    def dies(_passed: Fault) -> None:
        raise KeyboardInterrupt

    adapter.runtime.submit(SCOPE, "report-001")
    with pytest.raises(KeyboardInterrupt):
        adapter.runtime.run(SCOPE, "report-001", lease_seconds=60, fault=dies)
    adapter.close()
    held = run("run", "report-001")
    assert (held.exit_code, held.stdout) == (3, "")
    assert held.stderr == "expunge: Another runner has this job: it can be claimed when the lease has ended.\n"
    assert told("inspect", "report-001")["lease_until"] == 60


@pytest.mark.usefixtures("context")
def test_wrong_use_is_told_with_what_to_do() -> None:
    unknown = run("run", "report-009")
    assert (unknown.exit_code, unknown.stderr) == (3, "expunge: There is no such draft job in this scope.\n")
    assert run("inspect", "report-009").exit_code == 3
    assert run("submit", "report-001").exit_code == 0
    no_lease = run("run", "report-001", "--lease-seconds", "0")
    assert (no_lease.exit_code, no_lease.stderr) == (
        2,
        "expunge: lease_seconds must be more than 0 and at most 86400\n",
    )
    no_place = run("run", "report-001", "--fault", "after_all")
    assert no_place.exit_code == 2
    assert all(fault.value in no_place.stderr for fault in Fault)
    assert run("submit", " ").exit_code == 2


def test_where_drafts_are_not_enabled_none_are_made(tmp_path: Path) -> None:
    initialise(tmp_path / "state")
    file = tmp_path / "state" / "expunge.toml"
    file.write_text(file.read_text().partition("[adapters.drafts]")[0])
    for command in ("submit", "run", "inspect"):
        refused = CliRunner().invoke(app, [command, "report-001", *WHO, "--dir", str(tmp_path / "state")])
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert "[adapters.drafts] is not in the configuration: add it" in refused.stderr


@pytest.mark.usefixtures("context")
def test_database_that_cannot_be_opened_is_told_without_its_url(tmp_path: Path) -> None:
    (tmp_path / "m.db").mkdir()
    failed = run("submit", "report-001")
    assert (failed.exit_code, failed.stdout) == (1, "")
    assert failed.stderr == (
        "expunge: the drafts cannot be used: The store does not answer."
        " Is [adapters.drafts] url right? (store_unreachable)\n"
    )
