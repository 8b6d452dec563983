"""What the files of a real PostgreSQL keep of deleted rows, so that "unsupported" is the right answer."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
import structlog
from structlog.testing import capture_logs

from adapters.memory.postgresql_reach import reach
from orchestrator import AdapterContext, Gate, Keyring, Residual, Scrubbed, ScrubReport
from tests.fakes import FakeClock
from tests.integration.residue_harness import COUNT, GONE, MARKER, scanned, value
from tests.postgres import Server, new_database, passing_server

STAYS = ScrubReport(
    outcome=Scrubbed.UNSUPPORTED,
    residuals=frozenset(
        {Residual.DEAD_TUPLES, Residual.WRITE_AHEAD_LOG, Residual.WAL_ARCHIVE, Residual.PLANNER_SAMPLES}
    ),
)


@dataclass
class Tables:
    """A table of short values and one of long ones, and a connection outside of any transaction."""

    raw: psycopg.Connection[Any]
    engine: sa.Engine
    data: Path
    context: AdapterContext

    def run(self, *statements: str) -> None:
        for statement in statements:
            self.raw.execute(statement.encode())

    def one(self, query: str) -> Any:  # noqa: ANN401 - whatever is asked for
        row = self.raw.execute(query.encode()).fetchone()
        assert row is not None
        return row[0]

    def path(self, relation: str) -> Path:
        return self.data / str(self.one(f"SELECT pg_relation_filepath({relation})"))

    def left(self, length: int = 60) -> dict[str, int]:
        """Count the deleted values of which bytes are found, by what the file is."""
        self.run("CHECKPOINT")
        files = {
            self.path("'facts'"): "heap",
            self.path("'by_value'"): "index",
            self.path("(SELECT reltoastrelid FROM pg_class WHERE relname = 'long')"): "toast",
            self.path("'pg_statistic'"): "statistic",
            self.data / "pg_wal": "wal",
        }
        report = scanned(list(files), {n: value(n, length) for n in range(COUNT)})
        assert report.control_found
        seen = {kind: set[int]() for kind in files.values()}
        for file in report.files:
            seen[files[file.named]] |= {int(owner) for owner in file.hits}
        assert seen["heap" if length == 60 else "toast"] >= set(range(COUNT)) - set(GONE)
        return {kind: len(hits.intersection(GONE)) for kind, hits in seen.items()}

    def told(self) -> list[dict[str, Any]]:
        """Give what is logged when the store is asked how far it reaches."""
        with capture_logs() as logs, self.engine.connect() as connection:
            assert reach(connection, self.context) == STAYS
        return [dict(log) for log in logs]


@pytest.fixture(scope="module")
def own_server() -> Iterator[Server]:
    """Give a server to which no other test writes: every look goes through all of its log."""
    with passing_server() as running:
        yield running


@pytest.fixture
def tables(own_server: Server, tmp_path: Path) -> Iterator[Tables]:
    url = new_database(own_server)
    engine = sa.create_engine(url)
    log = structlog.get_logger()
    context = AdapterContext(clock=FakeClock(), gate=Gate(Keyring.create()), log=log, state_dir=tmp_path)
    plain = url.replace("postgresql+psycopg://", "postgresql://")
    with closing(psycopg.connect(plain, autocommit=True)) as raw:
        made = Tables(raw, engine, Path(str(own_server.pgdata)), context)
        off = "WITH (autovacuum_enabled = off)"
        # What was deleted is looked for in the log: no segment of it is used again meanwhile.
        made.run("ALTER SYSTEM SET wal_keep_size = '1GB'", "SELECT pg_reload_conf()")
        made.run(
            f"CREATE TABLE facts (id int PRIMARY KEY, value text) {off}",
            "ALTER TABLE facts ALTER value SET STATISTICS 10",  # few samples lie in their row, uncompressed
            "CREATE INDEX by_value ON facts (value)",
            f"CREATE TABLE long (id int PRIMARY KEY, value text) {off}",
            "ALTER TABLE long ALTER value SET STORAGE EXTERNAL",  # else it is compressed, and a scan sees nothing
        )
        with raw.cursor() as cursor:
            short, long = ([(n, value(n, length)) for n in range(COUNT)] for length in (60, 5000))
            cursor.executemany("INSERT INTO facts VALUES (%s, %s)", short)
            cursor.executemany("INSERT INTO long VALUES (%s, %s)", long)
            cursor.execute("INSERT INTO facts VALUES (-1, %s)", [MARKER.decode()])
        made.run("ANALYZE facts")
        yield made
    engine.dispose()


@pytest.mark.case(117)
def test_bytes_stay_in_every_file_after_delete_and_after_vacuum(tables: Tables) -> None:
    before = tables.left()
    assert before["heap"] == before["index"] == len(GONE)
    for statement in ("DELETE FROM facts WHERE id = ANY(%s)", "DELETE FROM long WHERE id = ANY(%s)"):
        assert tables.raw.execute(statement.encode(), [GONE]).rowcount == len(GONE)
    deleted = tables.left()
    assert deleted["heap"] == deleted["index"] == deleted["wal"] == len(GONE)
    assert deleted["statistic"] > 0
    tables.run("VACUUM facts", "VACUUM long")
    vacuumed = tables.left()
    assert min(vacuumed[kind] for kind in ("heap", "wal", "statistic")) > 0
    assert tables.left(5000)["toast"] == len(GONE)
    assert tables.told() == []  # nobody holds anything back: the bytes stay all the same
    tables.run("VACUUM FULL facts")
    rewritten = tables.left()
    assert (rewritten["heap"], rewritten["index"]) == (0, 0)
    assert min(rewritten["wal"], rewritten["statistic"]) > 0


@pytest.mark.case(117)
@pytest.mark.parametrize("kind", ["snapshot", "writer"])
def test_session_that_keeps_rows_is_named_by_its_process_and_by_nothing_else(tables: Tables, kind: str) -> None:
    dsn = tables.raw.info.dsn
    with closing(psycopg.connect(dsn)) as old:
        pid = old.info.backend_pid
        if kind == "snapshot":
            old.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            old.execute("SELECT 'a secret of the reader' FROM facts LIMIT 1").fetchone()
        else:
            old.execute("INSERT INTO facts VALUES (-2, 'a secret of the writer')")
        tables.raw.execute(b"DELETE FROM long WHERE id = ANY(%s)", [GONE])
        assert tables.told() == [
            {
                "event": "store.rows_held_back",
                "log_level": "warning",
                "pids": [pid],
                "prepared": 0,
                "slots": 0,
                "sees_all": True,
            }
        ]
        tables.run("VACUUM FULL long")
        assert tables.left(5000)["toast"] == len(GONE), "silently kept"
    while pid in tables.one("SELECT array_agg(pid) FROM pg_stat_activity"):
        threading.Event().wait(0.01)
    assert tables.told() == []
    tables.run("VACUUM FULL long")
    assert tables.left(5000)["toast"] == 0
    assert tables.one("SELECT count(*) FROM long") == COUNT - len(GONE)
