"""What a person does where a job does not move by itself: each command's normal use, its refusal, its JSON and log."""

from __future__ import annotations

import getpass
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from orchestrator.bootstrap import Control
from orchestrator.domain.codes import ErrorCode, Parked
from orchestrator.domain.retry import Park
from orchestrator.domain.unit import Phase
from tests.fakes import FakeClock
from tests.integration.commands_harness import USER, Run, control, fail, file, hold, run

__all__ = ["control", "run"]


def park(control: Control) -> None:
    """Have the due units of the source fail for good."""
    fail(control, Park(reason=Parked.PERMANENT_ERROR), ErrorCode.PERMANENT)


def events(error: str) -> list[dict[str, Any]]:
    """Give the log lines without what every line has."""
    lines = [json.loads(line) for line in error.splitlines() if line.startswith("{")]
    return [{k: v for k, v in line.items() if k not in {"timestamp", "level"}} for line in lines]


def refused(run: Run, *words: str, told: str = "no such") -> None:
    code, out, error = run(*words)
    (line,) = [line for line in error.splitlines() if not line.startswith("{")]
    assert (code, out, told in line) == (3, "", True), error


def test_retry_makes_parked_units_due_again(control: Control, run: Run) -> None:
    job = file(control)
    park(control)
    assert control.ledger.job(job).parked == (("memory", "revoke", "permanent_error"),)
    code, out, error = run("retry", job, "--json")
    assert (code, json.loads(out)) == (0, {"job": job, "units": 1})
    assert events(error) == [{"event": "job.retried", "job_id": job, "units": 1}]
    assert control.ledger.job(job).parked == ()
    assert control.ledger.due(["memory"]) == [("memory", Phase.REVOKE)]
    assert run("retry", job)[1] == "nothing of this job was parked or waiting for another attempt\n"
    refused(run, "retry", job, "--tenant", "other")
    refused(run, "retry", "no-such-job")
    control.ledger.cancel(file(control, "other"))
    ended = control.ledger.jobs(tenant=None, state=None, after=job, limit=1)[0].id
    refused(run, "retry", ended, told="has ended")


def test_cancel_ends_a_job_that_was_not_begun(control: Control, run: Run) -> None:
    job, begun = file(control), file(control, "begun")
    code, out, error = run("cancel", job, "--json")
    assert (code, json.loads(out)["state"]) == (0, "cancelled")
    assert events(error) == [{"event": "job.cancelled", "job_id": job}]
    park(control)
    refused(run, "cancel", begun, told="cannot be cancelled")
    refused(run, "cancel", job, told="has ended")
    refused(run, "cancel", begun, "--tenant", "other")
    assert control.ledger.job(begun).state == "requested"
    assert run("cancel", file(control, "third"))[1].endswith(": cancelled\n")


def test_waive_lets_a_job_pass_a_store_by_name(control: Control, run: Run) -> None:
    job = file(control)
    waive = ("waive", job, "--reason", "store_gone", "--adapter")
    code, out, error = run(*waive, "cache", "--json")
    assert (code, json.loads(out)["waived"]) == (0, ["cache"])
    assert events(error) == [{"event": "job.waived", "job_id": job, "adapter": "cache", "reason": "store_gone"}]
    code, out, error = run(*waive, "cache")
    assert (code, "waived: cache" in out, events(error)) == (0, True, [])
    refused(run, *waive, "memory", told="still hands the data out")
    refused(run, *waive, "cache", "--tenant", "other")
    for words, told in (((*waive, "vectors"), "memory, cache"), (("waive", job, "--adapter", "cache"), "--reason")):
        code, _, error = run(*words)
        assert (code, told in error) == (2, True)
    code, _, error = run("waive", job, "--adapter", "cache", "--reason", "because")
    assert (code, "store_gone" in error) == (2, True)


def test_overdue_lists_what_is_late_or_due_within_the_warning(
    control: Control, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, now = control.clock, datetime.now(UTC)
    assert isinstance(clock, FakeClock)
    assert json.loads(run("overdue", "--json")[1]) == {"jobs": []}
    assert run("overdue")[1] == "nothing is overdue or due soon\n"
    filed = []
    for days in (40, 26, 10):  # the deadline is a month, the warning a week
        clock.at = now - timedelta(days=days)
        filed.append(file(control, f"key-{days}"))
    late, soon, early = filed
    park(control)
    code, out, _ = run("overdue", "--json")
    assert (code, [job["id"] for job in json.loads(out)["jobs"]]) == (0, [late, soon])
    lines = run("overdue")[1].splitlines()
    assert [("days overdue" in line, "due in" in line) for line in lines] == [(True, False), (False, True)]
    assert all("memory revoke parked (permanent_error)" in line for line in lines)
    assert json.loads(run("overdue", "--tenant", "other", "--json")[1]) == {"jobs": []}
    assert len(run("overdue", "--limit", "1")[1].splitlines()) == 1
    for warn, seen in (("0s", [late]), ("30d", [late, soon, early])):
        monkeypatch.setenv("EXPUNGE_DEADLINE__WARN", warn)
        assert [job["id"] for job in json.loads(run("overdue", "--json")[1])["jobs"]] == seen
    code, _, error = run("overdue", "--within", "3")
    assert (code, "--within" in error) == (2, True)


def test_hold_add_keeps_a_job_waiting(control: Control, run: Run) -> None:
    job = file(control)
    who = ("--tenant", "acme", "--user", USER, "--reason", "litigation")
    code, out, error = run("hold", "add", "--subject", *who, "--reference", "case-9", "--json")
    (placed,) = json.loads(out)["holds"]
    assert (code, placed["standing"], placed["item"], placed["reference"]) == (0, "placing", None, "case-9")
    assert events(error) == [{"event": "hold.placed", "hold_id": placed["id"], "reason": "litigation"}]
    assert control.ledger.job(job).held
    assert control.ledger.due(["memory"]) == []
    code, out, error = run("hold", "add", "--memory", "fact-1", "--memory", "fact-2", *who)
    *placed_lines, said = out.splitlines()
    assert (code, len(placed_lines), "placing, record fact-1, litigation" in out) == (0, 2, True)
    assert "not looked at" in said, "a mistyped id would protect nothing"
    assert len(events(error)) == 2
    for words in ((), ("--subject", "--memory", "fact-1")):
        code, _, error = run("hold", "add", *words, *who)
        assert (code, "either --subject or" in error) == (2, True)
    code, _, error = run("hold", "add", "--subject", *who, "--reference", f"case-{USER}")
    assert (code, "case number" in error) == (2, True)


def test_nameless_user_of_a_container_may_steer(control: Control, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def nameless() -> str:
        message = "uid not found"
        raise KeyError(message)

    monkeypatch.setattr(getpass, "getuser", nameless)
    assert run("waive", file(control), "--adapter", "cache", "--reason", "operator")[0] == 0


def test_hold_list_goes_on_page_by_page(control: Control, run: Run) -> None:
    file(control)
    first, second = hold(control, "fact-1", "fact-2")
    page = json.loads(run("hold", "list", "--limit", "1", "--json")[1])
    assert ([h["id"] for h in page["holds"]], page["next"]) == ([str(first)], str(first))
    assert f"more: --after {first}" in run("hold", "list", "--limit", "1")[1]
    page = json.loads(run("hold", "list", "--after", str(first), "--json")[1])
    assert ([h["id"] for h in page["holds"]], page["next"]) == ([str(second)], None)
    assert json.loads(run("hold", "list", "--tenant", "other", "--json")[1])["holds"] == []
    control.ledger.release(str(first), by_ref="r" * 64)
    assert len(json.loads(run("hold", "list", "--json")[1])["holds"]) == 1
    assert "released, record fact-1" in run("hold", "list", "--released")[1]


def test_hold_release_lets_the_job_go_on(control: Control, run: Run) -> None:
    job = file(control)
    (held,) = hold(control)
    assert control.ledger.job(job).held
    refused(run, "hold", "release", str(held), "--tenant", "other")
    refused(run, "hold", "release", "no-such-hold")
    code, out, error = run("hold", "release", str(held), "--json")
    assert (code, json.loads(out)["standing"]) == (0, "released")
    assert events(error) == [{"event": "hold.released", "hold_id": str(held)}]
    assert not control.ledger.job(job).held
    assert control.ledger.due(["memory"]) == [("memory", Phase.REVOKE)]
    refused(run, "hold", "release", str(held), told="released already")
