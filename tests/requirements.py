"""Prints which tests show each of R1-R150, and fails where one has none."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ALL = range(1, 151)


def shown() -> dict[int, list[str]]:
    """Give the test files of each requirement."""
    found: dict[int, list[str]] = {}
    for path in sorted(Path(__file__).parent.rglob("test_*.py")):
        for number in re.findall(r'mark\.req\("R(\d+)"', path.read_text()):
            found.setdefault(int(number), []).append(path.name)
    return found


def main() -> int:
    """Print the table; the exit code tells whether one is missing."""
    tests = shown()
    for number in ALL:
        sys.stdout.write(f"R{number}: {', '.join(sorted(set(tests.get(number, [])))) or 'MISSING'}\n")
    missing = sorted(set(ALL) - tests.keys())
    sys.stdout.write(f"{len(tests)} of {len(ALL)} shown; missing: {missing or 'none'}\n")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
