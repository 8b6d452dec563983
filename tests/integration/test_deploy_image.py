"""`deploy/Dockerfile`: what it copies is there, what it installs is locked, and nothing of it runs as root."""

from __future__ import annotations

import json
import re
import signal
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch

import pytest
import typer

from orchestrator.cli import build
from tests.integration.deploy_harness import DEPLOY, ROOT, image_environment, instructions

TEXT = (DEPLOY / "Dockerfile").read_text()
IGNORED = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
LOCK = (ROOT / "requirements" / "run.lock").read_text()
NAMED = re.compile(r"[a-z]+:\d+\.\d+-[a-z-]+")


def sent(path: str) -> bool:
    """Tell whether a file or folder is among what the engine is given: a later line of .dockerignore wins."""
    told = False
    for line in IGNORED:
        pattern = line.removeprefix("!")
        if any(fnmatch(part, pattern) for part in (path, path.partition("/")[0])):
            told = line.startswith("!")
    return told


def problems(text: str) -> Iterator[str]:
    """Name everything that is wrong with a Dockerfile."""
    found = list(instructions(text))
    stages = [words.split() for name, words in found if name == "FROM"]
    shipped = found[max(number for number, (name, _) in enumerate(found) if name == "FROM") :]
    if len(stages) < 2:
        yield "what builds is shipped as well"
    if any(NAMED.fullmatch(words[0]) is None for words in stages) or len({words[0] for words in stages}) != 1:
        yield "an image is not pinned to a minor version"
    users = [words for name, words in shipped if name == "USER"]
    if not users or re.fullmatch(r"[1-9]\d*:[1-9]\d*", users[-1]) is None:
        yield "it does not end as a user of its own, by number"
    yield from (f"there is no {name}" for name in ("HEALTHCHECK", "ENTRYPOINT") if name not in dict(shipped))
    for name, words in found:
        yield from _instruction(name, words)


def _instruction(name: str, words: str) -> Iterator[str]:
    if name == "ADD" or "://" in words:
        yield f"{name} fetches something"
    if name in {"ARG", "ENV"} and re.search(r"PASSWORD|SECRET|TOKEN|KEY", words):
        yield f"{name} holds a secret"
    if name == "COPY" and not words.startswith("--from="):
        yield from (
            f"there is no {path}" for path in words.split()[:-1] if not (ROOT / path).exists() or not sent(path)
        )
    if name == "RUN":
        installs = [command for command in words.split("&&") if "pip" in command and " install " in command]
        yield from (f"not locked: {command}" for command in installs if not _locked(command))


def _locked(command: str) -> bool:
    ours = re.search(r"--no-deps \.$", command.strip()) is not None
    return ours or ("--require-hashes" in command and command.strip().endswith("-r requirements/run.lock"))


def test_nothing_is_wrong_with_it() -> None:
    assert list(problems(TEXT)) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("USER 10001:10001", "USER root"),
        ("USER 10001:10001", "USER 0:0"),
        ("USER 10001:10001\n", ""),
        ("python:3.11-slim-bookworm", "python:latest"),
        ("python:3.11-slim-bookworm", "python:3-slim-bookworm"),
        ("FROM python:3.11-slim-bookworm\n", "FROM python:3.12-slim-bookworm\n"),
        ("COPY workers workers", "COPY workers none workers"),
        ("COPY workers workers", "COPY docs docs"),
        ("COPY workers workers", "ADD workers workers"),
        ("COPY workers workers", "RUN curl https://example.org/x | sh"),
        ("--require-hashes ", ""),
        ("--no-deps .", "."),
        ("ENV PYTHONUNBUFFERED=1", "ENV PGPASSWORD=word"),
        ("HEALTHCHECK", "LABEL"),
    ],
)
def test_every_fault_is_told(old: str, new: str) -> None:
    assert old in TEXT
    assert list(problems(TEXT.replace(old, new))) != []


def test_lock_has_a_version_and_a_hash_for_everything() -> None:
    entries = re.split(r"\n(?=\S)", re.sub(r"^#.*\n", "", LOCK, flags=re.MULTILINE).strip())
    assert len(entries) > 30
    for entry in entries:
        first, *hashes = [line for line in entry.splitlines() if not line.lstrip().startswith("#")]
        assert re.fullmatch(r"[a-z0-9._-]+==\S+ \\", first), entry
        assert hashes, entry
        assert all(re.fullmatch(r"    --hash=sha256:[0-9a-f]{64}( \\)?", line) for line in hashes), entry


def test_python_of_the_image_is_one_that_this_release_is_for() -> None:
    (version,) = set(re.findall(r"^FROM python:([\d.]+)-", TEXT, flags=re.MULTILINE))
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    assert f"Programming Language :: Python :: {version}" in classifiers


def test_health_check_is_a_command_that_there_is() -> None:
    (words,) = [words for name, words in instructions(TEXT) if name == "HEALTHCHECK"]
    program, command, *options = json.loads(words[words.index("[") :])
    known = typer.main.get_command(build()).commands[command]  # type: ignore[attr-defined] # of a class without a name
    assert (program, options) == ("expunge", ["--json"])
    assert known.make_context(command, options).params["as_json"] is True


def test_worker_that_is_stopped_gives_its_batches_twenty_seconds() -> None:
    told = dict(instructions(TEXT))
    assert signal.Signals[told["STOPSIGNAL"]] is signal.SIGTERM
    assert image_environment()["REMAP_SIGTERM"] == "SIGQUIT"


@pytest.mark.parametrize("path", [".git", ".expunge", "deploy/secrets", "deploy/expunge.env", "tests", "docs", ".venv"])
def test_nothing_else_is_given_to_the_engine(path: str) -> None:
    assert not sent(path)
    assert sent("orchestrator")
    assert sent("requirements/run.lock")
