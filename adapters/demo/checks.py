"""All checks of the demo, in the order in which they are looked at: those that change something come last."""

from __future__ import annotations

from typing import Final

from adapters.demo import (
    checks_bytes,
    checks_copies,
    checks_gate,
    checks_holds,
    checks_jobs,
    checks_ledger,
    checks_neighbours,
    checks_restore,
    checks_stores,
)
from adapters.demo.check import Check, Verdict
from adapters.demo.stage import Stage

CHECKS: Final[dict[str, Check]] = {
    check.name: check
    for subject in (
        checks_bytes,
        checks_stores,
        checks_copies,
        checks_neighbours,
        checks_jobs,
        checks_holds,
        checks_ledger,
        checks_gate,
        checks_restore,
    )
    for check in subject.CHECKS
}


def look(stage: Stage, fault: str | None) -> list[Verdict]:
    """Look at everything; the fault of a check is planted when its turn comes, so that no other one meets it before."""
    verdicts = []
    for name, check in CHECKS.items():
        if name == fault and check.plant is not None:
            check.plant(stage.world)
        ok, detail = check.look(stage)
        verdicts.append(Verdict(name=name, ok=ok, detail=detail))
    return verdicts
