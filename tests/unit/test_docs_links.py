"""Links from one page to another lead somewhere, and each runbook is whole and can be found."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.doctor import NEEDED_BYTES
from orchestrator.domain.codes import Parked

ROOT = Path(__file__).parents[2]
SKIPPED = {".venv", ".git", ".hypothesis", ".pytest_cache", "node_modules"}
OPERATIONS = ROOT / "docs" / "operations.md"
SET_BY_DOCTOR = f"{NEEDED_BYTES // 2**20} MiB"
RUNBOOKS = sorted((ROOT / "docs" / "runbooks").glob("*.md"))
PARTS = ["What you see", "Why", "What to do", "How you know that it is over"]


def pages() -> Iterator[Path]:
    for folder, folders, files in os.walk(ROOT):
        folders[:] = sorted(set(folders) - SKIPPED)
        yield from (Path(folder) / name for name in sorted(files) if name.endswith(".md"))


def unfenced(page: Path) -> str:
    """Give a page without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def links(page: Path) -> list[str]:
    found: list[str] = re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", unfenced(page)))
    return [link for link in found if "://" not in link]


def anchors(page: Path) -> set[str]:
    """Give the names under which the headings of a page are reached."""
    headings = re.findall(r"^#+ (.+)$", unfenced(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken(page: Path) -> list[str]:
    """Name the links of a page that lead nowhere, or out of the project."""
    wrong = []
    for link in links(page):
        place, _, anchor = link.partition("#")
        target = (page.parent / place).resolve() if place else page
        inside = target.is_relative_to(ROOT) and target.exists()
        if not inside or (anchor and anchor not in anchors(target)):
            wrong.append(link)
    return wrong


@pytest.mark.parametrize("page", sorted(pages()), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    assert broken(page) == []


def test_pages_are_linked_with_one_another() -> None:
    assert sum(len(links(page)) for page in pages()) > 40


@pytest.mark.parametrize("link", ["none.md", "../../../etc/passwd", "README.md#none", "#none"])
def test_link_that_leads_nowhere_is_told(link: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    (tmp_path / "README.md").write_text(f"# Here\n\n[well](#here) [broken]({link})\n\n`[no](link.md)`\n")
    assert broken(tmp_path / "README.md") == [link]


@pytest.mark.parametrize("page", RUNBOOKS, ids=lambda page: page.stem)
def test_each_runbook_has_its_four_parts_and_fits_on_a_page(page: Path) -> None:
    text = page.read_text()
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == PARTS
    assert len(text.splitlines()) <= 60


def test_operations_lists_every_runbook() -> None:
    listed = {(ROOT / "docs" / link).resolve() for link in links(OPERATIONS) if "runbooks" in link}
    assert listed == set(RUNBOOKS)
    assert len(RUNBOOKS) >= 12


def part(heading: str) -> str:
    """Give one part of the operator's page."""
    (found,) = re.findall(rf"^## {heading}\n(.*?)(?=^## )", OPERATIONS.read_text(), re.MULTILINE | re.DOTALL)
    return str(found)


def test_every_event_to_watch_for_is_one_that_is_logged() -> None:
    told = set(re.findall(r"`([a-z]+\.[a-z_]+)`", part("Monitoring")))
    code = [
        path.read_text() for name in ("orchestrator", "adapters", "workers") for path in (ROOT / name).rglob("*.py")
    ]
    logged = {
        event for text in code for event in re.findall(r"\.(?:info|warning|error)\(\s*\"([a-z]+\.[a-z_]+)\"", text)
    }
    assert told - logged == set()
    assert len(told) >= 12


def test_every_figure_of_size_was_measured() -> None:
    measured = (ROOT / "docs" / "performance.md").read_text()
    figures = set(re.findall(r"\b\d[\d.,]*(?: (?:ms|s|MiB|MB|facts))\b", part("Sizing"))) - {SET_BY_DOCTOR}
    assert {figure for figure in figures if figure not in measured} == set()
    assert len(figures) >= 4


def test_every_reason_for_parking_has_its_line() -> None:
    text = (ROOT / "docs" / "runbooks" / "unit-parked.md").read_text()
    assert set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) == set(Parked)
