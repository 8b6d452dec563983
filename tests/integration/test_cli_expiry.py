"""`expunge purge-expired`."""

from __future__ import annotations

from pathlib import Path

from tests.integration.cli_harness import Shell


def test_purge_expired_opens_a_job_for_each_scope_and_none_the_second_time(tmp_path: Path) -> None:
    expunge = Shell(tmp_path / "state")
    assert expunge("init")[0] == 0
    anna = ("--tenant", "acme", "--user", "anna", "--project", "trips")
    assert expunge("memory", "put", "gate", "Gate B12.", "--source", "turn-1", "--expires", "1000", *anna)[0] == 0
    assert expunge("memory", "put", "seat", "Aisle.", "--source", "turn-1", *anna)[0] == 0
    (job,) = expunge.json("purge-expired")["jobs"]
    status = expunge.json("status", job)
    assert (status["trigger"], status["selector"], status["state"]) == ("expiry", "expired", "requested")
    code, out, _ = expunge("purge-expired")
    assert (code, out) == (0, "nothing has expired that no open job is at already\n")
    code, out, _ = expunge("list")
    assert code == 0
    assert "expired" in out


def test_without_a_state_directory_it_says_what_to_do(tmp_path: Path) -> None:
    code, out, error = Shell(tmp_path / "none")("purge-expired")
    assert (code, out) == (2, "")
    assert "expunge init" in error
