"""Legal holds, asked where this store itself is told to erase: the control database keeps the jobs back.

Principle: they are asked inside the transaction that erases, so a call that waited for its turn sees those of now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from orchestrator import Holds, Refusal, RuleRefused, Scope

HoldsOn: TypeAlias = Callable[[Scope], Holds]
"""Reads the holds that stand on the subject of a scope, whatever its project."""


def nobody_holds(_scope: Scope) -> Holds:
    """Tell of no hold: where there is no control database, nobody can have placed one."""
    return Holds()


def check_free(holds: Holds, items: Iterable[str]) -> None:
    """Raise `RuleRefused` where a hold covers one of these records."""
    if any(holds.cover(item) for item in items):
        raise RuleRefused(Refusal.HELD)
