"""Decides on an action and sends it, and dies by signal 9 at the place that is named: run as a process of its own."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import structlog

sys.path.insert(0, str(Path(__file__).parents[2]))

from adapters.drafts import Answer, DraftsAdapter, Place
from adapters.drafts.approvals.state import Passing
from orchestrator import AdapterContext, Gate, Keyring
from tests.fakes import FakeClock
from tests.integration.approvals_harness import MAIL, FileTool, Members
from tests.integration.drafts_harness import EPOCH, A


def main(url: str, folder: Path, at: Place) -> None:
    """Decide on the one approval of that database and send it; the clock stands at second 0."""
    gate = Gate(Keyring.parse((folder / "keys").read_text()))
    context = AdapterContext(clock=FakeClock(EPOCH), gate=gate, log=structlog.get_logger(), state_dir=folder)
    adapter, members = DraftsAdapter(context, url=url), Members()
    adapter.approvals(members).decide(A, MAIL, Answer.APPROVE, fault=killing(at))
    adapter.gateway(FileTool(folder / "tool"), members).dispatch(A, MAIL, 1, fault=killing(at))


def killing(at: Place) -> Passing:
    def kill(passed: Place) -> None:
        if passed is at:
            os.kill(os.getpid(), signal.SIGKILL)

    return kill


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Place(sys.argv[3]))
