"""A scan in a process of its own: `python -m orchestrator.scan.child`, asked and answered in JSON.

SQLite marks its locks by POSIX locks, which a process loses when it closes any other handle of
the same file. A worker that read the raw bytes itself would let others write into its
transactions.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from orchestrator.domain.contract import Fingerprint
from orchestrator.scan.fingerprints import Fingerprinter
from orchestrator.scan.keys import Keys
from orchestrator.scan.scanner import scan


def answer(asked: dict[str, Any]) -> dict[str, Any]:
    """Scan what is asked for; give the report as JSON has it."""
    keys = asked["keys"]
    window, seal = (bytes.fromhex(keys[name]) for name in ("window", "seal"))
    by = Fingerprinter(Keys(base=int(keys["base"], 16), window=window, seal=seal))
    wanted = {owner: [Fingerprint(*row) for row in rows] for owner, rows in asked["wanted"].items()}
    control = by.of_bytes(bytes.fromhex(asked["marker"])).rows
    report = scan([Path(path) for path in asked["paths"]], wanted, by=by, control=control)
    files = [
        {
            "path": str(file.path),
            "named": str(file.named),
            "size": file.size,
            "hits": dict(file.hits),
            "doubt": file.doubt,
            "unscannable": file.unscannable,
        }
        for file in report.files
    ]
    return {"files": files, "control_found": report.control_found}


if __name__ == "__main__":
    json.dump(answer(json.load(sys.stdin)), sys.stdout)
