"""The page of cases: each names a test, each test that is marked with one has its line."""

from __future__ import annotations

import re

import pytest

from tests.integration.cases_harness import ROOT

PAGE = (ROOT / "docs" / "cases.md").read_text(encoding="utf-8")
LINES = {int(line.split("|")[1]): line for line in PAGE.splitlines() if re.match(r"\| \d", line)}
NAMED = sorted(set(re.findall(r"`(test_\w+\.py)::(test_\w+)`", PAGE)))


@pytest.mark.parametrize(("file", "test"), NAMED, ids=lambda part: part.removesuffix(".py"))
def test_a_test_that_the_cases_name_exists(file: str, test: str) -> None:
    (path,) = (ROOT / "tests").rglob(file)
    assert f"def {test}(" in path.read_text(encoding="utf-8")


def test_every_case_names_a_test_or_says_that_it_is_not_covered() -> None:
    for number, line in LINES.items():
        assert ("::test_" in line) or ("Not covered yet:" in line), number


def test_every_case_that_a_test_is_marked_with_has_its_line() -> None:
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for number in re.findall(r"^@pytest\.mark\.case\((\d+)\)", path.read_text(encoding="utf-8"), re.MULTILINE):
            assert int(number) in LINES, (number, path.name)
