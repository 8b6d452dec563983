"""The page for adapter authors, run as it stands: its files are installed, its commands are typed, its test is run.

What it shows is held against what is told: `...` is anything, FACT and JOB are ids, the same wherever they stand.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import orchestrator
from orchestrator.testing import AdapterContract
from tests.contract.toy import PAGES, blocks, files

UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
IDS = ("FACT", "JOB")
MINE = '(_mine(row, order) and row["id"] in wanted)'


def commands() -> Iterator[tuple[str, list[str]]]:
    """Give each command of the page with the lines that it shows."""
    for block in blocks("console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *shown = part.splitlines()
            yield command, shown


def pattern(shown: list[str], ids: dict[str, str]) -> str:
    """Give what the output of a command has to match from its beginning to its end."""
    whole = ""
    for line in shown:
        if line == "...":
            whole += r"(?:.*\n)*?"
            continue
        exact = re.escape(line).replace(re.escape("..."), ".*?")
        for name in IDS:
            exact = exact.replace(name, ids.get(name, f"(?P<{name}>{UUID})"))
        whole += exact + r"\n"
    return whole


def written(folder: Path) -> Path:
    for name, text in files().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


class Session:
    """Somebody at a shell, in the folder of the page's files; what is installed goes to a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.site, self.log = folder / "project", folder / "site", folder / "up.log"
        self.folder.mkdir()
        self.site.mkdir()
        self.ids: dict[str, str] = {}
        self._up: subprocess.Popen[bytes] | None = None

    def types(self, command: str) -> tuple[int, str]:
        if command == "pip install .":
            return install(wheel(self.folder), self.site)
        if command.endswith(" &"):
            return self._starts(command.removesuffix(" &"))
        if command == "kill %1":
            return self.stop(), ""
        for name, value in self.ids.items():
            command = command.replace(name, value)
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=environment(self.site),
            capture_output=True,
            timeout=100,
            check=False,
        )
        assert b"Traceback" not in done.stderr, done.stderr.decode()
        return done.returncode, done.stdout.decode()

    def stop(self) -> int:
        if self._up is None:
            return 0
        self._up.terminate()
        status, self._up = self._up.wait(30), None
        return status

    def _starts(self, command: str) -> tuple[int, str]:
        with self.log.open("wb") as log:
            self._up = subprocess.Popen(
                ["bash", "-c", f"exec {command}"], cwd=self.folder, env=environment(self.site), stdout=log, stderr=log
            )
        return 0, ""


@contextmanager
def session(folder: Path) -> Iterator[Session]:
    shell = Session(folder)
    try:
        written(shell.folder)
        yield shell
    finally:
        shell.stop()


def environment(*places: Path) -> dict[str, str]:
    """Give an environment in which what lies in these places is installed, beside all that is here already."""
    ours = {k: v for k, v in os.environ.items() if not k.startswith(("EXPUNGE_", "PYTEST_"))}
    path = f"{Path(sys.executable).parent}{os.pathsep}{ours.get('PATH', '')}"
    # Safe: else the files of the page, in the folder that all is run in, would stand before what was installed.
    return {**ours, "PATH": path, "PYTHONPATH": os.pathsep.join(map(str, places)), "PYTHONSAFEPATH": "1"}


def wheel(project: Path) -> Path:
    """Make the wheel that `pyproject.toml` describes: where there is no network, there is no build backend either."""
    told = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    package = told["name"].replace("-", "_")
    about = f"{package}-{told['version']}.dist-info"
    points = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in named.items())
        for group, named in told["entry-points"].items()
    ]
    content = {
        **{str(file.relative_to(project)): file.read_text() for file in sorted((project / package).glob("*.py"))},
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {told['name']}\nVersion: {told['version']}\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: expunge\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/entry_points.txt": "\n".join(points),
    }
    content[f"{about}/RECORD"] = "".join(f"{name},,\n" for name in [*content, f"{about}/RECORD"])
    made = project / f"{package}-{told['version']}-py3-none-any.whl"
    with zipfile.ZipFile(made, "w") as archive:
        for name, text in content.items():
            archive.writestr(name, text)
    return made


def install(file: Path, site: Path) -> tuple[int, str]:
    words = ["install", "--no-index", "--no-deps", "--disable-pip-version-check", "--target", str(site), str(file)]
    done = subprocess.run([sys.executable, "-m", "pip", *words], capture_output=True, timeout=100, check=False)
    return done.returncode, done.stdout.decode()


@pytest.mark.timeout(180)  # a dozen processes, and one suite
def test_page_is_run_as_it_stands(tmp_path: Path) -> None:
    with session(tmp_path) as shell:
        for command, shown in commands():
            code, told = shell.types(command)
            found = re.fullmatch(pattern(shown, shell.ids), told)
            assert found, f"$ {command}\n{told}"
            assert code == any(line.startswith("RED") for line in shown), f"{command} ends with {code}"
            shell.ids |= found.groupdict()
            if command.startswith("pytest"):
                assert f"{len(AdapterContract.laws())} passed in " in told
        _, loaded = shell.types('python -c "import expunge_notes; print(expunge_notes.__file__)"')
        log = shell.log.read_text()
    assert shell.ids.keys() == set(IDS)
    assert Path(loaded).is_relative_to(shell.site)
    # A worker has erased, and said so without the text.
    assert log.count('"event": "notes.erased"') == 1
    assert '"process": "worker-1"' in log
    assert "P1234567" not in log
    assert "Traceback" not in log


MUTATIONS = {
    "erases nothing": (f"[row for row in rows if not {MINE}]", "rows", 1),
    "erases by the id alone": (MINE, '(row["id"] in wanted)', 3),
    "leaves the origins": (
        'for name, rows in (("notes", notes), ("origins", origins)):',
        'for name, rows in (("notes", notes),):',
        1,
    ),
    "forgets the tenant": (
        '(row["tenant"], row["user"]) == (order.scope.tenant, order.scope.user)',
        'row["user"] == order.scope.user',
        1,
    ),
    "takes what it may not touch for absent": ("len(wanted) - len(there)", "len(wanted) - len(gone)", 6),
    "has no time": ("self._context.in_time([order])", "pass", 7),
    "passes errors on": ("except OSError:", "except ZeroDivisionError:", 7),
    "looks where it finds": ('rows = self._read("notes", order)', 'rows = self._read("origins", order)', 9),
    "does not look for late writers": ("_names((*order.known, *order.targets))", "set()", 8),
    "does not look from its targets": ("_names((*order.known, *order.targets))", "_names(order.known)", 10),
    "tells who it was": ("job_id=str(order.job)", "user=order.scope.user", 12),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_page_that_is_wrong_in_one_place_fails_its_own_test(name: str, tmp_path: Path) -> None:
    right, wrong, number = MUTATIONS[name]
    adapter = written(tmp_path) / "expunge_notes" / "adapter.py"
    text = adapter.read_text()
    assert text.count(right) == 1
    adapter.write_text(text.replace(right, wrong))
    done = subprocess.run(
        ["pytest", "-q", "-k", f"test_law_{number:02}"],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 1
    assert f"AssertionError: law {number} is broken" in done.stdout.decode()


@pytest.mark.parametrize(
    "told",
    ["job 1 done\n", "a\njob 1: done\n", "job 1: done\nmore\n", "job 1: done", "", "job 1: undone\n"],
)
def test_what_is_told_otherwise_is_not_taken_for_what_is_shown(told: str) -> None:
    assert re.fullmatch(pattern(["job ...: done"], {}), "job 1: done\n")
    assert not re.fullmatch(pattern(["job ...: done"], {}), told)


def test_id_is_the_same_wherever_it_stands() -> None:
    one, other = "01a22db0-0df9-7191-81bb-08870db505f0", "798fce32-2ef8-4e39-a852-dd817aafcf73"
    found = re.fullmatch(pattern(["...", "job JOB: done", "..."], {}), f"a\njob {one}: done\nb\n")
    assert found is not None
    ids = found.groupdict()
    assert ids == {"JOB": one}
    assert re.fullmatch(pattern(["job JOB: done"], ids), f"job {one}: done\n")
    assert not re.fullmatch(pattern(["job JOB: done"], ids), f"job {other}: done\n")
    assert not re.fullmatch(pattern(["job JOB: done"], {}), "job nobody: done\n")


@pytest.mark.parametrize("name", [name for name in files() if name.endswith(".py")])
def test_page_imports_the_public_face_alone(name: str) -> None:
    for node in ast.walk(ast.parse(files()[name])):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("orchestrator", "adapters", "workers")):
            assert node.module in {"orchestrator", "orchestrator.testing"}
            face = orchestrator if node.module == "orchestrator" else orchestrator.testing
            assert {alias.name for alias in node.names} <= set(face.__all__)
        if isinstance(node, ast.Import):
            assert not [a.name for a in node.names if a.name.startswith(("orchestrator", "adapters", "workers"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
    assert len(links) > 1
    for link in links:
        name, _, anchor = link.partition("#")
        there = page.parent / name if name else page
        assert there.is_file(), link
        lines = there.read_text(encoding="utf-8").splitlines()
        assert anchor in {"", *(line.lstrip("# ").lower().replace(" ", "-") for line in lines if line[:1] == "#")}, link
