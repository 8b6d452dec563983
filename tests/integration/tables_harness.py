"""Every table of a deployment on either database, read by hand, and what may be left there of a person who is gone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, cast

import sqlalchemy as sa

from adapters.backup import BackupAdapter
from adapters.cache import CacheAdapter
from adapters.drafts import DraftsAdapter
from adapters.memory import MemoryAdapter
from adapters.vector import VectorAdapter
from orchestrator import bootstrap
from orchestrator.domain.job import JobView
from orchestrator.initialise import initialise
from orchestrator.service.run_batch import Engine, run_batch
from orchestrator.store.migrate import upgrade
from tests.fakes import FakeClock

SECTIONS: Final = """
[adapters.vector]
required = true
url = "sqlite:///vectors.db"
dimensions = 4

[adapters.drafts]
required = true
url = "sqlite:///memory.db"
"""
BACKUP: Final = """
[adapters.backup]
required = true
manifest = "backups/manifest.json"
source = "memory.db"
"""
EMPTIED: Final = {
    # The source, and what lies in its database.
    *("facts", "memories", "drafts", "preference_events", "preferences", "fact_candidates"),
    # The index.
    "vector_points",
    # The control database: raw ids leave a job when it is verified.
    "deletion_jobs",
}
"""Tables that hold something of a person, and nothing of one who is gone."""
NAMED: Final[Mapping[str, tuple[set[str], str]]] = {
    "accepted_sources": ({"user_id", "source_id"}, "a source that is told again has the position that it had"),
    "source_ancestry": ({"source_id", "ancestor_id"}, "what was derived from a forgotten source is refused"),
    "confirmations": ({"source_id"}, "a message confirms once"),
    "fact_revisions": ({"user_id"}, "work that began under a smaller number is void"),
    "deletions": ({"user_id"}, "the record of a deletion names whose it was"),
    "draft_jobs": ({"user_id"}, "an id of a draft job is used once"),
    "approvals": ({"user_id"}, "an id of an approval is used once, and its receipt stays"),
    "source_reaches": ({"source_id"}, "how far a message was taken to reach is said once for each key"),
}
"""Tables that still name a person or the ids of their sources: in which columns, and why. They hold no text."""
LINKED: Final[Mapping[str, str]] = {
    "memory_tenants": "SELECT count(*) FROM memory_tenants WHERE memory_id NOT IN (SELECT id FROM memories)",
    "draft_used": "SELECT count(*) FROM draft_used WHERE handle NOT IN (SELECT handle FROM drafts)"
    " AND handle NOT IN (SELECT handle FROM draft_jobs)",
    "record_prints": "SELECT count(*) FROM record_prints WHERE handle NOT IN (SELECT fact_id FROM facts)"
    " AND handle NOT IN (SELECT CAST(id AS TEXT) FROM memories)"
    " AND handle NOT IN (SELECT handle FROM preference_events UNION SELECT handle FROM fact_candidates)",
    "vector_probes": "SELECT count(*) FROM vector_probes",
    "fingerprints": "SELECT count(*) FROM fingerprints",
    "scan_markers": "SELECT count(*) FROM scan_markers",
}
"""Tables whose rows hang on others or on a running job: how many are left over."""
NOBODY: Final[Mapping[str, str]] = {
    "tenant_positions": "a number for each tenant",
    "step_dependencies": "steps of draft jobs, ids and versions of facts",
    "fact_high_water": "keyed hashes of keys, and a number",
    "erased_events": "keyed hashes of keys, and numbers",
    "source_tombstones": "keyed hashes",
    "source_revocations": "jobs and numbers",
    "revocation_targets": "jobs and handles",
    "revocation_left": "jobs and handles",
    "source_epoch": "one number",
    "memory_schema": "one number",
    "chain_schema": "one number",
    "draft_schema": "one number",
    "vector_schema": "two numbers",
    "deletion_tenants": "a tenant for each record of a deletion",
    "copies": "of the book of backups: handles of copies, their files and times",
    "scheduled": "of the book of backups: jobs, handles and times",
    "alembic_version": "the version of the control database",
    "job_transitions": "jobs, states and times",
    "deletion_targets": "handles",
    "deletion_units": "jobs, adapters, numbers and times",
    "unit_attempts": "numbers, codes and times",
    "deletion_receipts": "counts, codes and times",
    "retention_windows": "handles and times",
    "waivers": "codes, times, and a keyed hash of who waived",
    "scrub_runs": "names of stores, outcomes and times",
    "tombstones": "keyed hashes",
    "legal_holds": "keyed hashes, codes and times",
    "adapter_health": "names of adapters, numbers and times",
    "sources": "names of adapters, and a number",
    "restore_replays": "counts and times",
}
"""Tables in which nobody is ever named, and what they hold."""
ELSEWHERE: Final = {"sqlite": {"memory_schema"}, "postgresql": {"copies", "scheduled", "scan_markers"}}
"""Tables that there are on the other database alone: backups are files, and bytes are looked for in files."""
UNUSED: Final = {"sqlite": set[str](), "postgresql": {"retention_windows"}}
"""Tables into which nothing is written there, as it has no backups."""


@dataclass
class Deployment:
    """The stores of a configuration, and what was ever seen in their tables."""

    control: bootstrap.Control
    engine: Engine
    clock: FakeClock
    urls: list[str]
    filled: set[str] = field(default_factory=set)
    named: dict[str, set[str]] = field(default_factory=dict)

    @property
    def memory(self) -> MemoryAdapter:
        return cast("MemoryAdapter", self.engine.adapters["memory"])

    @property
    def cache(self) -> CacheAdapter:
        return cast("CacheAdapter", self.engine.adapters["cache"])

    @property
    def drafts(self) -> DraftsAdapter:
        return cast("DraftsAdapter", self.engine.adapters["drafts"])

    @property
    def vector(self) -> VectorAdapter:
        return cast("VectorAdapter", self.engine.adapters["vector"])

    @property
    def backup(self) -> BackupAdapter | None:
        return cast("BackupAdapter | None", self.engine.adapters.get("backup"))

    def view(self, job: str) -> JobView:
        return self.control.ledger.job(job)

    def tables(self, among: Callable[[str], bool] = bool) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
        """Read every table that there is in any database, whoever has made it, or those among them."""
        for url in self.urls:
            if url.startswith("sqlite") and not Path(url.removeprefix("sqlite:///")).exists():
                continue  # a book that nothing was written into yet
            with closing(sa.create_engine(url, poolclass=sa.NullPool).connect()) as connection:
                for table in filter(among, sa.inspect(connection).get_table_names()):
                    yield table, [dict(row) for row in connection.exec_driver_sql(f"SELECT * FROM {table}").mappings()]  # noqa: S608 - a name that the database gives

    def rows_of(self, user: str) -> dict[str, list[Mapping[str, Any]]]:
        """Give the rows that name a user, of the tables that hold something of a person."""
        found = {t: [row for row in rows if user in said(row.values())] for t, rows in self.tables() if t in EMPTIED}
        return {table: sorted(rows, key=str) for table, rows in found.items()}

    @property
    def database(self) -> str:
        return self.memory.store._engine.dialect.name

    def count(self, table: str, query: str) -> int:
        for url in self.urls:
            with closing(sa.create_engine(url, poolclass=sa.NullPool).connect()) as connection:
                if table in sa.inspect(connection).get_table_names():
                    return int(connection.exec_driver_sql(query).scalar_one())
        return 0

    def look(self, words: set[str], among: Callable[[str], bool] = bool) -> dict[str, set[str]]:
        """Note which tables hold anything; give those that hold one of the words, each with its columns."""
        found: dict[str, set[str]] = {}
        for table, rows in self.tables(among):
            self.filled |= {table} if rows else set()
            columns = {name for row in rows for name, value in row.items() if any(w in said(value) for w in words)}
            if columns:
                found[table] = columns
                self.named.setdefault(table, set()).update(columns)
        return found

    def run(self, words: set[str]) -> None:
        """Work off what is due; between two batches look into the tables in which nothing was seen yet."""
        for _ in range(3):
            while due := self.control.ledger.due(list(self.engine.adapters)):
                run_batch(self.engine, *due[0])
                self.look(words, lambda table: table not in self.filled)
            self.control.ledger.sweep()
            with self.control.database.begin() as connection:
                connection.exec_driver_sql(
                    "UPDATE deletion_units SET next_attempt_at_us = 0 WHERE status = 'pending'"
                    " AND next_attempt_at_us < 4000000000000000"
                )


def said(value: object) -> str:
    """Give a value as it can be searched: bytes character by character."""
    if isinstance(value, bytes | memoryview):
        return bytes(value).decode("latin-1")
    return str(value)


@contextmanager
def deployed(state: Path, redis_url: str, postgres_url: str | None) -> Iterator[Deployment]:
    """Open all stores on files, or all that can be there on one database of PostgreSQL."""
    initialise(state)
    file = state / "expunge.toml"
    text = file.read_text().replace("redis://127.0.0.1:0/0", redis_url) + SECTIONS
    files = [state / "memory.db", state / "vectors.db", state / "orchestrator.db", state / "backups" / ".windows.db"]
    urls = [f"sqlite:///{path}" for path in files]
    if postgres_url is None:
        text += BACKUP
    else:
        for name in ("memory", "vectors", "orchestrator"):
            text = text.replace(f"sqlite:///{name}.db", postgres_url)
        urls = [postgres_url]
    file.write_text(text)
    clock = FakeClock(datetime(2026, 10, 27, 3, tzinfo=UTC))
    control = bootstrap.open_control(state, clock)
    upgrade(control.database)
    made = Deployment(control, bootstrap.open_engine(control), clock, urls)
    yield made
    for adapter in made.engine.adapters.values():
        adapter.close()
    control.close()
