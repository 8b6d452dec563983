"""Prints which of R1-R150 have a test, and fails where one that this release promises has none."""

from __future__ import annotations

import re
import sys
from pathlib import Path

PROMISED = {
    *range(1, 5),
    *range(8, 17),
    *range(27, 32),
    32,
    *range(37, 54),
    *range(94, 151),
}
ALL = range(1, 151)


def shown() -> dict[int, list[str]]:
    """Give the test files of each requirement."""
    found: dict[int, list[str]] = {}
    for path in sorted(Path(__file__).parent.rglob("test_*.py")):
        for number in re.findall(r'mark\.req\("R(\d+)"', path.read_text()):
            found.setdefault(int(number), []).append(path.name)
    return found


def main() -> int:
    """Print the table; the exit code tells whether a promised one is missing."""
    tests = shown()
    for number in ALL:
        state = ", ".join(sorted(set(tests.get(number, [])))) or ("MISSING" if number in PROMISED else "-")
        sys.stdout.write(f"R{number}: {state}\n")
    missing = sorted(PROMISED - tests.keys())
    sys.stdout.write(f"{len(tests)} of {len(ALL)} shown; promised and missing: {missing or 'none'}\n")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
