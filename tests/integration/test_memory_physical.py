"""Jobs whose source is looked at by its bytes, by the engine as a deployment opens it: down to the raw file."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from adapters.memory import MemoryAdapter
from adapters.memory.chains import TaskScope
from orchestrator import (
    EraseOrder,
    InvalidRequest,
    Reason,
    Scope,
    Selector,
    SelectorKind,
    StorageAdapter,
    bootstrap,
)
from orchestrator.domain.abilities import PhysicalStore
from orchestrator.domain.states import JobState
from orchestrator.domain.unit import Phase
from orchestrator.initialise import initialise
from orchestrator.service.accept import Request, accept
from orchestrator.service.drain import drain
from orchestrator.service.run_batch import Engine
from orchestrator.store.migrate import upgrade
from tests.servers import fake_redis

ANNA = Scope(tenant="acme", user="anna", project="trips")
BERTA = Scope(tenant="acme", user="berta", project="trips")
SECRET = "P1234567 is the number of my passport"
OTHER = "window seats only, row twelve or so"
TOLD_TWICE = "the Lisbon hotel by the river, room four"
SUBJECT = Selector(kind=SelectorKind.SUBJECT)
COUNT = """
import pathlib, sys
texts = [path.read_bytes() for path in pathlib.Path(sys.argv[1]).glob("memory.db*")]
print(sum(text.count(sys.argv[2].encode()) for text in texts))
"""


@dataclass
class Deployment:
    control: bootstrap.Control
    engine: Engine
    folder: Path

    @property
    def memory(self) -> MemoryAdapter:
        return cast("MemoryAdapter", self.engine.adapters["memory"])

    def put(self, scope: Scope, key: str, text: str) -> None:
        source = f"{scope.user}/{key}"
        self.memory.store.register_source(scope, source)
        self.memory.store.put(scope, key, text, source, user_statement=True)

    def file(self, selector: Selector = SUBJECT, scope: Scope = ANNA) -> str:
        asked = Request(scope=scope, selector=selector, reason=Reason.USER_REQUEST, requested_by="tester")
        return str(accept(asked, self.control.acceptance)[0])

    def run(self) -> None:
        for _ in range(9):
            while due := self.control.ledger.due(list(self.engine.adapters)):
                if not drain(self.engine, *due[0]):
                    break
            self.control.ledger.sweep()

    def hits(self, text: str) -> int:
        """Count a text in the raw files of the source, in a process of its own: SQLite has locks on them here."""
        done = subprocess.run([sys.executable, "-c", COUNT, str(self.folder), text], capture_output=True, check=True)
        return int(done.stdout)

    def looks(self, job: str) -> list[tuple[str, str | None, tuple[str, ...]]]:
        receipts = self.control.ledger.receipts(job)
        return [(r.outcome, r.reach, r.residuals) for r in receipts if (r.adapter, r.phase) == ("memory", "verify")]


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Deployment]:
    yield from deployed(tmp_path)


def deployed(folder: Path, url: str | None = None) -> Iterator[Deployment]:
    initialise(folder)
    path = folder / "expunge.toml"
    if url is not None:
        path.write_text(path.read_text().replace("sqlite:///memory.db", url))
    with fake_redis() as cache:
        path.write_text(path.read_text().replace("redis://127.0.0.1:0/0", cache))
        control = bootstrap.open_control(folder)
        upgrade(control.database)
        engine = bootstrap.open_engine(control)
        yield Deployment(control, engine, folder)
        for adapter in engine.adapters.values():
            adapter.close()
        control.close()


def churn(stage: Deployment) -> None:
    """Write to the file as a program does that knows nothing of `secure_delete`."""
    with closing(sqlite3.connect(stage.folder / "memory.db", isolation_level=None)) as other:
        other.execute("PRAGMA secure_delete = OFF")
        other.execute("CREATE TABLE scratch AS SELECT value FROM facts")
        other.execute("DROP TABLE scratch")


def test_nothing_of_what_was_forgotten_is_left_in_the_raw_file(stage: Deployment) -> None:
    stage.put(ANNA, "passport", SECRET)
    stage.put(BERTA, "seat", OTHER)
    churn(stage)
    assert stage.hits(SECRET) > 1, "the positive control: a copy lies where only a scrub reaches it"
    job = stage.file()
    stage.run()
    assert stage.control.ledger.job(job).state is JobState.COMPLETED
    assert stage.looks(job) == [("absent", "physical", ("file_system",))]
    assert stage.hits(SECRET) == 0
    assert stage.hits(OTHER) > 0
    assert [fact.value for fact in stage.memory.store.current(BERTA)] == [OTHER]
    with closing(sqlite3.connect(stage.folder / "memory.db")) as database:
        assert database.execute("SELECT count(*) FROM record_prints").fetchone() == (0,)
        assert database.execute("SELECT count(*) FROM scan_markers").fetchone() == (0,)


def test_without_the_look_at_bytes_the_same_run_leaves_them(tmp_path: Path) -> None:
    """The negative control."""
    for stage in deployed(tmp_path):
        engine = bootstrap.open_engine(stage.control)
        logical = Deployment(stage.control, engine, stage.folder)
        object.__setattr__(engine, "bytes", None)
        logical.put(ANNA, "passport", SECRET)
        churn(logical)
        job = logical.file()
        logical.run()
        assert logical.looks(job)[0][:2] == ("absent", "logical")
        assert logical.hits(SECRET) > 0
        for adapter in engine.adapters.values():
            adapter.close()


def test_memories_of_a_chain_are_looked_for_in_every_version(stage: Deployment) -> None:
    who = TaskScope("anna", "trips", "acme")
    stage.memory.store.register_source(ANNA, "anna/told")
    first = stage.memory.chains.remember(who, "task", SECRET, "anna/told")
    stage.memory.chains.correct(who, first, OTHER, "anna/told")
    assert stage.hits(SECRET)
    assert stage.hits(OTHER)
    job = stage.file(Selector(kind=SelectorKind.MEMORY, value=str(first)))
    stage.run()
    assert stage.looks(job) == [("absent", "physical", ("file_system",))]
    assert stage.hits(SECRET) == stage.hits(OTHER) == 0


@pytest.mark.parametrize(
    ("text", "beside", "residuals"),
    [
        ("P1234567", None, ("not_probeable",)),
        ("fifteen bytes..", None, ("not_probeable",)),
        (TOLD_TWICE, f"she liked {TOLD_TWICE}", ("file_system", "shared_text")),
    ],
)
def test_what_cannot_be_told_is_named_and_reaches_no_further_than_reads(
    stage: Deployment, text: str, beside: str | None, residuals: tuple[str, ...]
) -> None:
    stage.put(ANNA, "key", text)
    if beside is not None:
        stage.put(BERTA, "key", beside)
    job = stage.file()
    stage.run()
    assert stage.control.ledger.job(job).state is JobState.COMPLETED
    assert stage.looks(job) == [("absent", "logical", residuals)]


def test_reader_that_holds_an_old_state_keeps_a_job_from_being_verified(stage: Deployment) -> None:
    stage.put(ANNA, "passport", SECRET)
    with closing(sqlite3.connect(stage.folder / "memory.db", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM facts").fetchone() == (1,)
        job = stage.file()
        stage.run()
        view = stage.control.ledger.job(job)
        assert view.state is JobState.DERIVED_CLEANUP
        assert view.last_error == "inconclusive"
        assert stage.looks(job) == []
    stage.control.ledger.retry(job)
    stage.run()
    assert stage.looks(job) == [("absent", "physical", ("file_system",))]


def test_repeat_of_a_revoke_whose_answer_was_lost_names_the_same_bytes(stage: Deployment) -> None:
    stage.put(ANNA, "passport", SECRET)
    job = stage.file()
    ledger = stage.control.ledger
    (unit,) = ledger.load("lost", ledger.claim("memory", Phase.REVOKE, owner="lost", limit=1))
    order: EraseOrder = unit.order
    (first,), (again,) = stage.memory.revoke([order]), stage.memory.revoke([order])
    assert first == again
    assert first.fingerprints
    assert first.unprobed == 0
    assert job == str(order.job)


def test_second_job_looks_for_what_the_first_one_has_revoked(stage: Deployment) -> None:
    stage.put(ANNA, "passport", SECRET)
    jobs = [stage.file(), stage.file(Selector(kind=SelectorKind.KEY, value="passport"))]
    stage.run()
    assert [stage.looks(job) for job in jobs] == [[("absent", "physical", ("file_system",))]] * 2


def test_server_whose_files_are_out_of_reach_says_what_stays(tmp_path: Path, postgres_url: str) -> None:
    for stage in deployed(tmp_path, postgres_url):
        stage.put(ANNA, "passport", SECRET)
        job = stage.file()
        stage.run()
        ((outcome, reach, residuals),) = stage.looks(job)
        assert (outcome, reach) == ("absent", "logical")
        assert {"dead_tuples", "write_ahead_log"} <= set(residuals)


def test_store_whose_files_cannot_be_looked_at_is_refused_at_start(tmp_path: Path) -> None:
    for stage in deployed(tmp_path):
        assert isinstance(stage.memory, PhysicalStore)
        with pytest.raises(InvalidRequest, match="cannot be looked at"):
            bootstrap._bytes(stage.control, {"memory": cast("StorageAdapter", object())})
