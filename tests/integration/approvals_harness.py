"""Actions that wait for approval on a desk, members who come and go, and a tool that writes files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from adapters.drafts import Answer, Approvals, DraftsAdapter, Gateway, Place
from adapters.drafts.approvals.state import Passing
from orchestrator import Refused, Scope, Target
from tests.integration.drafts_harness import SECRET, A, Desk, Died, opened

MAIL = "mail-1"
SEND = "send-mail"


class FileTool:
    """Appends a line for each call, and keeps a receipt by operation key. It sends again whatever it is told to."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self._folder, self._sent = folder, folder / "sent"
        self._sent.touch()
        self.asked: list[str] = []

    def look_up(self, operation_key: str) -> str | None:
        self.asked.append(operation_key)
        receipt = self._folder / operation_key
        return receipt.read_text() if receipt.exists() else None

    def call(self, scope: Scope, action: str, payload: str, operation_key: str) -> str:
        line = "\t".join((scope.user, action, operation_key, payload.replace("\n", " ")))
        with self._sent.open("a") as file:
            file.write(f"{line}\n")
            file.flush()
            os.fsync(file.fileno())
        receipt = f"msg_{len(self.sent)}"
        (self._folder / operation_key).write_text(receipt)
        return receipt

    @property
    def sent(self) -> list[list[str]]:
        """Give user, action, operation key and payload of each call."""
        return [line.split("\t") for line in self._sent.read_text().splitlines()]


class ExportTool(FileTool):
    """Gives nobody what belongs to others, whatever it is asked to do."""

    def call(self, scope: Scope, action: str, payload: str, operation_key: str) -> str:
        if action == "export-all-users":
            message = f"no: {payload}"
            raise Refused(message)
        return super().call(scope, action, payload, operation_key)


@dataclass
class Members:
    """Who may work in which scope: everybody, but for those who were removed."""

    removed: set[Scope] = field(default_factory=set)

    def __call__(self, scope: Scope) -> bool:
        return scope not in self.removed


@dataclass
class Office:
    """A desk with approvals, and a tool behind a gateway."""

    desk: Desk
    members: Members
    tool: FileTool

    @property
    def drafts(self) -> DraftsAdapter:
        return self.desk.drafts

    @property
    def approvals(self) -> Approvals:
        return self.drafts.approvals(self.members)

    @property
    def gateway(self) -> Gateway:
        return self.drafts.gateway(self.tool, self.members)

    def revision(self, scope: Scope = A) -> int:
        return self.desk.memory.store.revision(scope)

    def ask(self, scope: Scope = A, *, key: str = "language", value: str = SECRET, expires: float = 1e9) -> Target:
        """Let a fact be told and a report of it be published, and ask for it to be sent; give the fact."""
        fact = self.desk.tell(key, value, scope, expires=expires)
        self.desk.publish("report-001", scope)
        self.approvals.request(scope, MAIL, SEND, report="report-001")
        return fact

    def approve(self, scope: Scope = A, *, expires: float = 1e9) -> None:
        self.ask(scope, expires=expires)
        self.approvals.decide(scope, MAIL, Answer.APPROVE)

    def state(self, scope: Scope = A) -> str:
        """Read the state of the approval by hand."""
        (row,) = self.desk.rows(
            f"SELECT state FROM approvals WHERE tenant = '{scope.tenant}' AND user_id = '{scope.user}'"  # noqa: S608 - ours
            f" AND project = '{scope.project or ''}' AND name = '{MAIL}'"
        )
        return str(row[0])

    def payloads(self, scope: Scope = A) -> list[str]:
        """Read by hand what waits in the table of texts."""
        rows = self.desk.rows("SELECT tenant, user_id, project, text FROM drafts WHERE step = 'approval' ORDER BY text")
        return [row[3] for row in rows if tuple(row[:3]) == (scope.tenant, scope.user, scope.project)]


def dying_at(at: Place) -> Passing:
    def die(passed: Place) -> None:
        if passed is at:
            raise Died

    return die


def office_in(folder: Path, url: str) -> Iterator[Office]:
    """Give an office on a database; the clock stands at second 0."""
    for desk in opened(folder, url):
        yield Office(desk, Members(), FileTool(folder / "tool"))


@pytest.fixture(params=["sqlite", "postgresql"])
def office(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Office]:
    """Give an office on each database."""
    url = f"sqlite:///{tmp_path / 'm.db'}" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    yield from office_in(tmp_path, url)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Office]:
    """Give an office on SQLite."""
    yield from office_in(tmp_path, f"sqlite:///{tmp_path / 'm.db'}")
