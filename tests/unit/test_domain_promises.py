"""The page of guarantees names tests; here it is shown that they exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(test_\w+\.py)::(test_\w+)`", PAGE)))
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| promise |")]


@pytest.mark.parametrize(("file", "test"), NAMED, ids=lambda part: part.removesuffix(".py"))
def test_a_test_that_the_guarantees_name_exists(file: str, test: str) -> None:
    (path,) = (ROOT / "tests").rglob(file)
    assert f"def {test}(" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip()[:40])
def test_every_promise_names_a_test(row: str) -> None:
    assert "::test_" in row.split("|")[2]
