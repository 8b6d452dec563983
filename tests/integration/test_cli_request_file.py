"""Many requests in a file: each row is filed once, however often and wherever the run was stopped."""

from __future__ import annotations

import contextlib
import io
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

import pytest
import sqlalchemy as sa

from orchestrator.bootstrap import Control
from orchestrator.cli import request_file, rows
from tests.fakes import bench, together
from tests.integration.cli_harness import COMMAND, Shell
from tests.integration.commands_harness import CANARY, Run, control, run
from tests.integration.requests_harness import Write, file, jobs, outcomes, told, write

__all__ = ["control", "file", "run", "write"]


@pytest.mark.req("R122")
def test_each_row_is_filed_once_however_often_the_file_is_run(control: Control, file: Run, write: Write) -> None:
    path = write(
        f"acme,{CANARY}-1,trips,passport,,,,user_request,case-1,",
        f'acme,{CANARY}-1,,,"fact,7",,,unlawful,,mail-7',
        "",
        f"acme,{CANARY}-2,,,,chat/turn-6,,child,,",
        f"other,{CANARY}-3,,,,,TRUE,consent_withdrawn,,",
    )
    code, out, error = file(path, "--json")
    assert (code, outcomes(out)) == (0, [(2, "accepted"), (3, "accepted"), (4, "accepted"), (5, "accepted")])
    assert "accepted 4, known 0, refused 0" in error
    filed = jobs(control, "id, tenant, user_id, project, selector_kind, selector_value, reason_code, reference")
    assert [job for job, *_ in filed] == [line["job"] for line in told(out)]
    assert [tuple(asked) for _, *asked in filed] == [
        ("acme", f"{CANARY}-1", "trips", "key", "passport", "user_request", "case-1"),
        ("acme", f"{CANARY}-1", None, "memory", "fact,7", "unlawful", None),
        ("acme", f"{CANARY}-2", None, "source", "chat/turn-6", "child", None),
        ("other", f"{CANARY}-3", None, "subject", None, "consent_withdrawn", None),
    ]
    code, again, error = file(path, "--json")
    assert (code, outcomes(again)) == (0, [(2, "known"), (3, "known"), (4, "known"), (5, "known")])
    assert [line["job"] for line in told(again)] == [line["job"] for line in told(out)]
    assert ("accepted 0, known 4, refused 0" in error, "have ended" in error, len(jobs(control))) == (True, False, 4)
    code, text, _ = file(path)
    assert text.splitlines()[0] == f"row 2: known, job {filed[0][0]} (requested)"


def test_standard_input_is_read_as_csv(control: Control, file: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    content = io.BytesIO(b"tenant,user,reason,key\nacme,ann,operator,a\n")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(content))
    code, out, _ = file("-", "--json")
    assert (code, outcomes(out), len(jobs(control))) == (0, [(2, "accepted")], 1)


def test_key_that_another_request_was_filed_under_refuses_its_row_alone(
    control: Control, file: Run, write: Write
) -> None:
    assert file(write("acme,ann,,first,,,,operator,,mail-7"))[0] == 0
    lines = [f"acme,user-{n},,a,,,,operator,," for n in range(9)]
    lines[4] = "acme,ann,,second,,,,operator,,mail-7"
    lines[7] = "other,ann,,second,,,,operator,,mail-7"  # of another tenant, so it is no conflict
    code, out, _ = file(write(*lines), "--json")
    assert (code, [o for _, o in outcomes(out)]) == (1, [*["accepted"] * 4, "refused", *["accepted"] * 4])
    assert "used for another request" in told(out)[4]["why"]
    assert len(jobs(control)) == 9


def test_row_whose_job_has_ended_is_known_and_the_operator_is_told(control: Control, file: Run, write: Write) -> None:
    path = write("acme,ann,,a,,,,operator,,", "acme,bob,,a,,,,operator,,")
    first = told(file(path, "--json")[1])[0]["job"]
    control.ledger.cancel(first)
    code, out, error = file(path, "--json")
    assert (code, [(line["outcome"], line["state"]) for line in told(out)]) == (
        0,
        [("known", "cancelled"), ("known", "requested")],
    )
    assert "1 of the known ones have ended, and erase nothing that came later" in error


@pytest.mark.parametrize(
    "words",
    [
        ("--tenant", "acme"),
        ("--user", "ann"),
        ("--reason", "operator"),
        ("--key", "a"),
        ("--memory", "a"),
        ("--source", "a"),
        ("--subject",),
        ("--project", "a"),
        ("--reference", "a"),
        ("--idempotency-key", "a"),
        ("--wait",),
    ],
    ids=lambda words: words[0],
)
def test_rows_alone_say_what_is_asked_for(control: Control, file: Run, write: Write, words: tuple[str, ...]) -> None:
    code, _, error = file(write("acme,ann,,a,,,,operator,,"), *words)
    assert (code, "leave out every other option" in error, jobs(control)) == (2, True, [])


def test_request_that_names_nobody_says_what_is_missing(control: Control, run: Run) -> None:
    for words in (("--tenant", "a", "--user", "b"), ("--tenant", "a", "--reason", "operator"), ("--user", "b")):
        code, _, error = run("request", "--key", "k", *words)
        assert (code, "or a --file of requests" in error) == (2, True)
    assert jobs(control) == []


def test_ten_thousand_rows_are_a_transaction_a_batch(control: Control, file: Run, write: Write) -> None:
    path = write(*(f"acme,user-{n},,,,,true,user_request,case-{n}," for n in range(10_000)))
    commits: list[object] = []

    def count(connection: object) -> None:
        commits.append(connection)

    sa.event.listen(sa.Engine, "commit", count)
    try:
        code, out, _ = file(path, "--json")
    finally:
        sa.event.remove(sa.Engine, "commit", count)
    assert (code, len(told(out)), len({line["job"] for line in told(out)})) == (0, 10_000, 10_000)
    assert len(jobs(control)) == 10_000
    batches = 10_000 // request_file.BATCH
    assert batches <= len(commits) <= 2 * batches + 5


def test_run_that_was_killed_in_the_middle_is_taken_up_where_it_stopped(control: Control, write: Write) -> None:
    shell, count = Shell(control.settings.state_dir), 2 * request_file.BATCH + 100
    path = write(*(f"acme,user-{n},,,,,true,user_request,," for n in range(count)))
    code, out, _ = shell("request", "--file", str(path), "--json", EXPUNGE_CRASH_AT="after_accept@accept:2")
    # The second batch was written, and nobody was told.
    assert (code, len(told(out)), len(jobs(control))) == (-signal.SIGKILL, request_file.BATCH, 2 * request_file.BATCH)
    code, out, error = shell("request", "--file", str(path), "--json")
    expected = ["known"] * (2 * request_file.BATCH) + ["accepted"] * 100
    assert (code, [o for _, o in outcomes(out)]) == (0, expected)
    assert (f"accepted 100, known {2 * request_file.BATCH}, refused 0" in error, len(jobs(control))) == (True, count)


def test_two_runs_at_once_file_each_row_once(postgres_url: str, tmp_path: Path) -> None:
    stage = bench(tmp_path, url=postgres_url)
    lines = [b"tenant,user,reason,key\n", *(b"acme,user-%d,operator,a\n" % n for n in range(300))]
    asked = [(r.number, r.request) for r in rows.read(lines, "me", json_lines=False) if r.request is not None]
    answers: list[dict[int, Any]] = []
    together(*[lambda: answers.append(dict(request_file._filed(asked, stage.acceptance)))] * 2)
    first, second = answers
    assert {row: job for row, (job, _) in first.items()} == {row: job for row, (job, _) in second.items()}
    assert [new for _, new in first.values()] != [new for _, new in second.values()]
    assert stage.rows("SELECT count(*) FROM deletion_jobs") == [(300,)]
    stage.ledger.engine.dispose()


def on_a_terminal(shell: Shell, path: Path, out: IO[bytes] | None) -> bytes:
    """File a file of requests on a terminal, with the output in a file (None: there, too); give what it shows."""
    reading, writing = pty.openpty()
    words = [*COMMAND, "request", "--file", str(path), "--json"]
    process = subprocess.Popen(words, env=shell.environment(TERM="xterm"), stdout=out or writing, stderr=writing)
    os.close(writing)
    shown = b""
    with contextlib.suppress(OSError):  # the other end is closed
        while part := os.read(reading, 65_536):
            shown += part
    os.close(reading)
    assert process.wait(30) == 0
    return shown


def test_progress_is_shown_on_a_terminal_alone_and_results_go_where_they_were_sent(
    control: Control, write: Write, tmp_path: Path
) -> None:
    shell = Shell(control.settings.state_dir)
    path = write(*(f"acme,user-{n},,,,,true,user_request,," for n in range(1200)))
    with (tmp_path / "out").open("wb") as out:
        shown = on_a_terminal(shell, path, out)
    assert len(told((tmp_path / "out").read_text())) == 1200
    assert (b"kB" in shown, b"accepted 1200" in shown, b'"outcome"' in shown) == (True, True, False)
    assert b"job.accepted" not in shown, "the bar is not buried under a line for each job"
    assert "kB" not in shell("request", "--file", str(path))[2]


def test_terminal_that_shows_the_results_has_each_on_a_line_of_its_own(control: Control, write: Write) -> None:
    path = write(*(f"acme,user-{n},,,,,true,user_request,," for n in range(40)))
    shown = on_a_terminal(Shell(control.settings.state_dir), path, None).decode()
    whole = re.sub(r"\x1b\[[0-9?;]*[a-zA-Z]", "", shown).replace("\r", "\n").replace("\n\n", "\n")
    lines = [line for line in whole.splitlines() if "row" in line]
    assert len([line for line in lines if line.startswith('{"row": ')]) == len(lines) == 40
