"""What has expired goes as what was asked for goes: one job for each scope, opened by the clock."""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import Final
from uuid import UUID

from orchestrator.domain.abilities import ExpiringSource
from orchestrator.service.accept import Acceptance, accept_expired
from orchestrator.service.run_batch import Engine, in_time

AT_ONCE: Final = 500
"""Jobs in one transaction: others wait for it."""


def look(source: ExpiringSource, using: Acceptance) -> list[UUID]:
    """Open a job for each scope in which something has expired; give the ids of those that are new.

    Several may look at the same time, and again: what a job is at gets no second one.
    """
    found, opened = iter(source.expired()), list[UUID]()
    while some := list(islice(found, AT_ONCE)):
        opened += accept_expired(some, using)
    return opened


def expire(engine: Engine) -> None:
    """Ask those sources served here whose turn it is; one that fails or hangs is asked again in its next turn."""
    for name, source in engine.adapters.items():
        if not isinstance(source, ExpiringSource) or not engine.ledger.may_look(name):
            continue
        deadline = engine.clock.now() + engine.budgets.unit
        try:
            opened = in_time(engine, name, deadline, partial(look, source, engine.acceptance))
        except Exception as error:  # noqa: BLE001 - what a source raises must not keep other work waiting
            engine.log.warning("expiry.failed", adapter=name, error=type(error).__name__)
        else:
            engine.log.info("expiry.looked", adapter=name, jobs=len(opened))
