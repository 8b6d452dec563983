"""The toy of our own tests: the notes of docs/writing-an-adapter.md, read from its page and loaded here."""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TypeAlias

from orchestrator import AdapterContext

DOCS: Final = Path(__file__).parents[2] / "docs"
PAGES: Final = (DOCS / "writing-an-adapter.md", DOCS / "testing-an-adapter.md")
NotesUnderTest: TypeAlias = Any  # a class of the page


def blocks(*languages: str) -> list[str]:
    """Give the blocks of the pages in these languages, as they follow each other."""
    told = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    return re.findall(rf"^```(?:{'|'.join(languages)})\n(.*?)^```$", told, re.MULTILINE | re.DOTALL)


def files() -> dict[str, str]:
    """Give the files of the page: the first line of a block is a comment that names its file."""
    found = {}
    for block in blocks("python", "toml"):
        first = block.partition("\n")[0]
        assert first.startswith("# "), "a block begins with the name of its file"
        found[first.removeprefix("# ")] = block
    assert len(found) == len(blocks("python", "toml")), "each block is a file of its own"
    return found


def open_notes(folder: Path, context: AdapterContext, lines: list[str]) -> NotesUnderTest:
    folder.mkdir(parents=True, exist_ok=True)
    return _loaded().NotesUnderTest(context, lines)


@cache
def _loaded() -> ModuleType:
    """Load the modules of the page in its order, by their own names; give that of its test."""
    _module("expunge_notes", "").__path__ = []
    for name, text in files().items():
        if name.startswith("expunge_notes/"):
            _module(name.removesuffix(".py").replace("/", "."), text)
    return _module("test_of_the_page", files()["tests/test_contract.py"])


def _module(name: str, text: str) -> ModuleType:
    made = sys.modules[name] = ModuleType(name)
    exec(compile(text, name, "exec"), vars(made))  # noqa: S102 - our own page
    return made
