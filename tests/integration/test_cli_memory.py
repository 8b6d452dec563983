"""The memory commands at a shell: what forgetting nothing tells, and what a terminal is spared."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.cli_harness import Shell

WHO = ("--tenant", "acme", "--user", "ann")


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    run = Shell(tmp_path / "state")
    assert run("init")[0] == 0
    return run


def test_forgetting_nothing_exits_5(shell: Shell) -> None:
    assert shell("memory", "put", "passport", "P1234567", "--source", "chat/6", *WHO)[0] == 0
    code, out, _ = shell("memory", "forget", "pasport", *WHO)
    assert (code, out) == (5, "nothing_found\n")
    code, out, _ = shell("memory", "forget", "passport", *WHO)
    assert (code, "copies in other stores stay" in out) == (0, True)
    assert shell("memory", "forget", "passport", *WHO)[0] == 5


def test_stored_text_reaches_the_terminal_escaped(shell: Shell) -> None:
    put = shell("memory", "put", "k\x1b[31m", "one\ntwo\x1b]0;x\x07", "--source", "chat/6", *WHO)
    _, out, _ = shell("memory", "current", *WHO)
    assert out == "k\\x1b[31m = one\\ntwo\\x1b]0;x\\x07 (version 1, from chat/6)\n"
    assert put[1] == "stored k\\x1b[31m version 1\n"
    assert shell.json("memory", "current", *WHO)["facts"][0]["value"] == "one\ntwo\x1b]0;x\x07"
