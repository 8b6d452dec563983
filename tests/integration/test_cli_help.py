"""The help of every command and option: it is there, it fits its command, and its examples can be typed."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest
import typer

from orchestrator.cli import build
from tests.integration.cli_harness import Shell, commands

ROOT: Any = typer.main.get_command(build())
TREE = dict(commands(ROOT))
LEAVES = [path for path, command in TREE.items() if not hasattr(command, "commands")]
EXAMPLE = re.compile(r"Example: (expunge .+)")
EXAMPLES = [(path, line) for path, c in TREE.items() for line in EXAMPLE.findall(f"{c.help}\n{c.epilog}")]


@pytest.mark.parametrize("path", TREE, ids=" ".join)
def test_no_command_and_no_option_lacks_help(path: tuple[str, ...]) -> None:
    assert re.match(r"[A-Z].{10}", TREE[path].help or ""), "a sentence"
    for parameter in TREE[path].params:
        text = (getattr(parameter, "help", None) or "").strip()
        assert len(text) > 5, parameter.name


def test_tree_has_all_families() -> None:
    ours = {("request",), ("report",), ("scan",), ("hold", "add"), ("tombstone", "check"), ("up",)}
    contributed = {("worker",), ("restore",), ("demo",), ("backup", "take"), ("memory", "put"), ("memory", "submit")}
    assert ours | contributed <= {*LEAVES}


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_every_command_has_an_example(path: tuple[str, ...]) -> None:
    assert path in [of for of, _ in EXAMPLES]


@pytest.mark.parametrize(("path", "line"), EXAMPLES, ids=lambda part: part if isinstance(part, str) else "")
def test_example_can_be_typed_as_it_stands(path: tuple[str, ...], line: str) -> None:
    words = shlex.split(line)[1:]
    assert tuple(words[: len(path)]) == path
    TREE[path].make_context(" ".join(path), words[len(path) :])
    for word in words:
        assert not word.startswith("/"), "a path of one machine"


def test_help_tells_what_a_file_of_requests_holds_and_what_a_restore_does(tmp_path_factory: Any) -> None:  # noqa: ANN401
    shell = Shell(tmp_path_factory.mktemp("help"))
    wide = {"COLUMNS": "300", "TERMINAL_WIDTH": "300"}
    asked = shell("request", "--help", **wide)[1]
    for word in ("idempotency_key", "jsonl", "- is CSV on standard input", "files nothing twice", "refused (exit 1)"):
        assert word in asked, word
    for word in ("back to a copy of it", "What was forgotten since is erased before anybody can read"):
        assert word in shell("restore", "--help", **wide)[1], word
    assert "not_covered" in shell("report", "--help", **wide)[1]
