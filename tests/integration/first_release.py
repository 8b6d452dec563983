"""A worker of the first release: what it wrote, by its own statements, as they were built."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4, uuid5

import pytest
import sqlalchemy as sa
from alembic import command

from orchestrator.store import migrate
from orchestrator.store.clock import micros, read_now
from orchestrator.store.engine import open_database
from tests.fakes import ANNA, Bench, fill

PAGE = 1000
STATEMENTS = {
    "job": "INSERT INTO deletion_jobs (id, purpose, tenant, user_id, project, selector_kind, selector_value, "
    "subject_ref, selector_ref, trigger_kind, reason_code, reference, requested_by_ref, idempotency_ref, "
    "payload_sha256, state, round, due_at_us, requested_at_us) VALUES (:job, 'erase', :tenant, :user, :project, "
    "'key', 'passport', 's', 's', 'request', 'user_request', NULL, 'r', NULL, 'p', 'requested', 1, :due, :now)",
    "filed": "INSERT INTO job_transitions (job_id, to_state, worker, at_us) VALUES (:job, 'requested', 'w', :now)",
    "unit": "INSERT INTO deletion_units (id, job_id, adapter, phase, page, round, find_pass, required, "
    "next_attempt_at_us) VALUES (:unit, :job, :adapter, :phase, :page, 1, :found, 1, :now) ON CONFLICT DO NOTHING",
    "next": "INSERT INTO deletion_units (id, job_id, adapter, phase, page, round, find_pass, known_page, cursor, "
    "next_attempt_at_us) VALUES (:unit, :job, :adapter, :phase, :page, 1, :found, :known, :cursor, :now) "
    "ON CONFLICT DO NOTHING",
    "claim": "UPDATE deletion_units SET status = 'running', lease_owner = :owner, lease_until_us = :until, "
    "fence = (deletion_units.fence + 1), attempts = (deletion_units.attempts + 1) "
    "WHERE deletion_units.id = :unit AND deletion_units.status = 'pending'",
    "renew": "UPDATE deletion_units SET lease_until_us = :until WHERE lease_owner = :owner AND status = 'running'",
    "target": "INSERT INTO deletion_targets (job_id, adapter, kind, handle, version, derived_of, page, round, "
    "find_pass) VALUES (:job, :adapter, :kind, :handle, :version, :origin, :page, 1, :found) ON CONFLICT DO NOTHING",
    "tombstone": "INSERT INTO tombstones (tenant, key_id, mac, kind, cut_off, job_id, reason_code, created_at_us) "
    "VALUES (:tenant, 'k1', :mac, 'key', 7, :job, 'user_request', :now) ON CONFLICT DO NOTHING",
    "receipt": "INSERT INTO deletion_receipts (job_id, unit_id, adapter, phase, page, round, attempt, fence, "
    "started_at_us, finished_at_us, outcome, expected, erased, already_absent, scheduled, extra, remaining, reach, "
    "residuals, id, body, salt) VALUES (:job, :unit, :adapter, :phase, :page, 1, 1, 1, :now, :now, :outcome, "
    ":expected, :erased, 0, 0, 0, :remaining, :reach, '[]', :receipt, :body, :body)",
    "revision": "UPDATE deletion_jobs SET revision = CASE WHEN (coalesce(deletion_jobs.revision, 0) > 3) "
    "THEN coalesce(deletion_jobs.revision, 0) ELSE 3 END WHERE deletion_jobs.id = :job",
    "done": "UPDATE deletion_units SET status = 'done', cursor = NULL, lease_owner = NULL, no_lineage = 0, "
    "lease_until_us = NULL WHERE deletion_units.id = :unit",
    "attempt": "INSERT INTO unit_attempts (unit_id, error_code, attempt, fence, at_us) "
    "VALUES (:unit, 'store_unreachable', 1, 1, :now)",
    "again": "UPDATE deletion_units SET status = 'pending', lease_owner = NULL, last_error_code = 'store_unreachable', "
    "lease_until_us = NULL, next_attempt_at_us = :now WHERE deletion_units.id = :unit",
    "park": "UPDATE deletion_units SET status = 'parked', parked = 'permanent_error', lease_owner = NULL, "
    "last_error_code = 'permanent', lease_until_us = NULL WHERE deletion_units.id = :unit",
    "moved": "INSERT INTO job_transitions (job_id, from_state, to_state, worker, at_us) "
    "VALUES (:job, :old, :new, 'w', :now)",
    "source_revoked": "UPDATE deletion_jobs SET state = :new, revoked_at_us = :now WHERE id = :job AND state = :old",
    "derived_cleanup": "UPDATE deletion_jobs SET state = :new, cleanup_at_us = :now WHERE id = :job AND state = :old",
    "verified": "UPDATE deletion_jobs SET user_id = NULL, project = NULL, selector_value = NULL, state = :new, "
    "verified_at_us = :now WHERE id = :job AND state = :old",
    "completed": "UPDATE deletion_jobs SET state = :new, completed_at_us = :now WHERE id = :job AND state = :old",
    "forget": "DELETE FROM fingerprints WHERE job_id = :job",
    "cursors": "UPDATE deletion_units SET cursor = NULL WHERE deletion_units.job_id = :job",
    "carry": "INSERT INTO deletion_targets (job_id, adapter, kind, handle, version, derived_of, page, round, "
    "find_pass) SELECT job_id, adapter, kind, handle, version, derived_of, page, 2, 0 FROM deletion_targets "
    "WHERE job_id = :job AND round = 1",
    "round": "UPDATE deletion_jobs SET round = 2 WHERE id = :job",
    "announce": "INSERT INTO adapter_health (adapter, announced_at_us) VALUES (:adapter, :now) "
    "ON CONFLICT (adapter) DO UPDATE SET announced_at_us = :now",
    "heard": "UPDATE adapter_health SET announced_at_us = NULL WHERE adapter_health.adapter = :adapter",
}
STATES = ["requested", "source_revoked", "derived_cleanup", "verified", "completed"]


@dataclass
class FirstRelease:
    """A worker of the first release, which carries one job as far as it is told."""

    connection: sa.Connection
    facts: Sequence[str]
    job: UUID
    copies_at: int = 0  # the find pass that named the copies

    def __post_init__(self) -> None:
        self.now = read_now(self.connection)
        self.chunks = [self.facts[start : start + PAGE] for start in range(0, len(self.facts), PAGE)]
        self.pages = len(self.chunks)

    def run(self, name: str, *rows: dict[str, object]) -> None:
        due = micros(datetime.now(UTC) + timedelta(days=30))
        common = {"job": str(self.job), "now": self.now, "until": self.now + 15_000_000, "due": due, "owner": "old"}
        text = sa.text(STATEMENTS[name])
        wanted = set(text.compile().params)
        for row in rows or ({},):
            given = {**common, **row}
            self.connection.execute(text, {key: value for key, value in given.items() if key in wanted})

    def unit(self, adapter: str, phase: str, page: int) -> dict[str, object]:
        ident = uuid5(self.job, f"{adapter}/{phase}/{page}/1")
        return {"unit": str(ident), "adapter": adapter, "phase": phase, "page": page, "found": 0}

    def receipt(self, unit: dict[str, object], outcome: str, expected: int, *, erased: int = 0, left: int = 0) -> None:
        reach = "logical" if unit["phase"] == "verify" else None
        counts: dict[str, object] = {"expected": expected, "erased": erased, "remaining": left, "outcome": outcome}
        self.run("receipt", {**unit, **counts, "reach": reach, "receipt": str(uuid4()), "body": b"said"})

    def move(self, new: str) -> None:
        row: dict[str, object] = {"old": STATES[STATES.index(new) - 1], "new": new}
        self.run("moved", row)
        self.run(new, row)

    # What follows upon what; `pages` tells how many pages of a phase were answered

    def accept(self) -> None:
        self.run("job", {"tenant": ANNA.tenant, "user": ANNA.user, "project": ANNA.project})
        self.run("filed")
        self.run("unit", self.unit("source", "revoke", 0))

    def revoke(self, pages: int) -> None:
        for page, chunk in enumerate(self.chunks[:pages]):
            unit = self.unit("source", "revoke", page)
            self.run("claim", unit)
            self.targets("source", page, 0, [(fact, None) for fact in chunk])
            self.run("tombstone", {"tenant": ANNA.tenant, "mac": "0" * 64})
            self.receipt(unit, "revoked", len(chunk), left=len(chunk))
            self.run("revision")
            self.run("done", unit)
            if page + 1 < self.pages:
                self.run(
                    "next", {**self.unit("source", "revoke", page + 1), "known": 0, "cursor": str((page + 1) * PAGE)}
                )
        if pages == self.pages:
            self.move("source_revoked")
            self.open_find(1)

    def open_find(self, found: int) -> None:
        for adapter, page in (("source", found * self.pages), ("copies", (found - 1) * self.pages)):
            self.run("unit", {**self.unit(adapter, "find", page), "found": found})

    def find(self, found: int, pages: int) -> None:
        for adapter, first in (("source", found * self.pages), ("copies", (found - 1) * self.pages)):
            for known in range(pages):
                unit = self.unit(adapter, "find", first + known)
                self.run("claim", unit)
                if (adapter, found) == ("copies", 1):
                    chunk = self.chunks[known]
                    self.targets("copies", known, 1, [(f"{fact}-copy-0", f"fact:{fact}") for fact in chunk])
                self.run("done", unit)
                if known + 1 < self.pages:
                    after = self.unit(adapter, "find", first + known + 1)
                    self.run("next", {**after, "found": found, "known": known + 1, "cursor": None})
        if pages == self.pages and found == 1:
            self.open_find(2)
        elif pages == self.pages:
            self.move("derived_cleanup")
            self.open_pages("erase")

    def open_pages(self, phase: str) -> None:
        self.run("unit", *(self.unit(a, phase, page) for a in ("source", "copies") for page in range(self.pages)))

    def erase(self, pages: int) -> None:
        for adapter in ("source", "copies"):
            for page, chunk in enumerate(self.chunks[:pages]):
                unit = self.unit(adapter, "erase", page)
                self.run("claim", unit)
                self.receipt(unit, "erased", len(chunk), erased=len(chunk))
                self.run("done", unit)
        if pages == self.pages:
            self.open_pages("verify")

    def verify(self, pages: int) -> None:
        for adapter in ("source", "copies"):
            for page, chunk in enumerate(self.chunks[:pages]):
                unit = self.unit(adapter, "verify", page)
                self.run("claim", unit)
                self.receipt(unit, "absent", len(chunk))
                self.run("done", unit)
        if pages == self.pages:
            self.move("verified")
            self.run("forget")
            self.run("cursors")
            self.move("completed")

    def targets(self, adapter: str, page: int, found: int, named: Sequence[tuple[str, str | None]]) -> None:
        kind, version = ("fact", 1) if adapter == "source" else ("copy", 0)
        place: dict[str, object] = {"adapter": adapter, "page": page, "found": found, "kind": kind, "version": version}
        self.run("target", *({**place, "handle": handle, "origin": origin} for handle, origin in named))


Step = Callable[[FirstRelease, int], None]
STEPS: list[tuple[str, Step]] = [
    ("revoke", FirstRelease.revoke),
    ("find-1", lambda old, pages: old.find(1, pages)),
    ("find-2", lambda old, pages: old.find(2, pages)),
    ("erase", FirstRelease.erase),
    ("verify", FirstRelease.verify),
]
PHASES = [name for name, _ in STEPS]


def carry(old: FirstRelease, phase: str, pages: int) -> None:
    """Carry a new job to a phase; of that one, some pages are answered."""
    old.accept()
    for name, step in STEPS:
        step(old, pages if name == phase else old.pages)
        if name == phase:
            return


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgresql":
        return str(request.getfixturevalue("postgres_url"))
    return f"sqlite:///{tmp_path / 'control.db'}"


@pytest.fixture
def database(url: str) -> Iterator[sa.Engine]:
    """Give a control database of the first release."""
    made = open_database(url)
    to(made, "0001")
    yield made
    made.dispose()


def to(database: sa.Engine, revision: str, way: Callable[..., None] = command.upgrade) -> None:
    config = migrate._config()
    with database.begin() as connection:
        config.attributes["connection"] = connection
        way(config, revision)


def content(database: sa.Engine) -> dict[str, list[str]]:
    tables = [name for name in sa.inspect(database).get_table_names() if not name.startswith("sqlite_")]
    with database.begin() as connection:
        return {
            name: sorted(map(repr, connection.exec_driver_sql(f"SELECT * FROM {name}").all()))  # noqa: S608
            for name in tables
        }


def stock(stage: Bench, facts: Sequence[str], gone: int) -> None:
    """Give the stores what the job is about, but for what was erased already, and a neighbour."""
    for fact in facts[gone:]:
        stage.source.records.add((ANNA.tenant, ANNA.user, "passport", fact))
        stage.copies.records.add((ANNA.tenant, ANNA.user, fact, f"{fact}-copy-0"))
    fill(stage, key="theme")
