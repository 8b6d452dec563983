"""What the pages tell people to type is typed here, in their order, into a real shell.

- A block that is marked `sh` is run, line by line; each ends with 0, or with what its comment says that it ends with.
- `JOB`, `HOLD` and `COPY` stand for the last id of its kind that was printed before.
- A line of `make` is held against the Makefile.
- A block that is marked `sh no-run` needs what a test has not: it is counted below, and every command in it is parsed.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer

from orchestrator.cli import build
from orchestrator.cli.failures import MISTAKE
from tests.integration.deploy_harness import ROOT

RUNBOOKS = re.findall(r"\]\((runbooks/[a-z-]+\.md)\) \|$", (ROOT / "docs/operations.md").read_text(), re.MULTILINE)
STORIES = {
    "readme": ["README.md"],
    # One state directory from the first command to the last: what a page needs, one before it has made.
    "operations": ["docs/operations.md", *(f"docs/{page}" for page in dict.fromkeys(RUNBOOKS))],
}
NOT_RUN = {
    "docs/operations.md": 3,  # an engine for containers; a file of requests
    "docs/runbooks/unit-parked.md": 1,
    "docs/runbooks/store-unreachable.md": 1,
    "docs/runbooks/still-present.md": 1,
    "docs/runbooks/keyring-lost.md": 1,
    "docs/runbooks/restored-backup.md": 1,
    "docs/runbooks/disk-full.md": 1,
    "docs/runbooks/broker-down.md": 1,
    "docs/runbooks/clock-jump.md": 1,
}
UUID = r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
PRINTED = {"JOB": rf"\bjob {UUID}", "HOLD": rf"\bhold {UUID}", "COPY": r"\btook (\S+) \("}
SKIPPED = {".venv", ".git", ".hypothesis", ".pytest_cache", "node_modules"}
NO_COMMAND = {"expunge job"}  # what the provenance store writes down as a reason
PATIENCE = 60.0
TREE: Any = typer.main.get_command(build())


class Block(NamedTuple):
    """A fenced block of a page."""

    page: str
    info: str
    lines: list[str]


def pages() -> Iterator[Path]:
    for folder, folders, files in os.walk(ROOT):
        folders[:] = sorted(set(folders) - SKIPPED)
        yield from (Path(folder) / name for name in sorted(files) if name.endswith(".md"))


def blocks(page: str) -> list[Block]:
    """Give the blocks of a shell on a page, with lines that go on joined."""
    text = (ROOT / page).read_text()
    found = re.findall(r"^```((?:sh|bash|shell|console)\b[^\n]*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [Block(page, info, body.replace("\\\n", " ").splitlines()) for info, body in found]


class Terminal:
    """A shell in a folder of its own; what it started in the background ends with it."""

    def __init__(self, folder: Path) -> None:
        self.printed: dict[str, str] = {}
        self._errors = folder / "errors"
        ours = {k: v for k, v in os.environ.items() if not k.startswith("EXPUNGE_")}
        path = f"{Path(sys.executable).parent}:{ours['PATH']}"
        with self._errors.open("wb") as errors:
            self._shell = subprocess.Popen(
                ["bash", "--norc", "-m"],
                cwd=folder,
                env={**ours, "PATH": path, "HOME": str(folder)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

    def type(self, line: str) -> tuple[int, str]:
        """Type a line; give what it ended with, and what it printed. Ids take the place of the words for them."""
        for word in PRINTED:
            if re.search(rf"\b{word}\b", line.partition(" #")[0]):
                line = re.sub(rf"\b{word}\b", self.printed[word], line)
        began = self._errors.stat().st_size
        code, said = self._run(line)
        for word, form in PRINTED.items():
            if found := re.findall(form, said):
                self.printed[word] = found[-1]
        return code, said + self._errors.read_text()[began:]

    def _run(self, line: str) -> tuple[int, str]:
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        self._shell.stdin.write(f'{{ {line}\n}} </dev/null; echo "-- ended with $?"\n')
        self._shell.stdin.flush()
        said: list[str] = []
        while (end := re.fullmatch(r"(.*)-- ended with (\d+)\n", one := self._shell.stdout.readline())) is None:
            assert one, f"the shell has ended at: {line}"
            said.append(one)
        return int(end[2]), "".join([*said, end[1]])

    def close(self) -> None:
        self._run("kill $(jobs -p) 2>/dev/null; wait")
        self._shell.send_signal(signal.SIGKILL)
        self._shell.communicate()


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    shell = Terminal(tmp_path)
    try:
        yield shell
    finally:
        shell.close()


def expected(line: str) -> int:
    told = re.search(r" # .*\bends with (\d+)", line)
    return int(told[1]) if told else 0


@pytest.mark.timeout(400)
@pytest.mark.parametrize("story", STORIES)
def test_what_the_pages_say_is_what_happens(story: str, terminal: Terminal) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    ran = 0
    for block in (block for page in STORIES[story] for block in blocks(page) if block.info == "sh"):
        for line in block.lines:
            words = shlex.split(line, comments=True)
            if not words:
                continue
            if words[0] == "make":
                assert set(words[1:]) <= targets, (block.page, line)
                continue
            code, said = terminal.type(line)
            until = time.monotonic() + PATIENCE
            # A look that is red while something starts is made again, by people as well.
            while words == ["expunge", "doctor"] and code and time.monotonic() < until:
                time.sleep(1)
                code, said = terminal.type(line)
            assert code == expected(line), f"{block.page}: {line}\n{said}"
            assert "Traceback" not in said, f"{block.page}: {line}\n{said}"
            ran += 1
    assert ran >= 8


def test_every_block_of_a_shell_is_run_or_counted() -> None:
    told = {page for story in STORIES.values() for page in story}
    assert {f"docs/runbooks/{path.name}" for path in (ROOT / "docs" / "runbooks").iterdir()} <= told
    counted: dict[str, int] = {}
    for page in sorted(told):
        for block in blocks(page):
            assert block.info in {"sh", "sh no-run"}, (page, block.info)
            if block.info != "sh":
                counted[page] = counted.get(page, 0) + 1
    assert counted == NOT_RUN


def commands() -> Iterator[tuple[str, str, bool]]:
    """Give every command of ours on every page: in a block of a shell, to be parsed whole, or named in a sentence."""
    for path in pages():
        page = str(path.relative_to(ROOT))
        for block in blocks(page):
            typed = [
                line.removeprefix("$ ") for line in block.lines if block.info != "console" or line.startswith("$ ")
            ]
            yield from ((page, line, True) for line in typed if re.search(r"(^|[ /;(])expunge ", line))
        prose = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
        named = {" ".join(told.split()) for told in re.findall(r"`(expunge [^`]+)`", prose)} - NO_COMMAND
        yield from ((page, told, False) for told in sorted(named))


def mistakes(line: str, *, whole: bool) -> list[str]:
    """Say what is wrong with the commands of ours in a line: `whole` ones have all that they need."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split, words, found = True, list(lexer), []
    for start in [number for number, word in enumerate(words) if word.rpartition("/")[2] == "expunge"]:
        own: list[str] = []
        for word in words[start + 1 :]:
            if set(word) <= set("();<>|&"):
                break
            own.append(word)
        found += _mistakes(own, whole=whole)
    return found


def _mistakes(words: list[str], *, whole: bool) -> list[str]:
    command, path, left = TREE, ["expunge"], list(words)
    while hasattr(command, "commands") and left and not left[0].startswith("-"):
        if left[0].isupper():
            return []  # it stands for any command
        if left[0] not in command.commands:
            return [f"{' '.join(path)} has no command {left[0]}"]
        path.append(left[0])
        command = command.commands[left.pop(0)]
    if whole:
        try:
            command.make_context(" ".join(path), left)
        except typer.Exit:
            pass  # --help and --version end a command
        except MISTAKE as error:
            return [f"{' '.join(path)}: {error}"]
        return []
    known = {"--help"} | {name for parameter in command.params for name in parameter.opts}
    return [f"{' '.join(path)} has no option {word}" for word in left if word.startswith("--") and word not in known]


@pytest.mark.parametrize("page", sorted({str(path.relative_to(ROOT)) for path in pages()}))
def test_every_command_on_a_page_exists(page: str) -> None:
    wrong = [(line, error) for p, line, whole in commands() if p == page for error in mistakes(line, whole=whole)]
    assert wrong == []


@pytest.mark.parametrize(
    ("line", "whole"),
    [
        ("expunge nothing", False),
        ("expunge hold nothing", False),
        ("expunge request --nothing", False),
        ("docker compose exec worker expunge doctor --nothing", True),
        ("true && expunge status", True),
        ("expunge status JOB --tenant", True),
        ("expunge list --limit many", True),
        ("printf x | expunge scan --fingerprints-of -", True),
    ],
)
def test_command_that_does_not_exist_is_told(line: str, *, whole: bool) -> None:
    assert mistakes(line, whole=whole) != []


def test_pages_name_many_commands() -> None:
    found = list(commands())
    assert len([line for _, line, whole in found if whole]) >= 40
    assert len([line for _, line, whole in found if not whole]) >= 60
