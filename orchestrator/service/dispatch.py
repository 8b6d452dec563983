"""The dispatcher's turn: take back what was lost, move what can move, wake workers for what is due."""

from __future__ import annotations

from typing import Any

from orchestrator.domain.codes import CrashPoint
from orchestrator.domain.ports import Broker, Crash, Ledger


def sweep(ledger: Ledger, crash: Crash, log: Any) -> None:  # noqa: ANN401 - structlog's own type
    """Take back units whose lease has ended and move every job that can move."""
    swept = ledger.sweep()
    crash(CrashPoint.AFTER_SWEEP, "dispatcher")
    if swept.rescued or swept.parked:
        log.warning("leases.ended", rescued=swept.rescued, parked=swept.parked)
    for hold in swept.in_force:
        log.info("hold.in_force", hold_id=hold)
    for job, state in swept.moved:
        log.info("job.moved", job_id=job, state=state.value)


def announce(ledger: Ledger, broker: Broker, crash: Crash) -> int:
    """Send the announcements that are due; give how many.

    Each is noted before it is sent: a message that is lost is announced again when the
    note is older than a lease, and two dispatchers send one.
    """
    noted = ledger.announce()
    for adapter, phase in noted:
        crash(CrashPoint.BEFORE_ANNOUNCE, f"{adapter}.{phase}")
        broker.announce(adapter, phase)
        crash(CrashPoint.AFTER_ANNOUNCE, f"{adapter}.{phase}")
    return len(noted)
