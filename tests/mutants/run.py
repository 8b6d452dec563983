"""Changes one rule at a time in a copy of the project, and sees that the tests named for it fail.

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

from tests.mutants import (
    context,
    copies,
    deletion,
    drafts,
    facts,
    gate,
    jobs,
    preferences,
    provenance,
    rows,
)
from tests.mutants.mutation import Mutation

ROOT: Final = Path(__file__).parents[2]
PARTS: Final = ("adapters", "orchestrator", "workers", "tests")
SUBJECTS: Final = (provenance, preferences, gate, facts, context, drafts, deletion, rows, copies, jobs)
MUTATIONS: Final = tuple(mutation for subject in SUBJECTS for mutation in subject.MUTATIONS)
AT_ONCE: Final = 2
PATIENCE: Final = 300.0
QUIET: Final = ("-p", "no:cacheprovider", "--tb=no", "-q", "-rf")


def main() -> int:
    """Print a table of what noticed which change."""
    named = sorted({test for mutation in MUTATIONS for test in mutation.killed_by})
    with tempfile.TemporaryDirectory() as folder:
        unchanged = copied(Path(folder) / "unchanged")
        status, failed = run(unchanged, named)
        if status != 0:
            sys.stdout.write(f"a named test fails although nothing was changed, or is not there: {sorted(failed)}\n")
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
    shutil.rmtree(copy)
    return status == 1 and failed == set(mutation.killed_by)


def apply(copy: Path, mutation: Mutation) -> None:
    """Replace texts that stand exactly once; raises `ValueError` for any other."""
    for name, old, new in mutation.changes:
        file = copy / name
        text = file.read_text(encoding="utf-8")
        if text.count(old) != 1:
            raise ValueError(f"{name} holds this {text.count(old)} times, not once: {old!r}")
        file.write_text(text.replace(old, new), encoding="utf-8")
        for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*"):
            compiled.unlink()  # it is told from the new text by whole seconds alone


def copied(folder: Path) -> Path:
    """Copy what is changed and what looks at it."""
    for part in PARTS:
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy2(ROOT / "pyproject.toml", folder)
    return folder


def run(copy: Path, tests: Collection[str]) -> tuple[int, set[str]]:
    """Run tests against a copy; give the exit status and the names of those that failed."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *QUIET, *tests],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy)},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    failed = (line.removeprefix("FAILED ") for line in done.stdout.splitlines() if line.startswith("FAILED"))
    return done.returncode, {name.partition(" - ")[0] for name in failed}


if __name__ == "__main__":
    sys.exit(main())
