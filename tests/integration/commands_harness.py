"""A control database, commands that run on it in this process, and the hands of a test on its jobs."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from orchestrator import ErrorCode, Reason, Scope, Selector, SelectorKind
from orchestrator.bootstrap import Control, open_control
from orchestrator.cli import main
from orchestrator.domain.codes import HoldReason
from orchestrator.domain.retry import Park, RetryIn
from orchestrator.domain.unit import Failed, Phase
from orchestrator.initialise import initialise
from orchestrator.service.accept import Request, accept
from orchestrator.service.hold import HoldRequest, place
from orchestrator.store.migrate import upgrade
from tests.fakes import FakeClock

USER, OPERATOR, KEY, CANARY = "ann-of-acme", "operator-of-acme", "passport-of-ann", "zq7canary"
Run = Callable[..., tuple[object, str, str]]


@pytest.fixture
def control(tmp_path: Path) -> Iterator[Control]:
    initialise(tmp_path / "state")
    made = open_control(tmp_path / "state", FakeClock())
    upgrade(made.database)
    yield made
    made.close()


@pytest.fixture
def run(control: Control, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command as `expunge` does; give its exit code, what it printed and what it logged, which name nobody."""
    monkeypatch.setenv("EXPUNGE_DIR", str(control.settings.state_dir))
    monkeypatch.setattr(getpass, "getuser", lambda: OPERATOR)

    def call(*words: str) -> tuple[object, str, str]:
        monkeypatch.setattr(sys, "argv", ["expunge", *words])
        with pytest.raises(SystemExit) as stop:
            main()
        out, error = capsys.readouterr()
        assert [name for name in (USER, OPERATOR, KEY, CANARY) if name in (out + error).casefold()] == []
        return stop.value.code, out, error

    return call


def file(control: Control, key: str = KEY, *, tenant: str = "acme", reference: str | None = None) -> str:
    asked = Request(
        scope=Scope(tenant=tenant, user=USER),
        selector=Selector(kind=SelectorKind.KEY, value=key),
        reason=Reason.USER_REQUEST,
        requested_by="tester",
        reference=reference,
    )
    return str(accept(asked, control.acceptance)[0])


def fail(control: Control, then: Park | RetryIn, code: ErrorCode = ErrorCode.STORE_UNREACHABLE) -> None:
    """Have the due units of the source fail."""
    owner = str(uuid4())
    units = control.ledger.load(owner, control.ledger.claim("memory", Phase.REVOKE, owner=owner, limit=9))
    failed = [Failed(claimed=unit, code=code, then=then) for unit in units]
    control.ledger.commit(owner, failed, started_at=control.clock.now())


def hold(control: Control, *items: str) -> list[UUID]:
    asked = HoldRequest(
        tenant="acme", user=USER, items=items, reason=HoldReason.DISPUTE, requested_by="tester", reference="case-7"
    )
    return place(asked, control.acceptance)
