"""Following a job: what the exit code of `watch` tells, what keeps a job, and what a terminal is spared."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import subprocess
from datetime import datetime, timedelta
from pathlib import Path

from orchestrator.bootstrap import Control
from orchestrator.cli import follow
from orchestrator.cli.options import printable
from orchestrator.domain.codes import Parked
from orchestrator.domain.retry import Park, RetryIn
from tests.fakes import bench, fill
from tests.integration.cli_harness import COMMAND, Shell
from tests.integration.commands_harness import Run, control, fail, file, hold, run

__all__ = ["control", "run"]


def test_watch_of_a_parked_job_exits_4(control: Control, run: Run) -> None:
    job = file(control)
    fail(control, Park(reason=Parked.PERMANENT_ERROR))
    code, out, _ = run("watch", job)
    assert (code, "parked: memory revoke" in out) == (4, True)


def test_watch_of_a_held_job_exits_4(control: Control, run: Run) -> None:
    job = file(control)
    hold(control)
    assert run("watch", job)[0] == 4


def test_watch_that_waits_in_vain_exits_1_and_says_what_may_be(control: Control, run: Run) -> None:
    job = file(control)
    code, _, error = run("watch", job, "--timeout", "0.2")
    assert (code, "not completed after 0.2 s" in error) == (1, True)
    assert "no worker may be running (expunge up), or a store takes long" in error


def test_job_that_is_tried_again_says_so(control: Control, run: Run) -> None:
    job = file(control)
    fail(control, RetryIn(delay=timedelta(minutes=5)))
    code, out, _ = run("status", job)
    assert (code, "(store_unreachable), and it is tried again by itself" in out) == (0, True)
    _, _, error = run("watch", job, "--timeout", "0.2")
    assert ("store_unreachable" in error, "worker may be" in error) == (True, False)


def test_status_tells_when_the_next_attempt_comes(control: Control, run: Run) -> None:
    job = file(control)
    assert f"due: memory revoke, {control.clock.now():%Y-%m-%d}" in run("status", job)[1]
    before = control.clock.now()
    fail(control, RetryIn(delay=timedelta(minutes=5)))
    told = json.loads(run("status", job, "--json")[1])["next_attempt_at"]
    assert timedelta(minutes=5) <= datetime.fromisoformat(told) - before <= timedelta(minutes=6)
    assert f"next attempt: memory revoke, {datetime.fromisoformat(told):%Y-%m-%d %H:%M} UTC\n" in run("status", job)[1]
    assert control.ledger.retry(job) == 1
    fail(control, Park(reason=Parked.PERMANENT_ERROR))
    assert json.loads(run("status", job, "--json")[1])["next_attempt_at"] is None
    code, out, _ = run("status", job)
    assert (code, "attempt:" in out, "due:" in out) == (0, False, False)


def test_waiting_shows_on_a_terminal_what_it_waits_for(control: Control) -> None:
    shell = Shell(control.settings.state_dir)
    who = ("--tenant", "acme", "--user", "ann", "--key", "passport", "--timeout", "1")
    for words in (("request", *who, "--reason", "operator", "--wait"), ("preview", *who)):
        reading, writing = pty.openpty()
        process = subprocess.Popen(
            [*COMMAND, *words], env=shell.environment(TERM="xterm"), stdout=subprocess.DEVNULL, stderr=writing
        )
        os.close(writing)
        shown = b""
        with contextlib.suppress(OSError):  # the other end is closed
            while part := os.read(reading, 65_536):
                shown += part
        os.close(reading)
        process.wait(30)
        phase = b"revoke" if words[0] == "request" else b"find"
        assert b"requested, waits for %b memory" % phase in shown
        assert b"waits for" not in shell(*words)[2].encode()


def test_watch_of_a_cancelled_job_has_nothing_to_complain_of(control: Control, run: Run) -> None:
    job = file(control)
    control.ledger.cancel(job)
    assert run("watch", job)[0] == 0


def test_exit_code_of_a_job_that_found_nothing_is_5(tmp_path: Path) -> None:
    stage = bench(tmp_path, lease=1)
    mistyped, found = stage.file("mistyped"), stage.file()
    fill(stage)
    stage.run()
    codes = {job: follow.exit_code(stage.view(job)) for job in (mistyped, found)}
    stage.ledger.engine.dispose()
    assert codes == {mistyped: 5, found: 0}


def test_times_are_iso_8601(control: Control, run: Run) -> None:
    job = file(control)
    for words in (("status", job, "--json"), ("watch", job, "--json", "--timeout", "0.1")):
        told = json.loads(run(*words)[1])["requested_at"]
        assert (told[10], datetime.fromisoformat(told).tzinfo is not None) == ("T", True)


def test_nothing_that_somebody_named_reaches_the_terminal_raw(control: Control, run: Run) -> None:
    job = file(control, tenant="ac\x1b[31mme\n\x9bx")
    for words in (("list",), ("status", job), ("overdue",), ("status", "\x1b]0;x\x07"), ("list", "--after", "\x1b[1m")):
        _, out, error = run(*words)
        assert [c for c in out + error if not c.isprintable() and c != "\n"] == []
    assert "ac\\x1b[31mme\\n\\x9bx" in run("list")[1]
    assert printable("naïve 报告 ok") == "naïve 报告 ok"


def test_id_of_a_job_is_told_before_the_waiting(tmp_path: Path) -> None:
    shell = Shell(tmp_path / "state")
    assert shell("init")[0] == 0
    asked = ["request", "--key", "a", "--tenant", "acme", "--user", "ann", "--reason", "operator", "--wait", "--json"]
    process = subprocess.Popen(
        [*COMMAND, *asked], env=shell.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    told = next(line for line in process.stderr if line.startswith("filed job"))
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, "")
    assert shell.json("list")["jobs"][0]["id"] in told


def test_receipts_tell_how_far_a_verify_could_look(tmp_path: Path) -> None:
    stage = bench(tmp_path, lease=1)
    fill(stage)
    job = stage.file()
    stage.run()
    receipts = stage.ledger.receipts(job)
    stage.ledger.engine.dispose()
    assert {r.phase: r.reach for r in receipts} == {"revoke": None, "erase": None, "verify": "logical"}
