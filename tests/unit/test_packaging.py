"""What is shipped: three packages and no test, and every name that outsiders type leads somewhere."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution, entry_points, packages_distributions
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = {"orchestrator", "adapters", "workers"}
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
NAMED = {
    (group, name): value
    for group, names in {
        "console_scripts": PROJECT["project"]["scripts"],
        **PROJECT["project"]["entry-points"],
    }.items()
    for name, value in names.items()
}


def installed() -> Distribution:
    return distribution("expunge")


def from_the_source_tree() -> bool:
    """Tell whether the installed distribution only points to this folder."""
    told = json.loads(installed().read_text("direct_url.json") or "{}")
    return bool(told.get("dir_info", {}).get("editable"))


def shipped() -> Iterator[Path]:
    """Give the files that are installed, or that a wheel would take."""
    if not from_the_source_tree():
        for path in installed().files or ():
            if not path.parts[0].startswith("..") and not path.parts[0].endswith(".dist-info"):
                yield Path(path)
        return
    for package in PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]:
        for found in (ROOT / package).rglob("*"):
            if found.is_file() and "__pycache__" not in found.parts:
                yield found.relative_to(ROOT)


def test_wheel_holds_three_packages_and_nothing_else() -> None:
    wheel = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel == {"packages": wheel["packages"]}, "nothing is forced in or left out beside the packages"
    assert PROJECT["tool"]["hatch"] == {"build": {"targets": {"wheel": wheel}}}
    assert sorted(wheel["packages"]) == sorted(PACKAGES)
    assert {path.parts[0] for path in shipped()} == PACKAGES
    assert {str(path) for path in shipped()} >= {f"{package}/__init__.py" for package in PACKAGES}


def test_wheel_holds_code_pages_and_the_schema_alone() -> None:
    assert {path.suffix for path in shipped()} <= {".py", ".sql", ".typed", ".lua", ".md"}
    schema = {path.name for path in shipped() if path.suffix == ".sql"}
    assert schema >= {"0001_tables.sql", "0001_sqlite.sql", "0001_postgresql.sql"}


def test_no_test_is_shipped() -> None:
    tests = [p for p in shipped() if p.name.startswith("test_") or p.stem.endswith("_test") or p.name == "conftest.py"]
    assert tests == []
    assert not any("tests" in path.parts for path in shipped())


def test_installed_names_are_those_of_the_project() -> None:
    assert {(e.group, e.name): e.value for e in installed().entry_points} == NAMED


@pytest.mark.parametrize(("group", "name"), sorted(NAMED))
def test_every_entry_point_loads(group: str, name: str) -> None:
    (point,) = entry_points(group=group, name=name)
    assert point.dist is not None
    assert point.dist.name == "expunge"
    assert point.value.partition(":")[0].partition(".")[0] in PACKAGES
    assert point.load() is not None


def test_import_names_belong_to_nobody_else() -> None:
    owners = packages_distributions()
    assert {name for name in PACKAGES if set(owners.get(name, ())) - {"expunge"}} == set()
