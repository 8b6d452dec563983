"""`deploy/env.example` names every setting, and nothing else, with the default that it really has."""

from __future__ import annotations

import itertools
import os
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from orchestrator import InvalidRequest, settings
from orchestrator.initialise import SECTIONS
from tests.integration.deploy_harness import DEPLOY

TEXT = (DEPLOY / "env.example").read_text()
LINE = re.compile(r"#(EXPUNGE_[A-Z_]+)=(.*)")
# A folder of another place would be no setting of this one: EXPUNGE_DIR says where it is.
SET_BY_DIR = {"EXPUNGE_STATE_DIR"}
MODELS = {"memory": "memory.adapter", "drafts": "drafts.adapter", "vector": "vector.options"}
MODELS |= {"cache": "cache.options", "backup": "backup.options"}


def told() -> dict[str, str]:
    found = [(match[1], match[2]) for line in TEXT.splitlines() if (match := LINE.fullmatch(line))]
    assert len(dict(found)) == len(found), "a variable is there twice"
    return dict(found)


def options(adapter: str) -> dict[str, Any]:
    """Give the options of an adapter, and what the engine reads of its section, with their defaults."""
    model = import_module(f"adapters.{MODELS[adapter]}").Options
    return {n: f.default for n, f in {**settings.StoreSettings.model_fields, **model.model_fields}.items()}


def every_variable() -> set[str]:
    ours = {f"EXPUNGE_{name.upper().replace('.', '__')}" for name in settings.names() if name != "adapters"}
    stores = {f"EXPUNGE_ADAPTERS__{a.upper()}__{name.upper()}" for a in SECTIONS for name in options(a)}
    return (ours | stores | settings.OTHER_VARIABLES) - SET_BY_DIR


def test_every_setting_is_there_and_no_other() -> None:
    assert told().keys() == every_variable()


def test_every_adapter_of_a_new_configuration_has_its_options_here() -> None:
    assert MODELS.keys() == SECTIONS.keys()


def test_every_line_says_what_it_means() -> None:
    lines = TEXT.splitlines()
    for number, line in enumerate(lines):
        if LINE.fullmatch(line):
            assert re.fullmatch(r"# \S+( \S+)+", lines[number - 1]), line
        else:
            assert not line or line.startswith("# "), f"nothing is set until the sign is taken away: {line}"


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    for name in [name for name in os.environ if name.startswith("EXPUNGE_")]:
        monkeypatch.delenv(name)
    (tmp_path / settings.FILE).write_text("")
    return tmp_path


def test_every_default_is_the_one_that_is_used(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each line is set as it stands: the settings are then those of a configuration that says nothing."""
    without = settings.read(bare)
    for name, value in told().items():
        if not value:
            continue
        if name.startswith("EXPUNGE_ADAPTERS__"):
            _, adapter, option = name.lower().split("__")
            assert value.lower() == written(options(adapter)[option]).lower(), name
        elif name != "EXPUNGE_DIR":
            monkeypatch.setenv(name, value)
    assert settings.read(bare).model_dump() == without.model_dump()
    assert told()["EXPUNGE_DIR"] == settings.DEFAULT_DIR


def test_what_has_no_value_has_no_default(bare: Path) -> None:
    without = settings.read(bare)
    empty = {name for name, value in told().items() if not value} - settings.OTHER_VARIABLES
    assert empty == {
        "EXPUNGE_DEADLINE__DAYS",
        "EXPUNGE_CRASH_AT",
        "EXPUNGE_ADAPTERS__CACHE__TIMEOUT",
        "EXPUNGE_ADAPTERS__CACHE__DATA_DIR",
        "EXPUNGE_ADAPTERS__CACHE__OTHER_KINDS",
    }
    assert (without.deadline.days, without.crash_at) == (None, None)
    assert options("cache")["timeout"] is options("cache")["data_dir"] is options("cache")["other_kinds"] is None


def test_time_limits_are_told_in_the_order_in_which_they_must_grow(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = re.findall(r"#(EXPUNGE_ENGINE__\w+(?:TIMEOUT|BUDGET|LIMIT))=", TEXT)
    assert len(limits) == 5
    for shorter, longer in itertools.pairwise(limits):
        with monkeypatch.context() as patch:
            patch.setenv(shorter, told()[longer])
            with pytest.raises(InvalidRequest, match="must be shorter than"):
                settings.read(bare)


def written(value: object) -> str:
    return value.get_secret_value() if isinstance(value, SecretStr) else str(value)
