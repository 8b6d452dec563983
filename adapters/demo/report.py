"""What the demo came to: one document for a program, one table for a person."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from adapters.demo import sight
from adapters.demo.check import Verdict
from adapters.demo.stage import Stage

NOT_COVERED: Final = (
    "transcript.txt: an old conversation, outside the registered stores",
    "set-aside.db: a copy of the source database that nobody has registered",
)
_RECEIPTS: Final = """SELECT job_id, adapter, phase, outcome, page, round, attempt, expected, erased, already_absent,
    scheduled, extra, remaining, reach, residuals FROM deletion_receipts ORDER BY finished_at_us, id"""
_NAMES: Final = (
    *("job", "adapter", "phase", "outcome", "page", "round", "attempt", "expected", "erased", "already_absent"),
    *("scheduled", "extra", "remaining", "reach", "residuals"),
)
"""Of the columns of a receipt, as `expunge receipts` names them, and of the job that it belongs to."""


def document(stage: Stage, verdicts: Sequence[Verdict], seconds: float) -> dict[str, Any]:
    """Give everything that was done and seen, in ids, codes, counts and times."""
    told = stage.told
    ours = set(told.jobs.values())
    receipts = [dict(zip(_NAMES, row, strict=True)) for row in sight.read(stage.world.ledger, _RECEIPTS)]
    return {
        "ok": all(verdict.ok for verdict in verdicts),
        "jobs": [{key: job[key] for key in ("id", "state", "selector", "trigger", "attempts")} for job in told.listed],
        "receipts": [{**r, "residuals": json.loads(r["residuals"])} for r in receipts if r["job"] in ours],
        "checks": [{"name": v.name, "ok": v.ok, "detail": v.detail} for v in verdicts],
        "windows": told.status["windows"],
        "traces_before": {store: seen.gone for store, seen in told.traces.items()},
        "not_covered": list(NOT_COVERED),
        "seconds": round(seconds, 1),
    }


def show(told: dict[str, Any]) -> None:
    """Print a table of the checks, no wider than the terminal; 80 columns where there is none."""
    from rich.console import Console  # noqa: PLC0415 - only where a person reads
    from rich.table import Table  # noqa: PLC0415 - as above
    from rich.text import Text  # noqa: PLC0415 - as above

    console = Console(highlight=False)
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(width=5)
    table.add_column()
    table.add_column(overflow="fold")
    for check in told["checks"]:
        word = Text("ok", "green") if check["ok"] else Text("FALSE", "bold red")
        table.add_row(word, check["name"], Text(check["detail"]))
    console.print(table)
    for line in told["not_covered"]:
        console.print(f"not covered: {line}", markup=False)
    false = sum(not check["ok"] for check in told["checks"])
    said = (
        f"{false} of {len(told['checks'])} checks are false" if false else f"all {len(told['checks'])} checks are true"
    )
    console.print(f"{said} after {told['seconds']} s", markup=False)
