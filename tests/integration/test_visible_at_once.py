"""An erase that has answered is committed, and whoever reads on another connection sees it at once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import sqlalchemy as sa
import structlog

from adapters.drafts import DraftsAdapter
from adapters.memory import MemoryAdapter
from adapters.memory.chains import TaskScope
from adapters.vector import VectorAdapter
from orchestrator import AdapterContext, EraseOrder, Gate
from tests.integration.vector_harness import ANNA, PASSPORT, RING, SUBJECT, Shelf, open_shelf

PATIENCE = 20.0
TABLES = {"memory": ("facts", "memories"), "vector": ("vector_points",), "drafts": ("drafts",)}


@dataclass
class Stores:
    """The three stores that are tables of a database, each with one person in it."""

    shelf: Shelf
    drafts: DraftsAdapter

    def adapter(self, name: str) -> MemoryAdapter | VectorAdapter | DraftsAdapter:
        made: dict[str, MemoryAdapter | VectorAdapter | DraftsAdapter]
        made = {"memory": self.shelf.memory, "vector": self.shelf.adapter, "drafts": self.drafts}
        return made[name]

    def found(self, name: str) -> EraseOrder:
        """Give the order to erase all that a store holds of the person."""
        _, order = self.shelf.revoke(self.shelf.order(SUBJECT))
        (holding,) = self.adapter(name).find([order])
        assert holding.targets
        return replace(order, targets=holding.targets)


@pytest.fixture(params=["sqlite", "postgresql"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stores]:
    memory, index = (f"sqlite:///{tmp_path / name}" for name in ("memory.db", "vectors.db"))
    if request.param == "postgresql":
        memory = index = str(request.getfixturevalue("postgres_url"))
    shelf = open_shelf(tmp_path, memory, index)
    context = AdapterContext(clock=shelf.clock, gate=Gate(RING), log=structlog.get_logger(), state_dir=tmp_path)
    with closing(shelf.memory), closing(shelf.adapter), closing(DraftsAdapter(context, url=memory)) as drafts:
        shelf.learn(ANNA, "passport", PASSPORT)
        shelf.remember(TaskScope("anna", "trips", "acme"), PASSPORT, "anna/passport")
        drafts.runtime.submit(ANNA, "report-001")
        drafts.runtime.run(ANNA, "report-001")
        yield Stores(shelf, drafts)


def seen(stores: Stores, name: str) -> int:
    """Count the rows of a store on a connection that shares nothing with its own."""
    with closing(sa.create_engine(stores.adapter(name)._url, poolclass=sa.NullPool).connect()) as other:
        counts = [f"SELECT count(*) FROM {table}" for table in TABLES[name]]  # noqa: S608 - tables of ours
        return sum(other.exec_driver_sql(count).scalar_one() for count in counts)


@pytest.mark.case(95)
@pytest.mark.parametrize("name", TABLES)
def test_no_erase_answers_before_its_commit_and_from_then_on_everybody_sees_it(stores: Stores, name: str) -> None:
    order, adapter = stores.found(name), stores.adapter(name)
    committing, may_commit = threading.Event(), threading.Event()

    def hold_open(connection: sa.Connection) -> None:
        del connection
        committing.set()
        assert may_commit.wait(PATIENCE)

    before = seen(stores, name)
    sa.event.listen(adapter._engine, "commit", hold_open)
    with ThreadPoolExecutor(1) as pool:
        try:
            erasing = pool.submit(adapter.erase, [order])
            assert committing.wait(PATIENCE)
            assert not erasing.done()
            assert seen(stores, name) == before, "nobody sees a part of it"
        finally:
            may_commit.set()
        (answer,) = erasing.result(PATIENCE)
    assert answer.erased == len(order.targets) > 0
    assert seen(stores, name) == 0
