"""Changes one rule at a time in a copy of the source, and sees that the tests named for it fail.

    python tests/mutants/run.py

Exit status 1 if a changed rule goes unnoticed, or if a test fails where nothing was changed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final

from tests.mutants.provenance import MUTATIONS, STORE, TESTS, Mutation

ROOT: Final = Path(__file__).parents[2]
SETTINGS: Final = """[pytest]
pythonpath = .
addopts = --import-mode=importlib --strict-markers -p no:cacheprovider --tb=no -q -rf
filterwarnings = error
markers =
    req(number): the requirement that a test shows
    case(number): the failure of a real user that a test shows cannot happen here
"""
AT_ONCE: Final = 2
PATIENCE: Final = 60.0


def main() -> int:
    """Print a table of what noticed which change."""
    named = sorted({test for mutation in MUTATIONS for test in mutation.killed_by})
    with tempfile.TemporaryDirectory() as folder:
        unchanged = copied(Path(folder) / "unchanged")
        status, _ = run(unchanged, named)
        if status != 0:
            sys.stdout.write("a named test fails although nothing was changed, or there is none of that name\n")
            return 1
        with ThreadPoolExecutor(AT_ONCE) as pool:
            killed = list(pool.map(partial(is_killed, unchanged), MUTATIONS, range(len(MUTATIONS))))
    sys.stdout.write("mutation | killed by | ok\n")
    for mutation, ok in zip(MUTATIONS, killed, strict=True):
        tests = ", ".join(test.partition("::")[2] for test in mutation.killed_by)
        sys.stdout.write(f"{mutation.rule} | {tests} | {'ok' if ok else 'SURVIVED'}\n")
    sys.stdout.write(f"{sum(killed)} of {len(killed)} killed\n")
    return 0 if all(killed) else 1


def is_killed(unchanged: Path, mutation: Mutation, number: int) -> bool:
    """Tell whether every test that is named for a changed rule fails; an error outside of a test is none."""
    copy = unchanged.with_name(str(number))
    shutil.copytree(unchanged, copy)  # with all that the first run has compiled
    apply(copy, mutation)
    status, failed = run(copy, mutation.killed_by)
    return status == 1 and failed == set(mutation.killed_by)


def apply(copy: Path, mutation: Mutation) -> None:
    """Replace a text that stands exactly once; raises `ValueError` for any other."""
    file = copy / STORE / mutation.file
    text = file.read_text(encoding="utf-8")
    if text.count(mutation.old) != 1:
        raise ValueError(f"{mutation.file} holds this {text.count(mutation.old)} times, not once: {mutation.old!r}")
    file.write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")
    for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*"):
        compiled.unlink()  # it is told from the new text by whole seconds alone


def copied(folder: Path) -> Path:
    """Copy what is changed and what looks at it."""
    shutil.copytree(ROOT / "adapters" / "memory", folder / "adapters" / "memory")
    shutil.copy2(ROOT / "adapters" / "__init__.py", folder / "adapters")
    shutil.copytree(ROOT / "tests" / "data", folder / "tests" / "data")
    (folder / TESTS).mkdir(parents=True)
    for file in (ROOT / TESTS).glob("*chains*.py"):
        shutil.copy2(file, folder / TESTS)
    (folder / "pytest.ini").write_text(SETTINGS, encoding="utf-8")
    return folder


def run(copy: Path, tests: Collection[str]) -> tuple[int, set[str]]:
    """Run tests against a copy; give the exit status and the names of those that failed."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *(f"{TESTS}/{test}" for test in tests)],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    failed = (line.removeprefix(f"FAILED {TESTS}/") for line in done.stdout.splitlines() if line.startswith("FAILED"))
    return done.returncode, {name.partition(" - ")[0] for name in failed}


if __name__ == "__main__":
    sys.exit(main())
