"""The report of a job as a privacy officer reads it: what is done, what is not, what waits, and nobody's name."""

from __future__ import annotations

import json
import re
from datetime import timedelta

import pytest

from adapters.backup.manifest import Policy
from orchestrator.bootstrap import Control
from orchestrator.cli import report as cli
from orchestrator.domain.states import JobState
from orchestrator.service.report import Report, report
from orchestrator.store import report as reading
from tests.integration.commands_harness import Run, control, file, run
from tests.integration.five_stores import ANNA, BERTA, END, SECRET, TURN_6, Five, five

__all__ = ["control", "five", "run"]


@pytest.mark.req("R131")
def test_four_of_five_stores_are_done_and_the_backup_waits_until_its_date(five: Five) -> None:
    five.learn(ANNA)
    five.learn(BERTA)
    five.backup.take(Policy.REWRITE, None)
    five.clock.at += timedelta(seconds=1)
    offsite = five.backup.take(Policy.WINDOW, END).handle
    job = five.request()

    def said() -> tuple[Report, str]:
        enabled = list(five.control.settings.adapters)
        facts = reading.read(five.control.database, job)
        made = report(facts, at=five.clock.now(), enabled=enabled, installed=[*enabled, "papers"], told=["paper files"])
        lines = list(cli._plain(made))
        assert max(len(line) for line in lines) <= 80
        text = "\n".join([*lines, *cli._markdown(made), json.dumps(cli.document(made), default=str)])
        assert [word for word in (ANNA.user, SECRET, TURN_6) if word in text] == []
        return made, "\n".join(lines)

    assert said()[0].headline == "0 done, 5 outstanding (memory, cache, vector, drafts, backup)"
    five.run()
    made, text = said()
    assert "\n4 done, backup until 2026-11-27\n" in text
    assert {s.name: (s.erased, s.scheduled) for s in made.stores} == {
        "memory": (1, 0),
        "vector": (1, 0),
        "cache": (1, 0),
        "drafts": (3, 0),
        "backup": (1, 1),
    }
    assert f"  backup copy {offsite} lives until 2026-11-27 03:00 UTC\n" in text
    for line in (
        "Model weights are not changed",
        "papers: installed, and not enabled here",
        "paper files",
        "memory: the bytes of its files",
        "revoked: 1, the last answer on 2026-10-27 03:00 UTC",
        "Outstanding\n  nothing\n",
    ):
        assert line in text
    five.clock.at = END + timedelta(seconds=1)
    assert said()[0].headline == "4 done, backup until 2026-11-27 (overdue)"
    five.run()
    assert "still_present" in said()[1]
    (five.control.settings.state_dir / "backups" / f"{offsite}.db").unlink()
    five.run()
    made, text = said()
    assert (made.job.state, made.headline) == (JobState.COMPLETED, "5 done")
    assert f"backup copy {offsite} was seen to be gone on 2026-11-27 03:00 UTC" in " ".join(text.split())


def test_command_tells_it_as_text_as_markdown_and_as_json(control: Control, run: Run) -> None:
    _configure(control, 'not_covered = ["exports of the data warehouse"]')
    job = file(control, reference="case-7")
    code, text, _ = run("report", job)
    assert (code, text.splitlines()[0]) == (0, f"Report of job {job}")
    assert "0 done, 2 outstanding (memory, cache)" in text
    assert "exports of the data warehouse" in text
    assert "vector: installed, and not enabled here" in text
    code, text, _ = run("report", job, "--markdown")
    assert (code, f"# Report of job {job}" in text, "- exports of the data warehouse" in text) == (0, True, True)
    code, text, _ = run("report", job, "--json", "--tenant", "acme")
    said = json.loads(text)
    assert (code, said["job"]["id"], said["job"]["reference"]) == (0, job, "case-7")
    assert said["not_covered"]["told"] == ["exports of the data warehouse"]
    assert [s["standing"] for s in said["stores"]] == ["outstanding", "outstanding"]


@pytest.mark.req("R138")
def test_command_answers_foreign_and_missing_jobs_alike(control: Control, run: Run) -> None:
    job = file(control, reference="case-7")
    foreign, missing = run("report", job, "--tenant", "other"), run("report", "no-such-job")
    assert foreign == missing
    assert (foreign[0], foreign[1], "no such job" in foreign[2]) == (3, "", True)


def test_preview_is_no_forget_request_and_has_no_report(control: Control, run: Run) -> None:
    code = run("preview", "--subject", "--tenant", "acme", "--user", "berta", "--timeout", "0.1")[0]
    assert code == 4
    with control.database.begin() as connection:
        job = connection.exec_driver_sql("SELECT id FROM deletion_jobs").scalar_one()
    code, out, error = run("report", job)
    assert (code, out, "is a preview" in error) == (2, "", True)
    assert run("report", job, "--tenant", "other")[0] == 3


def test_what_somebody_named_reaches_the_terminal_escaped(control: Control, run: Run) -> None:
    job = file(control, tenant="ac\x1b[31mme\n", reference="case-7")
    for words in (("report", job), ("report", job, "--markdown")):
        out = run(*words)[1]
        assert ([c for c in out if not c.isprintable() and c != "\n"], "ac\\x1b[31mme\\n" in out) == ([], True)


@pytest.mark.parametrize(
    ("value", "told"), [("paper", "take JSON"), ("[1]", "report.not_covered.0"), ('[""]', "report.not_covered.0")]
)
def test_list_of_what_is_not_covered_may_stand_in_the_environment(
    control: Control, run: Run, monkeypatch: pytest.MonkeyPatch, value: str, told: str
) -> None:
    job = file(control, reference="case-7")
    monkeypatch.setenv("EXPUNGE_REPORT__NOT_COVERED", '["paper files", "exports"]')
    assert json.loads(run("report", job, "--json")[1])["not_covered"]["told"] == ["paper files", "exports"]
    monkeypatch.setenv("EXPUNGE_REPORT__NOT_COVERED", value)
    code, _, error = run("report", job)
    assert (code, told in error, len(error.splitlines())) == (2, True, 1), error


def test_unknown_key_of_the_report_is_refused_with_the_known_one(control: Control, run: Run) -> None:
    _configure(control, "not_coverd = []")
    code, _, error = run("report", "any")
    assert (code, "did you mean report.not_covered?" in error) == (2, True)


def _configure(control: Control, line: str) -> None:
    """Put a line in the place of what a new configuration says of reports."""
    config = control.settings.state_dir / "expunge.toml"
    text, times = re.subn(r"(?m)^not_covered = \[\].*$", line, config.read_text())
    assert times == 1
    config.write_text(text)
