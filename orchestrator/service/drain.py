"""A woken worker takes all that is due, phase after phase: a job alone needs one hop, not ten."""

from __future__ import annotations

from orchestrator.domain.unit import Phase
from orchestrator.service.expire import expire
from orchestrator.service.run_batch import Engine, run_batch


def drain(engine: Engine, adapter: str, phase: Phase) -> int:
    """Look for what has expired, run the announced batch, then every due one of the adapters served here.

    Give the units claimed. It ends when nothing is due or the drain budget is over: the dispatcher announces what is
    left.
    """
    engine.ledger.heard(adapter)
    until = engine.clock.now() + engine.budgets.drain
    names = sorted(engine.adapters)
    expire(engine)
    total = run_batch(engine, adapter, phase)
    while engine.clock.now() < until:
        claimed = sum(run_batch(engine, name, due) for name, due in engine.ledger.due(names))
        if not claimed:
            break
        total += claimed
    return total
