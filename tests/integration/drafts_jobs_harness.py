"""A deployment with drafts, as its configuration opens it, and the hands of a test on its stores and jobs."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar, cast

import pytest

from adapters.drafts import DraftsAdapter, Fault
from orchestrator import Reason, Scope, Selector, SelectorKind, bootstrap
from orchestrator.domain.job import Result
from orchestrator.domain.states import JobState
from orchestrator.initialise import initialise
from orchestrator.service.accept import Request, accept
from orchestrator.store.migrate import upgrade
from tests.fakes import FakeClock
from tests.integration.drafts_harness import Desk, with_drafts
from tests.integration.jobs_harness import Deployment
from tests.servers import fake_redis

ANNA = Scope(tenant="acme", user="anna", project="trips")
BERTA = replace(ANNA, user="berta")
SECRET = "The passport number is P1234567."
OTHER = "Window seats only, row twelve or so."
PASSPORT = Selector(kind=SelectorKind.KEY, value="passport")
SUBJECT = Selector(kind=SelectorKind.SUBJECT)
DONE = (JobState.COMPLETED, Result.ERASED)
COUNT = """
import pathlib, sys
texts = [path.read_bytes() for path in pathlib.Path(sys.argv[1]).glob("memory.db*")]
print(sum(text.count(sys.argv[2].encode()) for text in texts))
"""


@dataclass
class Office(Deployment):
    """A deployment with drafts, and the hands of a desk on its stores."""

    folder: Path

    @property
    def desk(self) -> Desk:
        drafts = cast("DraftsAdapter", self.engine.adapters["drafts"])
        return Desk(self.memory, drafts, self.clock)

    def draft(self, scope: Scope) -> None:
        """Let a user tell two facts; one report is published of both, one of the seat, one is left as a draft."""
        desk = self.desk
        desk.tell("passport", SECRET, scope)
        desk.tell("seat", OTHER, scope)
        desk.publish("report-001", scope)
        desk.publish("report-002", scope, keys=["seat"])
        desk.runtime.submit(scope, "report-003")
        desk.die("report-003", Fault.AFTER_DRAFT, scope)

    def request(self, selector: Selector, scope: Scope = ANNA) -> str:
        asked = Request(scope=scope, selector=selector, reason=Reason.USER_REQUEST, requested_by="tester")
        return str(accept(asked, self.control.acceptance)[0])

    def erased(self, job: str) -> dict[str, int]:
        receipts = self.control.ledger.receipts(job)
        return {r.adapter: r.erased for r in receipts if r.phase == "erase"}

    def hits(self, text: str) -> int:
        """Count a text in the raw files, in a process of its own: SQLite has locks on them here."""
        command = [sys.executable, "-c", COUNT, str(self.folder), text]
        return int(subprocess.run(command, capture_output=True, check=True).stdout)


Kind = TypeVar("Kind", bound=Office)


@contextmanager
def deployed(
    folder: Path, kind: type[Kind], *, require: str = "logical", url: str = "sqlite:///memory.db"
) -> Iterator[Kind]:
    """Open a deployment of a kind; `require` is how far memory and drafts are looked at."""
    initialise(folder)
    with fake_redis() as cache:
        file = folder / "expunge.toml"
        text = file.read_text().replace("redis://127.0.0.1:0/0", cache).replace("sqlite:///memory.db", url)
        file.write_text(re.sub(r'(?<=\[adapters\.memory\]\nrequired = true\nrequire  = )"\w+"', f'"{require}"', text))
        with_drafts(folder, require, url)
        clock = FakeClock()
        control = bootstrap.open_control(folder, clock)
        upgrade(control.database)
        made = kind(control, bootstrap.open_engine(control), clock, folder)
        try:
            yield made
        finally:
            for adapter in made.engine.adapters.values():
                adapter.close()
            control.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def office(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Office]:
    url = "sqlite:///memory.db" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    with deployed(tmp_path / "state", Office, url=url) as made:
        yield made


@pytest.fixture
def single(tmp_path: Path) -> Iterator[Office]:
    with deployed(tmp_path / "state", Office) as made:
        yield made
