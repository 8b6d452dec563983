"""What commands say beside their numbers: whose store it is, what may be left, one as one, and how long they look."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from orchestrator import ErrorCode, InvalidRequest, Residual, Scope, StoreUnreachable, settings
from orchestrator.bootstrap import Control, context
from orchestrator.cli import file as filing
from orchestrator.cli import follow
from orchestrator.counted import counted
from orchestrator.domain.codes import Parked
from orchestrator.domain.retry import Park, RetryIn
from orchestrator.registry import AdapterContext, load_adapters, naming
from orchestrator.store import tables as t
from tests.integration.commands_harness import Run, control, fail, file, hold, run

__all__ = ["control", "run"]

ANN = ("--tenant", "acme", "--user", "ann")
WRITE = ("--source", "chat/turn-6", "--position", "7")


def test_gate_is_asked_for_what_holds_in_general(control: Control, run: Run) -> None:
    gate = context(control).gate
    in_general = Scope(tenant="acme", user="ann")
    for mark in (gate.for_key(in_general, "seat", 9), gate.for_key(replace(in_general, project="p"), "diet", 9)):
        row = {"key_id": mark.key_id, "mac": mark.mac, "kind": mark.kind.value, "cut_off": mark.cut_off}
        why = {"tenant": "acme", "job_id": "j", "reason_code": "operator", "created_at_us": 1}
        with control.database.begin() as connection:
            connection.execute(t.tombstones.insert().values(**row, **why))
    ask = ("tombstone", "check", *ANN, *WRITE, "--text", "12A", "--key")
    assert run(*ask, "seat")[0] == 3
    assert run(*ask, "diet")[0] == 0, "what was forgotten of a project says nothing of what holds in general"
    assert (run(*ask, "seat", "--project", "p")[0], run(*ask, "diet", "--project", "p")[0]) == (0, 3)


def test_receipts_say_in_a_sentence_what_may_be_left(control: Control, run: Run) -> None:
    job = file(control)
    with control.database.begin() as connection:
        unit = connection.execute(sa.select(t.units.c.id).where(t.units.c.job_id == job)).scalar_one()
        counts = {"expected": 2, "erased": 2, "already_absent": 0, "remaining": 0, "page": 0, "round": 1}
        times = {"started_at_us": 1, "finished_at_us": 2, "attempt": 1, "fence": 1, "body": b"", "salt": b""}
        whose = {"id": "r", "unit_id": unit, "job_id": job, "adapter": "memory", "phase": "erase", "outcome": "erased"}
        left = json.dumps([Residual.FILE_SYSTEM.value, Residual.WAL_ARCHIVE.value])
        connection.execute(t.receipts.insert().values(**whose, **counts, **times, residuals=left))
    code, out, _ = run("receipts", job)
    (line, *left_over) = out.splitlines()
    assert (code, line.split()[:3]) == (0, ["memory", "erase", "erased"])
    assert [said.strip() for said in left_over] == [
        f"may be left: {code.value}. {code.sentence}" for code in (Residual.FILE_SYSTEM, Residual.WAL_ARCHIVE)
    ]


@pytest.mark.parametrize("command", ["status", "watch", "overdue"])
def test_last_error_names_its_store(control: Control, run: Run, command: str) -> None:
    job = file(control)
    fail(control, RetryIn(delay=timedelta(minutes=5)))
    words = {"status": [job], "watch": [job, "--timeout", "0.1"], "overdue": []}[command]
    with control.database.begin() as connection:
        connection.execute(t.jobs.update().values(due_at_us=1))
    _, out, _ = run(command, *words)
    told = {"overdue": "memory: last error store_unreachable"}.get(command, "of memory failed (store_unreachable)")
    assert told in out


def test_error_of_a_store_names_its_adapter() -> None:
    for error in (StoreUnreachable(), InvalidRequest("the url must name a database", field="url")):
        with pytest.raises(type(error), match=rf"^notes: {error}$") as caught, naming("notes"):
            raise error
        assert caught.value.facts == error.facts
    said = "The notes do not answer."
    with pytest.raises(StoreUnreachable, match=r"^The notes do not answer\.$"), naming("notes"):
        raise StoreUnreachable(said)
    with pytest.raises(KeyError, match=r"^'a'$"), naming("notes"):
        raise KeyError(*"a")


def test_adapter_that_refuses_its_options_is_named(control: Control) -> None:
    made: AdapterContext = context(control)
    with pytest.raises(InvalidRequest, match=r"^memory: .*postgresql"):
        load_adapters(made, {"memory": {"url": "mysql://host/name"}})


@pytest.mark.parametrize("url", ["unix:///run/redis.sock", "http://127.0.0.1:1", "redis:///7", "127.0.0.1:6379"])
def test_wrong_url_of_the_cache_is_told_with_what_is_allowed(control: Control, url: str) -> None:
    with pytest.raises(InvalidRequest, match="redis://HOST:PORT/DB or rediss://HOST:PORT/DB; port 0") as caught:
        load_adapters(context(control), {"cache": {"url": url}})
    assert url not in str(caught.value)


def test_one_is_one_and_more_are_more(control: Control, run: Run) -> None:
    assert [counted(n, "unit is", "units are") for n in (0, 1, 2)] == ["0 units are", "1 unit is", "2 units are"]
    job = file(control)
    fail(control, Park(reason=Parked.PERMANENT_ERROR), ErrorCode.PERMANENT)
    assert run("retry", job)[1] == "1 unit is due again\n"


def test_holds_are_listed_with_their_tenant(control: Control, run: Run) -> None:
    file(control)
    hold(control)
    (line,) = run("hold", "list")[1].splitlines()
    assert line.endswith("all of the subject, dispute, tenant acme")


def test_variable_that_would_move_the_state_directory_is_refused_with_the_one_that_does(
    control: Control, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXPUNGE_STATE_DIR", "elsewhere")
    code, _, error = run("list")
    assert (code, "unknown variable EXPUNGE_STATE_DIR; did you mean EXPUNGE_DIR?" in error) == (2, True)
    with pytest.raises(InvalidRequest):
        settings.read(control.settings.state_dir)


def test_looks_become_rarer_the_longer_a_job_takes_and_are_never_far_apart() -> None:
    assert [follow.pause_after(waited) for waited in (0.0, 0.2, 1.0, 3.0, 8.0, 600.0)] == [
        pytest.approx(pause) for pause in (0.05, 0.05, 0.1, 0.3, 0.8, 1.0)
    ]


@pytest.mark.parametrize("command", ["request", "watch"])
def test_waiting_looks_seldom_and_ends_in_time(
    control: Control, run: Run, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    slept: list[float] = []
    now = [1000.0]

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    clock = type("Clock", (), {"monotonic": staticmethod(lambda: now[0]), "sleep": staticmethod(sleep)})
    monkeypatch.setattr(filing, "time", clock)
    monkeypatch.setattr(follow, "time", clock)
    ask = (*ANN, "--key", "a", "--reason", "operator", "--wait", "--timeout", "60")
    words = ask if command == "request" else (file(control), "--timeout", "60")
    assert run(command, *words)[0] == 1
    assert sum(slept) == pytest.approx(60.0)
    assert max(slept) == 1.0
    assert len(slept) < 110, "at one look in 50 ms it would be 1200"


def test_missing_folder_of_copies_is_named(control: Control, run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "disk" / "copies"
    with (control.settings.state_dir / "expunge.toml").open("a") as config:
        config.write(f'[adapters.backup]\nmanifest = "{folder}/manifest.json"\n')
    began = time.monotonic()
    for words in (("take",), ("list",)):
        code, _, error = run("backup", *words)
        assert (code, f"The folder {folder} of the backup manifest is missing: make it" in error) == (1, True), error
    assert (folder.exists(), time.monotonic() - began < 10) == (False, True)
    folder.mkdir(parents=True)
    (control.settings.state_dir / "memory.db").touch(0o600)
    assert "is missing" not in run("backup", "take")[2]
