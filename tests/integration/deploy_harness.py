"""What `deploy` says, read without a container engine.

`compose.yaml` keeps to a small part of YAML, so that this reader suffices and nothing has to be installed for it:
mappings that are indented by two blanks, lists and texts in the form of JSON, bare words, anchors, and `<<` for what
several services share. Anything else is an error here, though YAML may allow it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
# No word that some version of YAML takes for something else than a text: no, on, 0755, 1:30, 1e3, ~.
_WORD = re.compile(r"[a-z][A-Za-z0-9_./-]*(:[a-z0-9][A-Za-z0-9_./-]*)?|[1-9][0-9]*(s|m|h)|\.\.")
_NUMBER = re.compile(r"0|[1-9][0-9]*")
_NOT_TEXT = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
_ENTRY = re.compile(r"(?P<indent> *)(?P<key><<|[A-Za-z][A-Za-z0-9_-]*):(?: &(?P<anchor>[a-z]+))?(?: (?P<value>\S.*))?")
_ITEM = re.compile(r'(?P<indent> *)- (?P<value>".*")')


def read_yaml(text: str) -> dict[str, Any]:
    """Give what a file of this small part of YAML says; raises `ValueError` with the line for anything else."""
    reader = _Reader()
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            try:
                reader.take(line)
            except (ValueError, KeyError) as error:
                message = f"line {number} is none that we read: {error}"
                raise ValueError(message) from None
    return reader.root


class _Reader:
    """What was read so far."""

    def __init__(self) -> None:
        self.root: dict[str, Any] = {}
        self._anchors: dict[str, Any] = {}
        # The open mappings from the outside in: each is a line's indent, what holds that line, and its key.
        self._path: list[tuple[int, dict[str, Any], str]] = []
        self._shared: set[tuple[int, str]] = set()  # what a mapping has by `<<`, and may say anew

    def take(self, line: str) -> None:
        """Read one line; raise `ValueError` or `KeyError` for one that is not allowed."""
        found = _ENTRY.fullmatch(line) or _ITEM.fullmatch(line)
        if found is None:
            raise ValueError(line)
        indent = len(found["indent"])
        while self._path and self._path[-1][0] >= indent:
            self._path.pop()
        if indent != 2 * len(self._path):
            raise ValueError(line)
        if "key" not in found.re.groupindex:
            self._item(found["value"])
        elif found["key"] == "<<":
            self._share(found["value"])
        else:
            self._entry(indent, found)

    def _item(self, value: str) -> None:
        _, holder, key = self._path[-1]
        if holder[key] == {}:
            holder[key] = []
        if not isinstance(holder[key], list):
            raise ValueError(value)  # noqa: TRY004 - it is the line that is wrong
        holder[key].append(json.loads(value))

    def _share(self, alias: str) -> None:
        here = self._here()
        if here:  # what is shared comes first, so that nobody has to know which of two wins
            raise ValueError(alias)
        here.update(json.loads(json.dumps(self._anchors[alias.removeprefix("*")])))
        self._shared |= {(id(here), key) for key in here}

    def _entry(self, indent: int, found: re.Match[str]) -> None:
        here, key = self._here(), found["key"]
        if key in here and (id(here), key) not in self._shared:
            raise ValueError(key)
        self._shared.discard((id(here), key))
        here[key] = {} if found["value"] is None else _scalar(found["value"])
        if found["anchor"]:
            self._anchors[found["anchor"]] = here[key]
        self._path.append((indent, here, key))

    def _here(self) -> dict[str, Any]:
        here = self._path[-1][1][self._path[-1][2]] if self._path else self.root
        if not isinstance(here, dict):
            raise ValueError(here)  # noqa: TRY004 - as above
        return here


def _scalar(text: str) -> Any:  # noqa: ANN401 - whatever JSON holds
    if text[0] in '["{':
        return json.loads(text)
    if text in {"true", "false"}:
        return text == "true"
    if _NUMBER.fullmatch(text):
        return int(text)
    if _WORD.fullmatch(text) and text not in _NOT_TEXT:
        return text
    message = f"write this value in quotes: {text}"
    raise ValueError(message)


def instructions(dockerfile: str) -> Iterator[tuple[str, str]]:
    """Give each instruction of a Dockerfile with its words; lines that go on are one."""
    lines = [line for line in dockerfile.splitlines() if not line.startswith("#")]
    for line in "\n".join(lines).replace("\\\n", "").splitlines():
        if line.strip():
            name, _, words = line.partition(" ")
            yield name, " ".join(words.split())


def image_environment() -> dict[str, str]:
    """Give the variables that our image sets."""
    text = (DEPLOY / "Dockerfile").read_text()
    return dict(words.split("=", 1) for name, words in instructions(text) if name == "ENV")
