"""`expunge backup`: what the commands print, and their exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import orchestrator
from adapters.backup import BackupAdapter
from adapters.backup.cli import app
from orchestrator import InvalidRequest
from tests.integration.backup_harness import DAY, Stage, backups

__all__ = ["backups"]


@pytest.fixture
def state(backups: Stage, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """Let the commands open the adapter that a configuration would name."""

    def open_adapter(state_dir: Path | None, name: str) -> BackupAdapter:
        assert (state_dir, name) == (backups.folder, "backup")
        return BackupAdapter(backups.backup._context)

    monkeypatch.setattr(orchestrator, "open_adapter", open_adapter)
    return backups


def run(stage: Stage, *words: str) -> Result:
    return CliRunner().invoke(app, [*words, "--dir", str(stage.folder)])


def test_copy_is_taken_and_listed(state: Stage) -> None:
    taken = json.loads(run(state, "take", "--json").stdout)
    assert taken["policy"] == "rewrite"
    assert taken["positions"] == {"acme": 2, "other": 1}
    assert (state.copies_folder / taken["file"]).is_file()
    until = (state.clock.now() + 30 * DAY).isoformat()
    window = json.loads(run(state, "take", "--policy", "window", "--keep-until", until, "--json").stdout)
    listed = run(state, "list", "--json")
    assert listed.exit_code == 0
    assert json.loads(listed.stdout) == {
        "copies": [{**taken, "state": "kept"}, {**window, "state": "kept"}],
        "unlisted": 0,
    }


def test_people_get_lines(state: Stage) -> None:
    assert run(state, "list").stdout == "no copies\n"
    took = run(state, "take").stdout
    assert took.startswith("took ")
    handle, size = took.split()[1], took.split("(")[1].split()[0]
    assert run(state, "list").stdout == f"{handle}: kept, rewrite, {size} bytes\n"


@pytest.mark.parametrize("state_of_it", ["missing", "overdue", "unlisted"])
def test_list_exits_1_where_something_is_not_as_it_should_be(state: Stage, state_of_it: str) -> None:
    until = (state.clock.now() + DAY).isoformat()
    taken = json.loads(run(state, "take", "--policy", "window", "--keep-until", until, "--json").stdout)
    assert run(state, "list").exit_code == 0
    path = state.copies_folder / taken["file"]
    match state_of_it:
        case "missing":
            path.unlink()
        case "overdue":
            state.clock.at += 2 * DAY
        case _:
            (path.parent / "other.db").write_bytes(path.read_bytes())
    told = run(state, "list")
    assert told.exit_code == 1
    assert (state_of_it in told.stdout) is (state_of_it != "unlisted")
    assert ("1 file that the manifest does not name" in told.stdout) is (state_of_it == "unlisted")


@pytest.mark.parametrize(
    "words",
    [
        ("--policy", "window"),
        ("--keep-until", "2099-01-31T03:00:00Z"),
        ("--policy", "window", "--keep-until", "tomorrow"),
        ("--policy", "window", "--keep-until", "2001-01-31T03:00:00Z"),
        ("--policy", "window", "--keep-until", "2099-01-31T03:00:00"),
        ("--policy", "forever"),
    ],
)
def test_wrong_request_exits_2_and_takes_nothing(state: Stage, words: tuple[str, ...]) -> None:
    refused = run(state, "take", *words)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "keep" in refused.stderr or "forever" in refused.stderr
    assert not state.manifest.exists()


def test_folder_that_cannot_be_used_exits_1_and_says_why(state: Stage) -> None:
    run(state, "take")
    state.manifest.write_text("anna")
    for words in (("take",), ("list",)):
        told = run(state, *words)
        assert told.exit_code == 1
        assert told.stderr.startswith("expunge: the backups cannot be used: ")
        assert "correct it, or put it back" in told.stderr
        assert "anna" not in told.stderr


def test_configuration_that_is_refused_exits_2(state: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        message = "no adapter named 'backup'"
        raise InvalidRequest(message)

    monkeypatch.setattr(orchestrator, "open_adapter", refuse)
    assert run(state, "list").exit_code == 2


@pytest.mark.case(126)
def test_erasures_that_a_copy_has_not_seen_are_given_as_keyed_hashes(state: Stage) -> None:
    before = json.loads(run(state, "take", "--json").stdout)["handle"]
    order = state.revoked()
    after = json.loads(run(state, "take", "--json").stdout)["handle"]
    told = json.loads(run(state, "unseen", before, "--json").stdout)
    ours = state.rows(
        state.folder / "memory.db", "SELECT tenant, job, kind, key_id, mac, cut_off FROM source_tombstones"
    )
    assert (told["copy"], told["jobs"]) == (before, 1)
    assert sorted(tuple(mark.values()) for mark in told["tombstones"]) == sorted(ours) != []
    assert {mark["job"] for mark in told["tombstones"]} == {str(order.job)}
    assert json.loads(run(state, "unseen", after, "--json").stdout)["tombstones"] == []
    assert run(state, "unseen", after).stdout == "0 tombstones were set since, of 0 jobs\n"
    lines = run(state, "unseen", before).stdout.splitlines()
    assert (lines[0], len(lines)) == (f"{len(ours)} tombstones were set since, of 1 job", len(ours) + 1)
    assert not [line for line in lines if "P1234567" in line or order.scope.user in line.split()]
    (state.copies_folder / f"{before}.db").unlink()
    for missing in (before, "no-such-copy"):
        refused = run(state, "unseen", missing)
        assert (refused.exit_code, "backup list" in refused.stderr) == (2, True)
        assert refused.stderr.startswith("expunge: ")


def test_copy_that_is_none_any_more_and_a_source_that_is_away_are_told_apart(state: Stage) -> None:
    taken = json.loads(run(state, "take", "--json").stdout)
    path = state.copies_folder / taken["file"]
    whole = path.read_bytes()
    path.write_text("This is no database. " * 500)
    refused = run(state, "unseen", taken["handle"])
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "A copy is not the one that the manifest names" in refused.stderr
    path.write_bytes(whole)
    state.memory.close()
    (state.folder / "memory.db").rename(state.folder / "away.db")
    away = run(state, "unseen", taken["handle"])
    assert (away.exit_code, "store_unreachable" in away.stderr) == (1, True)
