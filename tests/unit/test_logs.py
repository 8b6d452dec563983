"""Log lines: JSON for machines, readable for a person at a terminal, and never on standard output."""

from __future__ import annotations

import json

import pytest
import structlog

from orchestrator import logs


def line(form: str, capsys: pytest.CaptureFixture[str]) -> str:
    logs.configure(form)
    structlog.get_logger().info("job.moved", job_id="j-1")
    out, error = capsys.readouterr()
    assert out == ""
    return error


def test_machines_get_json(capsys: pytest.CaptureFixture[str]) -> None:
    said = json.loads(line("json", capsys))
    assert (said["event"], said["job_id"], said["level"]) == ("job.moved", "j-1", "info")


def test_people_get_a_readable_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert "{" not in line("console", capsys)
    import sys

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    said = line("json", capsys)
    assert ("job.moved" in said, "{" in said) == (True, False)
